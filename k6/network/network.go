// Package network is what the modules share that open connections themselves: the virtual user's
// settings, and what the error of a connection means.
package network

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"

	"go.k6.io/k6/v2/js/common"
	"go.k6.io/k6/v2/js/modules"
	"go.k6.io/k6/v2/lib"
)

// State returns the state of a virtual user. In the init context, where there is none, it throws in
// the name of the module.
func State(vu modules.VU, module string) *lib.State {
	state := vu.State()
	if state == nil {
		common.Throw(vu.Runtime(), common.NewInitContextError(
			module+" connects only inside a VU: move the call into the default function, setup() or teardown()"))
	}
	return state
}

// TLSConfig returns a configuration for HTTP/1.1 and one server, by k6's options. It is the caller's.
func TLSConfig(state *lib.State, serverName string) *tls.Config {
	conf := &tls.Config{} // k6's options decide
	if state.TLSConfig != nil {
		conf = state.TLSConfig.Clone()
	}
	conf.NextProtos = []string{"http/1.1"}
	if conf.ServerName == "" {
		conf.ServerName = serverName
	}
	return conf
}

// NoSuchName says that an error of a dial is one of name resolution.
func NoSuchName(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) || strings.HasPrefix(err.Error(), "lookup ") // k6's resolver has no type for it
}

// TimedOut says that a deadline has passed: that of ctx, of the connection or of the kernel.
func TimedOut(ctx context.Context, err error) bool {
	var ne net.Error
	return errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.As(err, &ne) && ne.Timeout()
}

// Reset says that the peer, or a machine on the way, has reset the connection.
func Reset(err error) bool {
	return IsOneOf(err, syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNABORTED)
}

// Unreachable says that there is no way to the peer.
func Unreachable(err error) bool { return IsOneOf(err, syscall.EHOSTUNREACH, syscall.ENETUNREACH) }

// IsOneOf says that an error of the system is one of these, whatever their numbers are on this system.
func IsOneOf(err error, numbers ...syscall.Errno) bool {
	for _, e := range numbers {
		if errors.Is(err, number(e)) {
			return true
		}
	}
	return false
}

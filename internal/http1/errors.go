package http1

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
)

// IsUnknownName reports whether the error of a dial is an error of name resolution.
func IsUnknownName(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) || strings.HasPrefix(err.Error(), "lookup ") // the resolver of k6 has no type for it
}

// TimedOut reports whether a deadline has passed: that of ctx, of the connection or of the kernel.
func TimedOut(ctx context.Context, err error) bool {
	var ne net.Error
	return errors.Is(ctx.Err(), context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.As(err, &ne) && ne.Timeout()
}

// Reset reports whether the peer, or a machine between, has reset the connection.
func Reset(err error) bool {
	return IsOneOf(err, syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNABORTED)
}

// Unreachable reports whether there is no route to the peer.
func Unreachable(err error) bool { return IsOneOf(err, syscall.EHOSTUNREACH, syscall.ENETUNREACH) }

// IsOneOf reports whether an error of the system is one of these, whatever their numbers are on this system.
func IsOneOf(err error, numbers ...syscall.Errno) bool {
	for _, e := range numbers {
		if errors.Is(err, number(e)) {
			return true
		}
	}
	return false
}

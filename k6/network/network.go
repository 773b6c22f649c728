// Package network provides the network settings of a virtual user to modules that open connections themselves, and the
// parts of option parsing that these modules share.
package network

import (
	"context"
	"crypto/tls"
	"fmt"
	"math"
	"net"
	"strconv"
	"time"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/js/common"
	"go.k6.io/k6/v2/js/modules"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/lib/netext"
	"go.k6.io/k6/v2/lib/types"

	"github.com/sse-soak/sse-soak/internal/http1"
	"github.com/sse-soak/sse-soak/internal/proxy"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/sseclient"
)

// State returns the state of a virtual user. In the init context, which has no state, it throws an error that names the
// module.
func State(vu modules.VU, module string) *lib.State {
	state := vu.State()
	if state == nil {
		common.Throw(vu.Runtime(), common.NewInitContextError(
			module+" connects only inside a VU; move the call into the default function, setup() or teardown()"))
	}
	return state
}

// Duration parses a number of milliseconds or a string such as "10s". A negative duration is an error, and so is a
// number that a time.Duration cannot hold.
func Duration(v sobek.Value) (time.Duration, error) {
	d, err := types.GetDurationValue(v.Export())
	_, isText := v.Export().(string)
	ms := v.ToFloat() // NaN if a text has a unit
	switch {
	case err != nil || ms > 9e12 || !isText && math.IsNaN(ms):
		return 0, fmt.Errorf("must be a number of milliseconds up to 9e12 or a duration such as \"10s\", got %s", Quote(v))
	case d < 0 || ms < 0:
		return 0, fmt.Errorf("must not be negative, got %s", Quote(v))
	}
	return d, nil
}

// Timeout parses an option that limits the time of a request.
func Timeout(v sobek.Value) (time.Duration, error) {
	d, err := Duration(v)
	if err != nil || d == 0 {
		return 0, fmt.Errorf("must be a positive number of milliseconds up to 9e12 or a duration such as \"10s\", got %s", Quote(v))
	}
	return d, nil
}

// Quote returns a value of a script as text for an error. Only a string gets quotes.
func Quote(v sobek.Value) string {
	if text, ok := v.Export().(string); ok {
		return strconv.Quote(text)
	}
	return v.String()
}

// Dial opens a connection with k6's dialer. The bytes of the connection count in k6's metrics.
func Dial(ctx context.Context, state *lib.State, network, address string) (net.Conn, error) {
	conn, err := state.Dialer.DialContext(ctx, network, address)
	if counted, ok := conn.(*netext.Conn); ok {
		conn = &sseclient.Conn{Conn: counted.Conn, Received: counted.BytesRead, Sent: counted.BytesWritten}
	}
	return conn, err //nolint:wrapcheck // the client wraps it
}

// TLSConfig returns a copy of k6's TLS configuration for HTTP/1.1. serverName replaces an empty ServerName.
func TLSConfig(state *lib.State, serverName string) *tls.Config {
	conf := new(tls.Config)
	if state.TLSConfig != nil {
		conf = state.TLSConfig.Clone()
	}
	conf.NextProtos = []string{"http/1.1"}
	if conf.ServerName == "" {
		conf.ServerName = serverName
	}
	return conf
}

// LackOf returns the code of the resource that this machine lacked for a dial: shard.CodeNoPort, shard.CodeNoDescriptor
// or shard.CodeNoIPv6. It returns "" if the dial failed for another reason.
func LackOf(err error) string {
	switch {
	case !http1.IsExhausted(err):
		return ""
	case http1.IsOutOfDescriptors(err):
		return shard.CodeNoDescriptor
	case proxy.LacksIPv6(err):
		return shard.CodeNoIPv6
	}
	return shard.CodeNoPort
}

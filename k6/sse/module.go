// Package sse has the JavaScript bindings of the SSE client, for k6/x/soak and for a binary's own module of the shape
// of xk6-sse.
//
// It offers the EventSource of the HTML standard (section 9.2) on k6's event loop, many per VU, and the blocking
// open() of xk6-sse. internal/sseclient is the client; here are its JavaScript bindings and the metrics of k6.
// load-tests/types/sse.d.ts documents the API for scripts.
//
// No goroutine of the client touches a JavaScript value: what a script sees changes in tasks on the event loop.
package sse

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/js/modules"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/lib/netext"

	"github.com/sse-soak/sse-soak/internal/proxy"
	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/k6/network"
)

type (
	rootModule struct{}

	// module is the instance of one VU.
	module struct {
		vu         modules.VU
		metrics    *sseMetrics
		proxies    proxy.Chooser // nil: those of the environment
		exports    modules.Exports
		session    *session                    // of the running iteration; on the event loop only
		events     [eventClasses]*sobek.Object // the prototypes of events, from the first event on
		dispatched *sobek.Object               // the event that is dispatched; nil: none

		client   *sseclient.Client // of the state; on the event loop only
		clientOf *lib.State
		patience time.Duration // DialPatience of the client
	}
)

var (
	_ modules.Module   = (*rootModule)(nil)
	_ modules.Instance = (*module)(nil)
)

// importPath is the module that errors name.
const importPath = "k6/x/soak"

// New returns a root module with EventSource and open alone, as scripts for xk6-sse expect it. This package does not
// register it: k6/x/sse is the name of another extension.
func New() modules.Module { return new(rootModule) }

// NewModuleInstance is called by k6 once per VU.
func (*rootModule) NewModuleInstance(vu modules.VU) modules.Instance {
	return &module{vu: vu, metrics: registerMetrics(vu)}
}

// Exports returns open and EventSource by name, and both on the default export, as scripts for xk6-sse expect it. k6
// calls it at each use of an imported name.
func (m *module) Exports() modules.Exports {
	if m.exports.Named == nil {
		rt := m.vu.Runtime()
		exports := map[string]any{"open": rt.ToValue(m.open), "EventSource": m.eventSourceClass()}
		m.exports = modules.Exports{Default: rt.ToValue(exports), Named: exports}
	}
	return m.exports
}

// clientFor returns the client with the network settings of the VU.
func (m *module) clientFor(state *lib.State) *sseclient.Client {
	if m.clientOf == state {
		return m.client
	}
	m.clientOf = state
	m.client = &sseclient.Client{
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			return dial(ctx, state, network, address)
		},
		TLS:          func(serverName string) *tls.Config { return network.TLSConfig(state, serverName) },
		Proxies:      m.proxies,
		UserAgent:    state.Options.UserAgent.String,
		NoSharing:    state.Options.NoConnectionReuse.Bool,
		DialPatience: m.patience,
		Await:        func(ctx context.Context) bool { return awaitRate(ctx, state) },
	}
	return m.client
}

// dial opens a connection as k6 does, whose bytes count in its metrics.
func dial(ctx context.Context, state *lib.State, network, address string) (net.Conn, error) {
	conn, err := state.Dialer.DialContext(ctx, network, address)
	if counted, ok := conn.(*netext.Conn); ok {
		conn = &sseclient.Conn{Conn: counted.Conn, Received: counted.BytesRead, Sent: counted.BytesWritten}
	}
	return conn, err //nolint:wrapcheck // the client names the phase
}

// awaitRate waits until k6's option rps allows one more request, or until ctx is done. A redirected request counts
// once, as in k6/http.
func awaitRate(ctx context.Context, state *lib.State) bool {
	if state.RPSLimit == nil || state.RPSLimit.Wait(ctx) == nil {
		return true
	}
	<-ctx.Done() // the permit would come after the end of ctx
	return false
}

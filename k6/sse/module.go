// Package sse provides the JavaScript bindings and the k6 metrics of the SSE client, internal/sseclient. The module
// k6/x/soak exports them, and so can a module that replaces xk6-sse. load-tests/types/sse.d.ts documents the API for
// scripts.
//
// EventSource follows the HTML standard (section 9.2) and runs on k6's event loop, so a VU can have many. open is the
// blocking function of xk6-sse.
//
// Goroutines of the client use no JavaScript values. Only tasks on the event loop do.
package sse

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/js/modules"
	"go.k6.io/k6/v2/lib"

	"github.com/sse-soak/sse-soak/internal/proxy"
	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/k6/network"
)

// importPath is the name of the module in errors.
const importPath = "k6/x/soak"

// New returns a root module with only EventSource and open, as scripts for xk6-sse expect. This package does not
// register it, because k6/x/sse is the name of another extension.
func New() modules.Module { return rootModule{} }

type rootModule struct{}

func (rootModule) NewModuleInstance(vu modules.VU) modules.Instance { return NewModule(vu) }

// A Module opens the event streams of one virtual user, for its script and for Go callers. All these streams push
// the metrics of an EventSource; the streams of open also push metrics of k6.
type Module struct {
	vu      modules.VU
	metrics *sseMetrics
	proxies proxy.Chooser // nil: the proxies of the environment
	exports modules.Exports
	session *session       // of the current iteration; used on the event loop only
	fire    sobek.Callable // dispatches an event; see event_source.js

	client       *sseclient.Client // used on the event loop only
	clientState  *lib.State        // the VU state that client uses
	dialPatience time.Duration     // DialPatience of client
}

// NewModule returns a Module. It registers metrics, so it must be called in the init context.
func NewModule(vu modules.VU) *Module {
	return &Module{vu: vu, metrics: registerMetrics(vu)}
}

// Exports returns open and EventSource as named exports and on the default export, as scripts for xk6-sse expect. k6
// calls Exports at each use of an imported name.
func (m *Module) Exports() modules.Exports {
	if m.exports.Named == nil {
		rt := m.vu.Runtime()
		exports := map[string]any{"open": rt.ToValue(m.open), "EventSource": m.eventSourceClass()}
		m.exports = modules.Exports{Default: rt.ToValue(exports), Named: exports}
	}
	return m.exports
}

func (m *Module) clientFor(state *lib.State) *sseclient.Client {
	if m.clientState == state {
		return m.client
	}
	m.clientState = state
	m.client = &sseclient.Client{
		Dial: func(ctx context.Context, transport, address string) (net.Conn, error) {
			return network.Dial(ctx, state, transport, address)
		},
		TLS:          func(serverName string) *tls.Config { return network.TLSConfig(state, serverName) },
		Proxies:      m.proxies,
		UserAgent:    state.Options.UserAgent.String,
		NoSharing:    state.Options.NoConnectionReuse.Bool,
		DialPatience: m.dialPatience,
		Await:        func(ctx context.Context) bool { return awaitRate(ctx, state) },
	}
	return m.client
}

// awaitRate waits until k6's option rps allows one more request. It returns false if ctx ends first. A redirected
// request counts once, as in k6/http.
func awaitRate(ctx context.Context, state *lib.State) bool {
	if state.RPSLimit == nil || state.RPSLimit.Wait(ctx) == nil {
		return true
	}
	<-ctx.Done() // the limiter would allow the request only after the end of ctx
	return false
}

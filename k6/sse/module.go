// Package sse is the k6 module k6/x/sse: Server-Sent Events for load tests.
//
// It offers the EventSource of the HTML standard (section 9.2) on k6's event loop,
// many per VU, and the blocking open() of xk6-sse. Both dial with k6's own dialer
// and read the response over the dialed connection; see load-tests/types/sse.d.ts
// for the API as scripts see it.
//
// The goroutines of a connection: one dials and reads the response head, then
// hands over to the poller, which reads all streams, or where there is none to a fresh
// one with a small stack. None of them ever touches a JS value. What scripts see changes in tasks that a hub, one per
// iteration, runs on the event loop.
package sse

import (
	"crypto/tls"
	"sync"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/js/modules"
	"go.k6.io/k6/v2/lib"

	"github.com/sse-soak/sse-soak/internal/proxy"
	"github.com/sse-soak/sse-soak/k6/network"
)

type (
	rootModule struct{}

	// module is what one VU has of k6/x/sse.
	module struct {
		vu         modules.VU
		metrics    *sseMetrics
		proxies    proxy.Chooser // nil: the environment's
		exports    modules.Exports
		hub        *hub                        // of the running iteration; on the event loop only
		events     [eventClasses]*sobek.Object // the prototypes of events, from the first event on
		dispatched *sobek.Object               // the event that is dispatched, nil mostly

		tlsMu   sync.Mutex
		tlsOf   *lib.State
		tlsConf map[tlsKey]*tls.Config

		h2 h2Pool
	}
)

var (
	_ modules.Module   = (*rootModule)(nil)
	_ modules.Instance = (*module)(nil)
)

// New returns the root module.
func New() modules.Module { return new(rootModule) }

// NewModuleInstance is called by k6 once per VU.
func (*rootModule) NewModuleInstance(vu modules.VU) modules.Instance {
	return &module{vu: vu, metrics: registerMetrics(vu)}
}

// Exports gives open and EventSource by name, and both on the default export, as
// scripts written for xk6-sse expect it. k6 asks for them at each use of an imported
// name: they are made once.
func (m *module) Exports() modules.Exports {
	if m.exports.Named == nil {
		rt := m.vu.Runtime()
		named := map[string]any{"open": rt.ToValue(m.open), "EventSource": m.eventSourceClass()}
		m.exports = modules.Exports{Default: rt.ToValue(named), Named: named}
	}
	return m.exports
}

// tlsKey is what two configurations of a VU differ in.
type tlsKey struct {
	serverName string
	protocol   protocol
}

// tlsConfig returns the VU's TLS configuration for one server name and what is spoken to it.
// It is shared by all connections of the VU to that server.
func (m *module) tlsConfig(state *lib.State, serverName string, speak protocol) *tls.Config {
	m.tlsMu.Lock()
	defer m.tlsMu.Unlock()
	if m.tlsOf != state || m.tlsConf == nil {
		m.tlsOf, m.tlsConf = state, make(map[tlsKey]*tls.Config)
	}
	key := tlsKey{serverName, speak}
	conf := m.tlsConf[key]
	if conf == nil {
		conf = network.TLSConfig(state, serverName)
		conf.NextProtos = speak.alpn()
		m.tlsConf[key] = conf
	}
	return conf
}

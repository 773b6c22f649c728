// Package handshake is the k6 module k6/x/handshake. Each of its connections makes a TCP and a full TLS handshake,
// which are timed separately. Each failure has a cause.
//
// k6/http can also disable connection reuse, but it does not distinguish a refused client certificate from a broken
// response, and it cannot keep several connections open. load-tests/types/handshake.d.ts documents the API.
package handshake

import (
	"sync"
	"sync/atomic"

	"go.k6.io/k6/v2/js/modules"
)

const importPath = "k6/x/handshake"

func init() { modules.Register(importPath, modules.Module(new(rootModule))) }

// A rootModule is shared by all virtual users of the process.
type rootModule struct {
	openCount    atomic.Int64 // number of open connections
	certificates sync.Map     // from certificate and key in PEM to *tls.Certificate
}

// A module is the instance of k6/x/handshake for one virtual user.
type module struct {
	root    *rootModule
	vu      modules.VU
	metrics *handshakeMetrics
	exports modules.Exports
}

func (r *rootModule) NewModuleInstance(vu modules.VU) modules.Instance {
	m := &module{root: r, vu: vu, metrics: registerMetrics(vu)}
	m.exports = modules.Exports{Named: map[string]any{"connect": vu.Runtime().ToValue(m.connect)}}
	return m
}

func (m *module) Exports() modules.Exports { return m.exports }

// Package network has the network settings of a virtual user, for the modules that open connections themselves.
package network

import (
	"crypto/tls"

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

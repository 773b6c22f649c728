package handshake

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"go.k6.io/k6/v2/js/modulestest"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/lib/netext"
	"go.k6.io/k6/v2/lib/types"
	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/test/certificate"
)

// A vu is a virtual user whose scripts can use the module.
type vu struct {
	*modulestest.Runtime
	t       *testing.T
	root    *rootModule
	state   *lib.State
	samples chan metrics.SampleContainer
}

// newVU returns a virtual user that trusts ca and, unless client is nil, presents that certificate.
func newVU(t *testing.T, ca *certificate.Authority, client *tls.Certificate) *vu {
	t.Helper()
	rt := modulestest.NewRuntime(t)
	v := &vu{Runtime: rt, t: t, root: new(rootModule), samples: make(chan metrics.SampleContainer, 1000)}
	for name, value := range v.root.NewModuleInstance(rt.VU).Exports().Named {
		require.NoError(t, rt.VU.Runtime().Set(name, value))
	}
	conf := &tls.Config{RootCAs: ca.Pool}
	if client != nil {
		conf.Certificates = []tls.Certificate{*client}
	}
	v.state = &lib.State{
		Dialer: netext.NewDialer(net.Dialer{}, netext.NewResolver(net.LookupIP, 0, types.DNSfirst, types.DNSpreferIPv4)),
		Tags:   lib.NewVUStateTags(rt.VU.InitEnvField.Registry.RootTagSet()), Samples: v.samples, TLSConfig: conf,
	}
	rt.MoveToVUContext(v.state)
	return v
}

func (v *vu) js(script string) any {
	v.t.Helper()
	value, err := v.VU.Runtime().RunString(script)
	require.NoError(v.t, err)
	return value.Export()
}

// counts returns the number of samples since the last call, by metric, and by cause for failures.
func (v *vu) counts() map[string]int {
	out := map[string]int{}
	v.drain(func(name string, _ float64) { out[name]++ })
	return out
}

// sums returns the sum of the samples since the last call, by the keys of counts.
func (v *vu) sums() map[string]float64 {
	out := map[string]float64{}
	v.drain(func(name string, value float64) { out[name] += value })
	return out
}

// drain removes all queued samples, and calls visit for each of them. The name of a failure contains its cause.
func (v *vu) drain(visit func(name string, value float64)) {
	for _, container := range metrics.GetBufferedSamples(v.samples) {
		for _, s := range container.GetSamples() {
			name := s.Metric.Name
			if cause, ok := s.Tags.Get("cause"); ok {
				name += " " + cause
			}
			visit(name, s.Value)
		}
	}
}

// serve starts a server that requires a client certificate of ca.
func serve(t *testing.T, ca *certificate.Authority, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := newUnstartedServer(ca, handler)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func newUnstartedServer(ca *certificate.Authority, handler http.HandlerFunc) *httptest.Server {
	s := httptest.NewUnstartedServer(handler)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{*ca.Server()}, ClientCAs: ca.Pool, ClientAuth: tls.RequireAndVerifyClientCert}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	return s
}

func respondOK(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) }

package requests

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/lib/netext"
	"golang.org/x/net/http/httpproxy"

	"github.com/sse-soak/sse-soak/test/forward"
)

// serveTLS starts a TLS server and returns an option of newVU to trust it.
func serveTLS(t *testing.T, handler http.HandlerFunc) (*httptest.Server, func(*lib.State)) {
	t.Helper()
	s := httptest.NewTLSServer(handler)
	t.Cleanup(s.Close)
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return s, func(state *lib.State) { state.TLSConfig = &tls.Config{RootCAs: pool} }
}

func TestTLSFailureHasK6ErrorCode(t *testing.T) {
	t.Parallel()
	s, _ := serveTLS(t, func(http.ResponseWriter, *http.Request) {})
	v := newVU(t)
	var log bytes.Buffer
	v.log.SetOutput(&log)
	v.await(`closed({concurrency: 1, requests: 3, operations: [{name: 'get', url: %q}]})`, s.URL)
	require.Equal(t, map[string]int{"net-1310": 3}, v.codes())
	require.Equal(t, 1, strings.Count(log.String(), "get: a request failed (net-1310"), log.String())
	require.Contains(t, log.String(), "unknown authority")
	plain := serve(t, func(http.ResponseWriter, *http.Request) {})
	v.await(`closed({concurrency: 1, requests: 1, operations: [{url: %q}]})`, strings.Replace(plain.URL, "http:", "https:", 1))
	require.Equal(t, map[string]int{"net-1301": 1}, v.codes())
}

func TestRequestsUseTheProxy(t *testing.T) {
	t.Parallel()
	plain := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(r.Host + r.RequestURI)) })
	encrypted, trust := serveTLS(t, func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(r.Host + r.RequestURI)) })
	for scheme, c := range map[string]struct {
		server  *httptest.Server
		request string // the request that reaches the proxy
	}{
		"http": {plain, "GET http://example.com/a"}, "https": {encrypted, "CONNECT example.com:443"},
	} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			user := url.UserPassword("us er", "pass/word")
			p, err := forward.Start(forward.Options{User: user, Resolve: func(string) string { return c.server.Listener.Addr().String() }})
			require.NoError(t, err)
			t.Cleanup(p.Stop)
			v := newVU(t, trust)
			config := &httpproxy.Config{HTTPProxy: p.URL, HTTPSProxy: p.URL}
			v.module.proxies = config.ProxyFunc()
			v.await(`closed({concurrency: 1, requests: 3, operations: [{url: '%s://example.com/a?b=c', want: {body: 'example.com/a?b=c'}}]})`, scheme)
			require.Equal(t, map[string]int{"ok": 3}, v.codes())
			require.Equal(t, c.request, p.Requests()[0])
			require.Positive(t, v.state.Dialer.(*netext.Dialer).BytesRead, "k6's metrics must count the bytes")
		})
	}
}

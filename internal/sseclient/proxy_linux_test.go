package sseclient

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/forward"
	"github.com/sse-soak/sse-soak/test/sockets"
)

// A goroutine reads TLS inside TLS, which the poller does not support.
func TestConnectionsThroughAProxyArePolled(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		scheme string
		proxy  forward.Options
		want   bool
	}{
		{"http", forward.Options{}, true},
		{"http", forward.Options{TLS: sockets.ServerTLS()}, true},
		{"https", forward.Options{}, true},
		{"https", forward.Options{TLS: sockets.ServerTLS()}, false},
	} {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, twoEvents)
		}))
		if tt.scheme == "https" {
			server.StartTLS()
		} else {
			server.Start()
		}
		t.Cleanup(server.Close)
		tt.proxy.Resolve = func(string) string { return strings.TrimPrefix(strings.TrimPrefix(server.URL, "http://"), "https://") }
		proxy, err := forward.Start(tt.proxy)
		require.NoError(t, err)
		t.Cleanup(proxy.Stop)
		c := &Client{
			TLS:     func(string) *tls.Config { return &tls.Config{InsecureSkipVerify: true} },
			Proxies: func(*url.URL) (*url.URL, error) { return url.Parse(proxy.URL) },
		}
		r, end := c.Open(t.Context(), &Options{}, Request{URL: tt.scheme + "://service.test/events"})
		require.Nil(t, end)
		p := poll(r.conn, nil)
		require.Equal(t, tt.want, p != nil)
		if p == nil {
			hangUp(r.conn)
		} else {
			p.hangUp()
		}
	}
}

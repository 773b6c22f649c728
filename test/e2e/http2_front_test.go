//go:build e2e

package e2e

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// http2Front starts nginx with HTTP/2 over TLS in front of a service.
func http2Front(t *testing.T, to string) (url string) {
	t.Helper()
	certs := filepath.Join(certificates(t), "server")
	return "https://" + proxyWith(t, to, " ssl http2; ssl_certificate "+filepath.Join(certs, "server.pem")+"; ssl_certificate_key "+filepath.Join(certs, "server-key.pem"), "proxy_buffering off; proxy_read_timeout 60s;")
}

func TestSoakOverHTTP2ThroughNginx(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args     []string
		wantText string
	}{
		"limit of nginx":              {nil, `HTTP/2 +20 streams over [24] connections, at most [12] of one runner`},
		"five streams per connection": {[]string{"--streams-per-connection", "5"}, `HTTP/2 +20 streams over 4 connections, at most 2 of one runner`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			front := http2Front(t, backend(t, "NOOP_INTERVAL=0.5", "BACKEND_TOKEN=secret"))
			r := begin(t, []string{"K6_INSECURE_SKIP_TLS_VERIFY=true", "BACKEND_TOKEN=secret"}, append([]string{"--connections", "20", "--connections-per-vu", "10", "--seconds", "8", "--noop-interval", "0.5", "--runners", "2", "--backend-url", front, "--prefix", "soak-"}, tt.args...)...)
			v := r.verdict()
			require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
			require.Equal(t, 20, v.Connections.Completed)
			require.Regexp(t, tt.wantText, r.out.String())
		})
	}
}

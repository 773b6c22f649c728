//go:build e2e

package e2e

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// If the noops are on time and only the requests that end the streams are slow, the verdict has a warning and does not
// fail.
func TestSlowDeletesAreReported(t *testing.T) {
	t.Parallel()
	target, err := url.Parse(backend(t, "NOOP_INTERVAL=1s"))
	require.NoError(t, err)
	forwarder := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, FlushInterval: -1}
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			time.Sleep(1200 * time.Millisecond)
		}
		forwarder.ServeHTTP(w, r)
	}))
	t.Cleanup(slow.Close)
	r := begin(t, nil, "--backend-url", slow.URL, "--connections", "20", "--runners", "2", "--seconds", "8", "--noop-interval", "1")
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.EqualValues(t, 20, v.EndRequests.Count)
	require.GreaterOrEqual(t, v.EndRequests.MinMS, 1200.)
	require.Contains(t, strings.Join(v.Warnings, "\n"), "the requests that end the streams (DELETE /event/forcedisconnect) are slow, and the noops are not: half of them took over 1.")
}

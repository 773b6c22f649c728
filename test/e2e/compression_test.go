//go:build e2e

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// nginx compresses the streams of the backend. With proxy_buffering off it flushes after each noop. With buffering it
// delays noops; with postpone_output 0 at least the headers are sent at once.
func TestCompressingProxy(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		directives, accept string
		judge              func(t *testing.T, v *verdict.Verdict, out string)
	}{
		"flushes": {"proxy_buffering off;", "browser", func(t *testing.T, v *verdict.Verdict, out string) {
			require.Equal(t, verdict.Pass, v.Verdict, out)
			require.Equal(t, "gzip on 20 streams", v.CompressionText())
			require.Regexp(t, `compressed +gzip on 20 streams`, out)
			require.Equal(t, v.Messages.Received, v.Codings[0].Messages)
			require.Contains(t, v.Checks, verdict.Check{
				ID: verdict.CheckCompressed, Name: "one-by-one delivery of noops compressed with gzip", Limit: "most", Actual: "most", Pass: true, Severity: verdict.SeverityWarning, Why: "buffered compression delays messages",
			})
		}},
		"buffers": {"proxy_ignore_headers X-Accel-Buffering; postpone_output 0;", "gzip", func(t *testing.T, v *verdict.Verdict, out string) {
			require.Equal(t, verdict.Fail, v.Verdict, out)
			require.Contains(t, v.Reasons[0], "no noop arrived on the streams compressed with gzip: the service or a proxy buffers compressed data; flush after each message")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			front := "http://" + proxy(t, backend(t, "NOOP_INTERVAL=0.2"), "gzip on; gzip_types text/event-stream; gzip_min_length 0; "+tt.directives)
			r := begin(t, []string{"ACCEPT_ENCODING=" + tt.accept}, "--connections", "20", "--seconds", "8", "--noop-interval", "0.2", "--backend-url", front)
			tt.judge(t, r.verdict(), r.out.String())
		})
	}
}

// A proxy that also delays the headers is reported before the load.
func TestProxyDelaysHeaders(t *testing.T) {
	t.Parallel()
	front := "http://" + proxy(t, backend(t, "NOOP_INTERVAL=0.2"), "gzip on; gzip_types text/event-stream; gzip_min_length 0; proxy_ignore_headers X-Accel-Buffering;")
	r := begin(t, []string{"ACCEPT_ENCODING=gzip"}, "--connections", "20", "--seconds", "9", "--noop-interval", "0.2", "--backend-url", front)
	require.Equal(t, 2, r.end(), r.out.String())
	require.Regexp(t, `GET \S+/event/connect\?\S*: no response within \d+ s`, r.out.String())
}

// A service flushes its compression only every two seconds. Its streams are not silent for longer, so they stay open,
// but most messages are late.
func TestMessageBursts(t *testing.T) {
	t.Parallel()
	h := &fakeservice.Hub{Gzip: 2 * time.Second}
	r := begin(t, nil, "--service", describeHub(t, ""), "--backend-url", h.Start(t).URL, "--connections", "10", "--seconds", "15", "--topics", "1", "--publish-rate", "20", "--accept-encoding", "gzip", "--max-late", "0", "--late-ms", "500")
	v := r.verdict()
	require.Equal(t, verdict.Fail, v.Verdict, r.out.String())
	// A burst has 40 messages, but the first burst has fewer. The sentence contains the mean.
	require.Regexp(t, `^messages arrive in bursts of [34]\d: the service or a proxy buffers compressed data \(gzip\); `, v.Reasons[0])
}

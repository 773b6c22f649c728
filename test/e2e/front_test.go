//go:build e2e

package e2e

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/address"
	"github.com/sse-soak/sse-soak/test/fakeservice"
	"github.com/sse-soak/sse-soak/test/reverse"
	"github.com/sse-soak/sse-soak/test/services"
)

// The idle timeout of 2.5 intervals must not close a stream that the service is ending.
func TestServiceEndsStreamsSlowly(t *testing.T) {
	t.Parallel()
	spec := bareService(time.Second)
	spec.EndWait = 5 * time.Second
	_, url := startFake(t, spec, fakeservice.Strike{})
	r := begin(t, nil, "--backend-url", url, "--connections", "6", "--seconds", "8", "--noop-interval", "1")
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.Equal(t, 15*time.Second, v.Plan.EndTimeout())
}

// soak ignores the variables and the configuration of k6. K6_VUS=1 would limit each runner to one stream. Connections
// to a service on this machine do not use the proxy of the environment.
func TestK6VariablesAreIgnored(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(home, "k6"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(home, "k6", "config.json"), []byte(`{"vus": 1, "linger": true}`), 0o644))
	r := begin(t, []string{"K6_VUS=1", "K6_ITERATIONS=1", "K6_NO_THRESHOLDS=true", "K6_EXECUTION_SEGMENT=0:1/2", "XDG_CONFIG_HOME=" + home, "http_proxy=http://127.0.0.1:1"},
		"--connections", "12", "--seconds", "8", "--noop-interval", "1")
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.Contains(t, r.out.String(), "soak: warning: K6_EXECUTION_SEGMENT, K6_ITERATIONS, K6_NO_THRESHOLDS, K6_VUS in the environment: ignored")
	require.NotContains(t, strings.Join(v.Warnings, "\n"), "proxy")
}

// The script rejects options with which k6 would not run all checks, but exit with 0.
func TestScriptRejectsIncompleteOptions(t *testing.T) {
	t.Parallel()
	script := filepath.Join(root, "load-tests/sse/connectionTest.js")
	for name, c := range map[string]struct {
		args, env []string
		wantText  string
	}{
		"too short":           {args: []string{"--vus", "2", "--iterations", "2", "--duration", "5s"}, wantText: "must last 140 s, for SECONDS=120 and the end of the streams (END_TIMEOUT=15), got 35 s; write --duration 120s"},
		"one after the other": {args: []string{"--vus", "2", "--iterations", "4", "--duration", "10m"}, wantText: "must have one iteration per virtual user, got 4 for 2; write --vus 4"},
		"no iterations":       {args: []string{"--vus", "2", "--duration", "10m"}, wantText: "must have one iteration per virtual user, such as --vus 600 --iterations 600, got the executor constant-vus"},
		"fewer than planned":  {env: []string{"K6_VUS=1"}, args: []string{"--env", "CONNECTIONS=5"}, wantText: "CONNECTIONS must be at most 1 with the options of k6"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"run", "--quiet", "--env", "BACKEND_URL=http://127.0.0.1:1", "--env", "SECONDS=120", "--env", "NOOP_INTERVAL=1"}, c.args...)
			cmd := exec.Command(filepath.Join(root, "bin", "k6"), append(args, script)...)
			cmd.Env = append(os.Environ(), c.env...)
			text, err := cmd.CombinedOutput()
			require.Error(t, err, string(text))
			require.Contains(t, string(text), c.wantText)
		})
	}
}

// http2Front starts nginx with HTTP/2 over TLS in front of a service.
func http2Front(t *testing.T, to string) (url string) {
	t.Helper()
	certs := filepath.Join(certificates(t), "server")
	return "https://" + proxy(t, to, "proxy_buffering off; proxy_read_timeout 60s;", " ssl http2; ssl_certificate "+filepath.Join(certs, "server.pem")+"; ssl_certificate_key "+filepath.Join(certs, "server-key.pem"))
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

// A run of 600 streams needs few descriptors, because the service allows 25 streams per connection.
func TestHTTP2StreamsExceedDescriptorLimit(t *testing.T) { // not parallel: while other tests run, noops are over a second late
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	service := fakeservice.StartService(fakeservice.NewSpec(time.Second, fakeservice.PhaseRandom, 25), fakeservice.Strike{}, listener)
	defer service.Stop()
	v := beginWith(t, t.TempDir(), []string{"prlimit", "--nofile=560", "--"}, nil, "--backend-url", "http://"+listener.Addr().String(),
		"--http-version", "2", "--connections", "600", "--seconds", "11", "--noop-interval", "1", "--control", "0").verdict()
	require.Equal(t, verdict.Pass, v.Verdict, v.Reasons)
	require.Less(t, v.HTTP2.Connections, 40, "24 connections must suffice for the streams")
	require.EqualValues(t, 600, v.Connections.Completed)
	require.GreaterOrEqual(t, v.Messages.Received, uint64(3000))
	require.True(t, v.Server.Agrees)
}

// `soak probe --idle` measures the proxy_read_timeout of nginx in front of nchan.
func TestIdleProbeFindsProxyTimeout(t *testing.T) {
	t.Parallel()
	r := startService(t, "nchan", services.Options{})
	front := "http://" + proxy(t, r.URL, "proxy_buffering off; proxy_read_timeout 8s;", "")
	probe := exec.Command(filepath.Join(root, "bin", "soak"), "probe", "--idle", "--seconds", "40", front+"/sub/{topic}",
		"--publish-url", "{base}/pub/{topic}", "--publish-body", `{"run":"{run}","seq":{seq},"t":{sentAt},"sum":"{sum}"}`)
	probe.Env = append(os.Environ(), r.Env...)
	output, err := probe.CombinedOutput()
	t.Log(string(output))
	require.NoError(t, err)
	require.Regexp(t, `(after +([789]|10)\.\d s  closed: the connection was closed in the middle of the response\n){2}`, string(output))
	require.Contains(t, string(output), "Send something on each stream")
}

// proxy returns the address of an nginx that forwards all requests. directives are added to its location, and
// parameters, such as ssl, to its directive listen.
func proxy(t *testing.T, to, directives, parameters string) string {
	t.Helper()
	u, err := url.Parse(to)
	require.NoError(t, err)
	dir := t.TempDir()
	listen := address.Reserve(t)
	reverse.Start(t, dir, fmt.Sprintf(`daemon off; pid %[1]s/pid; error_log stderr warn; worker_processes 1;
events { worker_connections 512; }
http {
  access_log off; client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
  server { listen %[2]s%[5]s; location / { proxy_pass http://%[3]s; proxy_http_version 1.1; %[4]s } }
}
`, dir, listen, u.Host, directives, parameters), "tcp", listen)
	return listen
}

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
			front := "http://" + proxy(t, backend(t, "NOOP_INTERVAL=0.2"), "gzip on; gzip_types text/event-stream; gzip_min_length 0; "+tt.directives, "")
			r := begin(t, []string{"ACCEPT_ENCODING=" + tt.accept}, "--connections", "20", "--seconds", "8", "--noop-interval", "0.2", "--backend-url", front)
			tt.judge(t, r.verdict(), r.out.String())
		})
	}
}

// A proxy that also delays the headers is reported before the load.
func TestProxyDelaysHeaders(t *testing.T) {
	t.Parallel()
	front := "http://" + proxy(t, backend(t, "NOOP_INTERVAL=0.2"), "gzip on; gzip_types text/event-stream; gzip_min_length 0; proxy_ignore_headers X-Accel-Buffering;", "")
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

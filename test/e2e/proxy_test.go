//go:build e2e

package e2e

import (
	"context"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
	"github.com/sse-soak/sse-soak/test/forward"
	"github.com/sse-soak/sse-soak/test/sockets"
)

// A proxiedService is a service whose streams need a second request and end after a third one.
type proxiedService struct {
	*httptest.Server
	hub fakeservice.Hub

	mu       sync.Mutex
	requests []string                      // in the format of forward.Proxy
	conns    int                           // number of accepted connections
	streams  map[string]context.CancelFunc // functions that end streams, by client id
}

func (p *proxiedService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, end := context.WithCancel(r.Context())
	defer end()
	p.mu.Lock()
	p.requests = append(p.requests, r.Method+" http://"+r.Host+r.URL.Path)
	if id := r.URL.Query().Get("id"); r.Method == http.MethodDelete {
		defer p.streams[id]()
	} else if id != "" {
		p.streams[id] = end
	}
	p.mu.Unlock()
	if r.Method != http.MethodDelete {
		p.hub.ServeHTTP(w, r.WithContext(ctx))
	}
}

// startProxied starts the service, and a proxy that resolves all names to the address of the service. It also returns
// the settings of a run.
func startProxied(t *testing.T, secure bool, o forward.Options) (service *proxiedService, proxy *forward.Proxy, env, args []string) {
	t.Helper()
	service = &proxiedService{hub: fakeservice.Hub{RequireJoin: true}, streams: map[string]context.CancelFunc{}}
	service.Server = httptest.NewUnstartedServer(service)
	service.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			service.mu.Lock()
			defer service.mu.Unlock()
			service.conns++
		}
	}
	base, start := "http://service.test", service.Start
	if secure {
		base, start = "https://service.test", service.StartTLS
	}
	start()
	t.Cleanup(service.CloseClientConnections)
	t.Cleanup(service.Close)
	o.User = url.UserPassword("joe", "open-sesame/7")
	o.Resolve = func(string) string { return service.Listener.Addr().String() }
	proxy, err := forward.Start(o)
	require.NoError(t, err)
	t.Cleanup(proxy.Stop)
	description := describeHub(t, `end: { by: 'request', method: 'DELETE', url: '{base}/end?id={id}' },
		connect: { url: '{base}/sub/{topic}?id={id}',
			then: { event: 'HELLO', client: 'json:$.client', url: '{base}/join', body: '{"client":"{client}","topic":"{topic}"}', ok: [204] } },`)
	env = []string{"http_proxy=" + proxy.URL, "HTTPS_PROXY=" + proxy.URL, "NO_PROXY=", "no_proxy=", "K6_INSECURE_SKIP_TLS_VERIFY=true"}
	args = append(publishFlags(description, base), "--prefix", "px-", "--connections", "16", "--connections-per-vu", "8", "--seconds", "9")
	return service, proxy, env, args
}

// All requests of a run to a service use the proxy: trial, streams, second requests, messages, DELETE, and requests of
// soak itself. The control group does not use the proxy, because its reference is on this machine. No file contains the
// password.
func TestRunThroughAProxy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		secure bool
		o      forward.Options
	}{
		"http":                         {false, forward.Options{}},
		"https through an https proxy": {true, forward.Options{TLS: sockets.ServerTLS()}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service, proxy, env, args := startProxied(t, c.secure, c.o)
			r := begin(t, env, args...)
			v := r.verdict()
			require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
			require.Equal(t, 16, v.Connections.Completed)
			require.NotNil(t, v.Control)
			proxyURL := strings.Replace(proxy.URL, "joe:open-sesame%2F7@", "", 1)
			require.Contains(t, strings.Join(v.Warnings, "\n"), "the runners connect to service.test through the proxy "+proxyURL)

			service.mu.Lock()
			defer service.mu.Unlock()
			if c.secure {
				require.Equal(t, []string{"CONNECT service.test:443"}, slices.Compact(proxy.Requests()))
				require.Len(t, proxy.Requests(), service.conns)
			} else {
				require.ElementsMatch(t, service.requests, proxy.Requests())
			}
			for _, kind := range []string{"GET http://service.test/sub/", "POST http://service.test/join", "POST http://service.test/pub/", "DELETE http://service.test/end"} {
				require.True(t, slices.ContainsFunc(service.requests, func(request string) bool { return strings.HasPrefix(request, kind) }), kind)
			}
			require.NotContains(t, r.out.String(), "sesame")
			require.NoError(t, filepath.WalkDir(string(r.dir), func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				text, err := os.ReadFile(path)
				require.NotContains(t, string(text), "sesame", path)
				return err
			}))
		})
	}
}

// When the proxy stops, all streams are dropped.
func TestProxyClosesStreams(t *testing.T) {
	t.Parallel()
	_, proxy, env, args := startProxied(t, true, forward.Options{})
	r := begin(t, env, args...)
	await(t, "all streams must be open", func() bool { return proxy.Tunnels() >= 16 })
	time.Sleep(2 * time.Second)
	proxy.Stop()
	v := r.verdict()
	require.Equal(t, verdict.Fail, v.Verdict, r.out.String())
	require.Equal(t, 16, v.Connections.Dropped, r.out.String())
	require.Contains(t, reasons(v), "no longer answers: Get \"https://service.test/healthz\": the proxy http://")
}

// An invalid or unreachable proxy ends a run before the load. The error omits the password in the URL of the proxy.
func TestUnusableProxies(t *testing.T) {
	t.Parallel()
	r := begin(t, []string{"HTTP_PROXY=http://joe:open/sesame@127.0.0.1:1", "NO_PROXY="}, "--backend-url", "http://service.test", "--noop-interval", "0.5", "--connections", "4", "--seconds", "7")
	require.Equal(t, 64, r.end())
	require.Contains(t, r.out.String(), "HTTP_PROXY must be the URL of a proxy; write http://HOST:PORT")
	require.NotContains(t, r.out.String(), "sesame")

	r = begin(t, []string{"http_proxy=http://joe:open-sesame@127.0.0.1:1", "NO_PROXY=", "no_proxy="}, "--backend-url", "http://service.test", "--noop-interval", "0.5", "--connections", "4", "--seconds", "7")
	require.NotZero(t, r.end())
	require.Contains(t, r.out.String(), "the proxy http://127.0.0.1:1 cannot be reached: dial tcp 127.0.0.1:1: connect: connection refused")
	require.NotContains(t, r.out.String(), "sesame")
}

package stream

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http/httpproxy"

	"github.com/sse-soak/sse-soak/test/forward"
)

// Requests of probe and trial use the proxy too. Errors of the proxy name the proxy.
func TestRequestsGoThroughAProxy(t *testing.T) {
	t.Parallel()
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("data: 0\n\n"))
	}))
	t.Cleanup(service.Close)
	user := url.UserPassword("joe", "sesame")
	through, err := forward.Start(forward.Options{
		User: user, Resolve: func(string) string { return strings.TrimPrefix(service.URL, "http://") },
		Refuse: func(r *http.Request) string {
			if r.Method == http.MethodConnect {
				return "no tunnels"
			}
			return ""
		},
	})
	require.NoError(t, err)
	t.Cleanup(through.Stop)
	plain := strings.Replace(through.URL, "joe:sesame@", "", 1)
	closed := httptest.NewServer(nil)
	closed.Close()
	for _, tt := range []struct{ proxy, url, want string }{
		{through.URL, "http://service.test/events", ""},
		{plain, "http://service.test/", "GET http://service.test/: the proxy " + plain + " refused the request with 407 Proxy Authentication Required: who are you?; set user and password in HTTP_PROXY, as http://user:password@host:port"},
		{plain, "https://service.test/", "GET https://service.test/: the proxy " + plain + " refused CONNECT service.test:443 with 407 Proxy Authentication Required: who are you?; set user and password in HTTPS_PROXY, as http://user:password@host:port"},
		{through.URL, "https://service.test/", "GET https://service.test/: the proxy " + plain + " refused CONNECT service.test:443 with 403 Forbidden: no tunnels"},
		{strings.Replace(closed.URL, "//", "//joe:sesame@", 1), "http://service.test/", "GET http://service.test/: the proxy " + closed.URL + " cannot be reached: dial tcp " + closed.URL[len("http://"):] + ": connect: connection refused"},
	} {
		client := Client{Proxies: (&httpproxy.Config{HTTPProxy: tt.proxy, HTTPSProxy: tt.proxy}).ProxyFunc()}
		s, err := client.Open(t.Context(), get(tt.url))
		if tt.want != "" {
			require.EqualError(t, err, tt.want)
			continue
		}
		require.NoError(t, err)
		require.True(t, s.IsEventStream())
		s.Close()
	}
	require.Equal(t, []string{"GET http://service.test/events"}, through.Requests())
}

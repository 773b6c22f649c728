package publish

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http/httpproxy"

	"github.com/sse-soak/sse-soak/test/forward"
)

// Each message reaches an http or https service once, through an http or https proxy.
func TestMessagesGoThroughAProxy(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"http", "https"} {
		for _, secure := range []bool{false, true} {
			h := newHub(t, nil)
			service := httptest.NewUnstartedServer(h.Config.Handler)
			service.StartTLS()
			t.Cleanup(service.Close)
			o := forward.Options{User: url.UserPassword("us er", "pass"), Resolve: func(string) string {
				return strings.TrimPrefix(map[string]string{"http": h.URL, "https": service.URL}[scheme], scheme+"://")
			}}
			if secure {
				o.TLS = &tls.Config{Certificates: service.TLS.Certificates}
			}
			forwarder, err := forward.Start(o)
			require.NoError(t, err)
			t.Cleanup(forwarder.Stop)
			c := newConfig(t, scheme+"://joe:x@service.test")
			c.InsecureSkipVerify, c.For = true, time.Second/4
			c.Proxies = (&httpproxy.Config{HTTPProxy: forwarder.URL, HTTPSProxy: forwarder.URL}).ProxyFunc()
			p := publishAll(t, c)
			require.EqualValues(t, 50, p.Sums().Confirmed, p.Refusals())
			require.Equal(t, numbersUpTo(25), h.numbers("a"))
			requests := forwarder.Requests()
			if scheme == "http" {
				slices.Sort(requests)
				require.Len(t, requests, 50)
				require.Equal(t, []string{"POST http://service.test/pub/a", "POST http://service.test/pub/b"}, slices.Compact(requests))
				continue
			}
			require.LessOrEqual(t, len(requests), 2, "tunnels must be reused")
			require.Equal(t, []string{"CONNECT service.test:443"}, slices.Compact(requests))
		}
	}
}

func TestErrorsOfAProxyNameTheProxy(t *testing.T) {
	t.Parallel()
	forwarder, err := forward.Start(forward.Options{Refuse: func(*http.Request) string { return "not from here" }})
	require.NoError(t, err)
	t.Cleanup(forwarder.Stop)
	closed := httptest.NewServer(nil)
	closed.Close()
	for _, tt := range []struct{ proxy, base, want string }{
		{forwarder.URL, "https://service.test", "no connection: the proxy " + forwarder.URL + " refused CONNECT service.test:443 with 403 Forbidden: not from here"},
		{forwarder.URL, "http://service.test", "403 Forbidden (through the proxy " + forwarder.URL + "): not from here"},
		{strings.Replace(closed.URL, "//", "//joe:sesame@", 1), "http://service.test", "no connection: the proxy " + closed.URL + " cannot be reached: dial tcp "},
	} {
		c := newConfig(t, tt.base)
		c.For, c.Proxies = time.Second/20, (&httpproxy.Config{HTTPProxy: tt.proxy, HTTPSProxy: tt.proxy}).ProxyFunc()
		require.True(t, strings.HasPrefix(publishAll(t, c).Refusals()[0].Text, tt.want), publishAll(t, c).Refusals()[0].Text)
	}
}

package sseclient

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http/httpproxy"
)

// A handshake with a proxy uses as much memory as one with a server.
func TestHandshakesWithProxiesNeedAPermit(t *testing.T) {
	t.Parallel()
	for proxyURL, want := range map[string]string{"http://p.test": "https", "https://p.test": "http https"} {
		proxies := (&httpproxy.Config{HTTPProxy: proxyURL, HTTPSProxy: proxyURL, NoProxy: ".direct.test"}).ProxyFunc()
		var found []string
		for _, scheme := range []string{"http", "https"} {
			if needsHandshake(scheme+"://service.test", proxies) {
				found = append(found, scheme)
			}
		}
		require.Equal(t, want, strings.Join(found, " "))
		require.False(t, needsHandshake("http://x.direct.test", proxies))
	}
}

func TestDroppedStreamNeedsNoPermit(t *testing.T) {
	t.Parallel()
	var s Stream
	require.True(t, s.needsPermit())
	s.drop.Store(dropDelayed)
	require.False(t, s.needsPermit())
}

package probe

import (
	"context"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/hub"
	"github.com/sse-soak/sse-soak/test/module"
)

// publishRequest publishes to the hub.
var publishRequest = Request{URL: "{base}/pub/{topic}", Body: `{"run":"{run}","seq":{seq},"t":{sentAt},"sum":"{sum}"}`}

type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// inMemory starts a hub in a bubble of testing/synctest, in which only waits need time. dial connects to it, which
// needs a millisecond, so that no message arrives at the instant of its sending.
func inMemory(t *testing.T, h *hub.Hub) (server *httptest.Server, dial dialer) {
	t.Helper()
	server, connect := h.StartInMemory(t)
	return server, func(ctx context.Context, _, _ string) (net.Conn, error) {
		time.Sleep(time.Millisecond)
		return connect(ctx)
	}
}

// probe probes a hub for two seconds at most. It returns the module and its description.
func probe(t *testing.T, server *httptest.Server, c Config) (text, json string) {
	t.Helper()
	if c.URL == "" {
		c.URL = server.URL + "/sub/room-1"
		c.Topic = "room-1"
	}
	c.Streams, c.Pace = 3, 40*time.Millisecond
	if c.Length == 0 {
		c.Length = 1600 * time.Millisecond
	}
	result, err := Run(t.Context(), c)
	require.NoError(t, err)
	t.Log(result.Module)
	require.NotRegexp(t, `@ts-check|import\(`, result.Module, "an editor shows an error in an empty folder")
	return result.Module, string(module.Evaluate(t, result.Module))
}

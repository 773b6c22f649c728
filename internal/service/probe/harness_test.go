package probe

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/test/bufconn"

	"github.com/sse-soak/sse-soak/test/fakeservice"
	"github.com/sse-soak/sse-soak/test/module"
)

// publishRequest publishes to the hub.
var publishRequest = Request{URL: "{base}/pub/{topic}", Body: `{"run":"{run}","seq":{seq},"t":{sentAt},"sum":"{sum}"}`}

type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// inMemory starts a hub on a network within this process, for the fake clock of testing/synctest. dial connects to the hub. It takes a
// millisecond, so that no message arrives at the instant at which it was sent.
func inMemory(t *testing.T, h *fakeservice.Hub) (url string, dial dialer) {
	t.Helper()
	l := bufconn.Listen(1 << 20)
	h.Serve(&http.Server{Handler: h, ReadHeaderTimeout: time.Minute}, l)
	t.Cleanup(h.Stop)
	return "http://" + l.Addr().String(), func(ctx context.Context, _, _ string) (net.Conn, error) {
		time.Sleep(time.Millisecond)
		return l.DialContext(ctx)
	}
}

// probe probes a hub, by default for 1.6 s. It returns the module and its description.
func probe(t *testing.T, base string, c Config) (text, json string) {
	t.Helper()
	if c.URL == "" {
		c.URL = base + "/sub/room-1"
		c.Topic = "room-1"
	}
	c.Streams, c.Pace = 3, 40*time.Millisecond
	if c.Length == 0 {
		c.Length = 1600 * time.Millisecond
	}
	result, err := Run(t.Context(), c)
	require.NoError(t, err)
	t.Log(result.Module)
	require.NotRegexp(t, `@ts-check|import\(`, result.Module, "the module must have no type checks and imports, because its folder may be empty")
	return result.Module, string(module.Evaluate(t, result.Module))
}

package probe

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/test/bufconn"

	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/test/fakeservice"
	"github.com/sse-soak/sse-soak/test/module"
)

// publishRequest publishes to the hub.
var publishRequest = Request{URL: "{base}/pub/{topic}", Body: `{"run":"{run}","seq":{seq},"t":{sentAt},"sum":"{sum}"}`}

type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// A memoryNetwork connects clients and servers of this process, for the fake clock of testing/synctest. Its keys are
// addresses.
type memoryNetwork map[string]*bufconn.Listener

// serve starts a server, and returns its URL.
func (n memoryNetwork) serve(t *testing.T, host string, h http.Handler) (url string) {
	t.Helper()
	server := new(fakeservice.Server)
	if hub, ok := h.(*fakeservice.Hub); ok {
		server = &hub.Server
	}
	l := bufconn.Listen(1 << 20)
	n[host+":80"] = l
	server.Serve(&http.Server{Handler: h, ReadHeaderTimeout: time.Minute}, l)
	t.Cleanup(func() {
		server.Stop()
		time.Sleep(time.Second) // until the handlers that sleep have ended
	})
	return "http://" + host
}

// dial takes a millisecond, so that no message arrives at the instant at which it was sent.
func (n memoryNetwork) dial(ctx context.Context, _, address string) (net.Conn, error) {
	time.Sleep(time.Millisecond)
	return n[address].DialContext(ctx)
}

const base = "http://service.test"

// A description is the result of a probe.
type description struct {
	module string
	notes  string // the module as one line, without the signs of comments
	json   string
	*service.Service
	variables []string // of Result
}

// probe probes a service at base on a fake clock, by default for 1.6 s. It then calls each use in the same bubble.
func probe(t *testing.T, h http.Handler, c Config, uses ...func(t *testing.T, d description, c Config)) (d description) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		network := memoryNetwork{}
		network.serve(t, strings.TrimPrefix(base, "http://"), h)
		c.Dial, c.Streams, c.Pace = network.dial, 3, 40*time.Millisecond
		if c.URL == "" {
			c.URL, c.Topic = base+"/sub/room-1", "room-1"
		}
		if c.Length == 0 {
			c.Length = 1600 * time.Millisecond
		}
		result, err := Run(t.Context(), c)
		require.NoError(t, err)
		t.Log(result.Module)
		require.NotRegexp(t, `@ts-check|import\(`, result.Module, "the module must have no type checks and imports, because its folder may be empty")
		d.module, d.notes = result.Module, strings.Join(strings.Fields(strings.ReplaceAll(result.Module, "//", "")), " ")
		d.variables = result.Variables
		d.json = string(module.Evaluate(t, result.Module))
		d.Service, err = service.Parse([]byte(d.json))
		require.NoError(t, err)
		for _, use := range uses {
			use(t, d, c)
		}
	})
	return d
}

// Package memory connects the clients and a server of one process, for tests with the fake clock of testing/synctest.
package memory

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"google.golang.org/grpc/test/bufconn"

	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// Serve starts a server that stops when the test ends. It returns a function that connects to the server and ignores
// the address.
func Serve(t *testing.T, h http.Handler) (dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	t.Helper()
	server := new(fakeservice.Server)
	if hub, ok := h.(*fakeservice.Hub); ok {
		server = &hub.Server
	}
	l := bufconn.Listen(1 << 18)
	server.Serve(&http.Server{Handler: h, ReadHeaderTimeout: time.Minute}, l)
	t.Cleanup(func() {
		server.Stop()
		time.Sleep(time.Second) // until the handlers that sleep have ended
	})
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		time.Sleep(time.Millisecond) // so that no message arrives at the instant at which it was sent
		return l.DialContext(ctx)
	}
}

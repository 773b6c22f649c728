package sseclient

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"
)

// patience is the timeout of all waits in tests.
const patience = 10 * time.Second

const twoEvents = "data: a\n\ndata: b\n\n"

// serveStreams starts a server of event streams for HTTP/1.1 and HTTP/2, with TLS if secure is set. send writes the
// events of a stream, which stays open after them. On Linux, arrived reports whether the clients' kernel has
// acknowledged all sent bytes.
func serveStreams(t *testing.T, secure bool, send func(w http.ResponseWriter)) (url string, arrived func() bool) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		send(w)
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	var mu sync.Mutex
	var conns []net.Conn
	server.Config.ConnState = func(c net.Conn, state http.ConnState) {
		if state != http.StateNew {
			return
		}
		if encrypted, ok := c.(*tls.Conn); ok {
			c = encrypted.NetConn()
		}
		mu.Lock()
		defer mu.Unlock()
		conns = append(conns, c)
	}
	arrived = func() bool {
		mu.Lock()
		defer mu.Unlock()
		return !slices.ContainsFunc(conns, func(c net.Conn) bool { return unacknowledgedBytes(c) > 0 })
	}
	if secure {
		server.EnableHTTP2 = true
		server.StartTLS()
		return server.URL, arrived
	}
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	return server.URL, arrived
}

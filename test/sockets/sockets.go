// Package sockets provides a server for tests that read and write the raw bytes of connections.
package sockets

import (
	"net"
	"sync"
	"testing"
)

// Serve calls handle for each connection to the returned address, and closes the connection when handle returns. At the
// end of the test, Serve closes the open connections and waits for all calls.
func Serve(t testing.TB, handle func(conn net.Conn)) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ServeOn(t, l, handle)
	return l.Addr().String()
}

// ServeOn is like Serve, but accepts connections from the given listener.
func ServeOn(t testing.TB, l net.Listener, handle func(conn net.Conn)) {
	var calls sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	calls.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open[conn] = true
			mu.Unlock()
			calls.Go(func() {
				handle(conn)
				_ = conn.Close()
				mu.Lock()
				delete(open, conn)
				mu.Unlock()
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for conn := range open {
			_ = conn.Close()
		}
		mu.Unlock()
		calls.Wait()
	})
}

//go:build browser

package live

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/untested"
)

// A network connects the browser and the server. While it is down, no data from the server reaches the browser, and no
// new connection reaches the server.
type network struct {
	listener net.Listener
	address  string

	mu   sync.Mutex
	down bool
	open []net.Conn
}

func newNetwork(t *testing.T, address string) *network {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	n := &network{listener: l, address: address}
	var serving sync.WaitGroup
	serving.Go(n.serve)
	t.Cleanup(func() {
		_ = l.Close()
		n.setDown(false) // ends open connections
		serving.Wait()
	})
	return n
}

func (n *network) serve() {
	for {
		c, err := n.listener.Accept()
		if err != nil {
			return
		}
		n.mu.Lock()
		down := n.down
		n.open = append(n.open, c)
		n.mu.Unlock()
		if down {
			continue // no data is ever transferred
		}
		go n.pipe(c)
	}
}

func (n *network) pipe(c net.Conn) {
	s, err := net.Dial("tcp", n.address)
	if err != nil {
		_ = c.Close()
		return
	}
	go func() { _, _ = io.Copy(s, c); _ = s.Close() }()
	_, _ = io.Copy(gate{n, c}, s)
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.down {
		_ = c.Close()
	}
}

// A gate is a connection of a browser through a network.
type gate struct {
	n *network
	net.Conn
}

// Write discards the data while the network is down.
func (g gate) Write(p []byte) (int, error) {
	g.n.mu.Lock()
	down := g.n.down
	g.n.mu.Unlock()
	if down {
		return len(p), nil
	}
	return g.Conn.Write(p)
}

// setDown interrupts the network if down is true, and otherwise restores it and closes all connections.
func (n *network) setDown(down bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = down
	if !down {
		for _, c := range n.open {
			_ = c.Close()
		}
		n.open = nil
	}
}

// TestBrowserFollowsARun advances a run when internal/report/html/browser/live.test.js requests it.
func TestBrowserFollowsARun(t *testing.T) {
	t.Parallel()
	browser := untested.Browser(t)
	h := newSimulatedRun(1)
	h.at = time.Now().Add(-10 * time.Minute)
	h.started = h.at
	h.Prometheus = "http://127.0.0.1:9090"
	s, err := Listen("127.0.0.1:0", h.View, time.Hour)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	n := newNetwork(t, s.listener.Addr().String())
	var finished sync.WaitGroup
	t.Cleanup(finished.Wait)
	seconds := 0
	director := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/advance": // by ten seconds
			for range 10 {
				h.second()
				seconds++
				if seconds%5 == 0 {
					text := "1 missed"
					if seconds == 5 {
						text = "<img src=x onerror=alert(1)>"
					}
					h.Watch.mu.Lock()
					h.Watch.note(Finding{At: h.at, Runner: 2, ID: fmt.Sprintf("soak-%d", seconds), Text: text})
					h.Watch.mu.Unlock()
				}
				s.publish()
			}
		case "/disconnect", "/restore":
			n.setDown(r.URL.Path == "/disconnect")
		case "/finish":
			finished.Go(func() { s.Finish(t.Context(), []byte("<!doctype html><title>soak t pass</title><h1>the report")) })
		}
	}))
	t.Cleanup(director.Close)
	cmd := exec.CommandContext(t.Context(), "node", "--test", "--test-reporter=spec", "../../report/html/browser/live.test.js")
	cmd.Env = append(os.Environ(), "CHROMIUM="+browser, "DIRECTOR="+director.URL, "PAGE=http://"+n.listener.Addr().String()+"/", "DIRECT="+s.URL())
	out, err := cmd.CombinedOutput()
	t.Log(string(out))
	require.NoError(t, err)
}

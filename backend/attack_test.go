package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// attackLateness is the maximum lateness of a noop while the backend is under attack, without the delays of this
// machine.
const attackLateness = 250 * time.Millisecond

// requireNoEffect opens streams while attack runs, and requires that no number is missing, no noop is late and no
// stream is closed. Its tests do not run in parallel, because the CPU load of other tests would delay noops.
func requireNoEffect(t *testing.T, s *testService, attack func()) {
	t.Helper()
	done := make(chan struct{})
	stalls := make(chan time.Duration)
	go func() { stalls <- maxWakeUpDelay(done) }()
	var wg sync.WaitGroup
	var latest [10]time.Duration
	for i := range latest {
		c := s.open(fmt.Sprintf("open-%d", i))
		wg.Go(func() {
			last := uint64(0)
			for {
				e, err := c.read()
				if err == io.EOF {
					return
				}
				if err != nil || e.id != last+1 {
					t.Errorf("%s: number %d after %d: %v", c.id, e.id, last, err)
					return
				}
				last = e.id
				slot := time.Duration(e.sent-s.clk.unix) * time.Microsecond / s.cfg.NoopInterval
				due := s.clk.start.Add(slot * s.cfg.NoopInterval)
				latest[i] = max(latest[i], e.at.Sub(due))
			}
		})
	}
	attack()
	for i := range latest {
		s.disconnect(fmt.Sprintf("open-%d", i))
	}
	wg.Wait()
	close(done)
	// A noop waits for three goroutines (schedule, network and client), each for up to twice the delay.
	allowed := attackLateness + 6*<-stalls
	for i, lateness := range latest {
		require.LessOrEqual(t, lateness, allowed, "open-%d", i)
	}
}

// maxWakeUpDelay returns the maximum wake-up delay of a goroutine of this process.
func maxWakeUpDelay(done <-chan struct{}) (latest time.Duration) {
	for due := time.Now(); ; {
		due = due.Add(10 * time.Millisecond)
		select {
		case <-time.After(time.Until(due)):
			latest, due = max(latest, time.Since(due)), time.Now()
		case <-done:
			return latest
		}
	}
}

// Connections that never complete their headers are closed after the header timeout. If they fill the gate, other
// clients wait until then.
func TestSlowloris(t *testing.T) {
	s := startTest(t, "--noop-interval=200ms", "--header-timeout=500ms")
	requireNoEffect(t, s, func() {
		var list []net.Conn
		for range s.cfg.httpConnections/8 + 50 {
			conn := dial(t, s.addr)
			_, _ = io.WriteString(conn, "GET /event/connect?id=x HTTP/1.1\r\nHost: x\r\nX-Slow: ")
			list = append(list, conn)
		}
		s.open("punctual").numbers(2)
		for _, conn := range list {
			_, err := io.ReadAll(conn) // until the server closes the connection
			if err != nil {
				require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
			}
		}
	})
}

// If idle connections fill the gate, a connect still succeeds, because the gate reports that it is full and idle
// connections are closed.
func TestFullGate(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	freed := make(chan net.Conn, 2)
	g := newGate(l, 2, func(full bool) {
		if full {
			(<-freed).Close()
		}
	})
	defer g.Close()
	for range 3 {
		dial(t, l.Addr().String())
		conn, err := g.Accept()
		require.NoError(t, err)
		if len(freed) < cap(freed) {
			freed <- conn
		}
	}
	waiting := make(chan error)
	go func() {
		_, err := g.Accept()
		waiting <- err
	}()
	g.Close()
	require.ErrorIs(t, <-waiting, net.ErrClosed)
}

// A gate with one slot reports that it is free again. Otherwise keep-alives would stay disabled.
func TestGateOfOneConnectionReportsThatItIsFree(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	states := make(chan bool, 2)
	g := newGate(l, 1, func(full bool) { states <- full })
	defer g.Close()
	dial(t, l.Addr().String())
	conn, err := g.Accept()
	require.NoError(t, err)
	waiting := make(chan error, 1)
	go func() {
		_, err := g.Accept()
		waiting <- err
	}()
	require.True(t, <-states)
	require.NoError(t, conn.Close())
	require.False(t, <-states)
	g.Close()
	require.ErrorIs(t, <-waiting, net.ErrClosed)
}

// Connects over the limit are refused with Retry-After.
func TestFlood(t *testing.T) {
	s := startTest(t, "--noop-interval=200ms", "--max-connections=30")
	requireNoEffect(t, s, func() {
		var wg sync.WaitGroup
		var mu sync.Mutex
		status := map[int]int{}
		for i := range 200 {
			wg.Go(func() {
				conn, err := net.Dial("tcp", s.addr)
				if err != nil {
					t.Error(err)
					return
				}
				t.Cleanup(func() { conn.Close() })
				_ = conn.SetDeadline(time.Now().Add(testTimeout))
				c := openOn(t, conn, fmt.Sprintf("flood-%d", i))
				mu.Lock()
				defer mu.Unlock()
				status[c.resp.StatusCode]++
				if c.resp.StatusCode == 503 && c.resp.Header.Get("Retry-After") == "" {
					t.Error("no Retry-After")
				}
			})
		}
		wg.Wait()
		require.Equal(t, map[int]int{200: 20, 503: 180}, status)
	})
}

// Huge headers are rejected, and memory does not grow.
func TestHugeHeaders(t *testing.T) {
	s := startTest(t, "--noop-interval=200ms")
	huge := "X-Huge: " + strings.Repeat("x", 64<<10)
	requireNoEffect(t, s, func() {
		for range 50 {
			conn := dial(t, s.addr)
			fmt.Fprintf(conn, "GET /event/connect?id=x HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n", huge)
			data, _ := io.ReadAll(io.LimitReader(conn, 12))
			if len(data) == 12 { // otherwise a reset arrived first
				require.Equal(t, "HTTP/1.1 431", string(data))
			}
			conn.Close()
		}
		conn := dial(t, s.addr)
		fmt.Fprintf(conn, "GET /%s HTTP/1.1\r\nHost: x\r\n\r\n", strings.Repeat("a/", 32<<10))
		data, _ := io.ReadAll(io.LimitReader(conn, 12))
		require.NotContains(t, string(data), "200")
	})
}

func TestDeletesOfUnknownIDs(t *testing.T) {
	s := startTest(t, "--noop-interval=200ms")
	requireNoEffect(t, s, func() {
		conn := dial(t, s.addr)
		const n = 3000
		go func() {
			for i := range n {
				if _, err := fmt.Fprintf(conn, "DELETE /event/forcedisconnect?id=foreign-%d HTTP/1.1\r\nHost: x\r\n\r\n", i); err != nil {
					return
				}
			}
		}()
		streams := 0
		for scan := bufio.NewScanner(conn); streams < n && scan.Scan(); {
			if strings.HasPrefix(scan.Text(), "HTTP/1.1 ") {
				require.Contains(t, scan.Text(), "404")
				streams++
			}
		}
		require.Equal(t, n, streams)
	})
	require.Len(t, s.rows(""), 10, "the ledger must contain no unknown id")
}

// A client that never reads is disconnected as slow. Its backlog is limited, and other clients are not affected.
func TestClientThatNeverReads(t *testing.T) {
	s := startTest(t, "--noop-interval=200ms", "--write-timeout=400ms", "--max-pending=1000")
	requireNoEffect(t, s, func() {
		c := s.open("unread")
		s.fill("unread")
		var maxBytes int
		eventually(t, "the stream is closed", func() bool {
			var open bool
			s.hub.call(func() {
				d := s.hub.devices["unread"]
				if open = d.open; d.queue != nil {
					maxBytes = max(maxBytes, d.queue.bytes)
				} else if open { // the kernel has accepted all data
					s.hub.send("unread", eventBody("", make([]byte, maxBody)))
				}
			})
			return !open
		})
		require.LessOrEqual(t, maxBytes, maxBacklogBytes)
		row := s.rows("unread")["unread"]
		require.Equal(t, "slow", row.Closed)
		require.True(t, row.Slow)
		// In the ledger, sent means accepted by the kernel.
		events, _ := c.readAll()
		require.Equal(t, row.Sent, uint64(len(events)))
	})
	_, _, text := s.request("GET", "/metrics", "")
	require.Contains(t, text, "backend_slow_consumers_total 1\n")
}

// Too many pending frames or bytes end a stream at once.
func TestPendingLimit(t *testing.T) {
	t.Parallel()
	s := startTest(t, "--noop-interval=1h", "--max-pending=3")
	s.open("a")
	// Send again after the kernel has accepted the pending data.
	require.Eventually(t, func() bool {
		s.fill("a")
		s.hub.call(func() {
			for range 4 {
				s.hub.send("a", []byte("data: x\n\n"))
			}
		})
		return s.rows("a")["a"].Closed == "slow"
	}, 20*time.Second, time.Millisecond)

	s = startTest(t, "--noop-interval=1h", "--max-pending=60000")
	s.open("a")
	for range 400 {
		s.request("POST", "/event/broadcast", strings.Repeat("x", 32<<10))
	}
	require.Equal(t, "slow", s.rows("a")["a"].Closed)
	require.LessOrEqual(t, s.hub.replay.bytes, maxKeptBytes)
}

// A client that reads late, but within the write timeout, receives each frame.
func TestSlowReaderLosesNothing(t *testing.T) {
	t.Parallel()
	s := startTest(t, "--noop-interval=100ms", "--max-pending=1000")
	c := s.open("late")
	s.fill("late")
	row := s.rows("late")["late"]
	require.True(t, row.Slow)
	c.numbers(int(row.Last) + 2)
	final := s.disconnect("late")
	_, err := c.readAll()
	require.NoError(t, err)
	require.Equal(t, "forcedisconnect", s.rows("late")["late"].Closed)
	require.GreaterOrEqual(t, final.Last, row.Last+2)
}

package main

import (
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

// attackLateness is the maximum lateness of a noop while the backend is under attack, excluding delays that the test
// machine causes.
const attackLateness = 250 * time.Millisecond

// requireNoEffect opens streams, runs attack, and requires that no number is missing, no noop is late and no stream is
// closed. Tests that call it do not run in parallel, because the CPU load of other tests would delay noops.
func requireNoEffect(t *testing.T, s *testService, attack func()) {
	t.Helper()
	done := make(chan struct{})
	wakeUpDelay := make(chan time.Duration)
	go func() { wakeUpDelay <- maxWakeUpDelay(done) }()
	var wg sync.WaitGroup
	var maxLateness [10]time.Duration // per stream
	for i := range maxLateness {
		c := s.open(fmt.Sprintf("open-%d", i))
		wg.Go(func() {
			last := uint64(0)
			for {
				e, err := c.read()
				if err == io.EOF {
					return
				}
				if err != nil || e.id != last+1 {
					t.Errorf("%s: got number %d (error %v), want number %d", c.id, e.id, err, last+1)
					return
				}
				last = e.id
				slot := time.Duration(e.sent-s.clk.unix) * time.Microsecond / s.cfg.NoopInterval
				due := s.clk.start.Add(slot * s.cfg.NoopInterval)
				maxLateness[i] = max(maxLateness[i], e.at.Sub(due))
			}
		})
	}
	attack()
	for i := range maxLateness {
		s.disconnect(fmt.Sprintf("open-%d", i))
	}
	wg.Wait()
	close(done)
	// A noop waits for three goroutines (scheduler, network and client). Each may wake up late by twice the measured
	// maximum.
	allowed := attackLateness + 6*<-wakeUpDelay
	for i, lateness := range maxLateness {
		require.LessOrEqual(t, lateness, allowed, "open-%d", i)
	}
}

// maxWakeUpDelay measures until done is closed, and returns the maximum wake-up delay of a goroutine of this process.
func maxWakeUpDelay(done <-chan struct{}) (delay time.Duration) {
	for due := time.Now(); ; {
		due = due.Add(10 * time.Millisecond)
		select {
		case <-time.After(time.Until(due)):
			delay, due = max(delay, time.Since(due)), time.Now()
		case <-done:
			return delay
		}
	}
}

// Connections that never complete their headers are closed after the header timeout. If they fill the gate, other
// clients wait until then.
func TestSlowloris(t *testing.T) {
	s := startTest(t, "--noop-interval=200ms", "--header-timeout=500ms", "--max-plain-connections=100")
	requireNoEffect(t, s, func() {
		var list []net.Conn
		for range s.cfg.httpConnections + 50 {
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

func TestFlood(t *testing.T) {
	s := startTest(t, "--noop-interval=200ms", "--max-connections=30")
	requireNoEffect(t, s, func() {
		status := map[int]int{}
		for i := range 100 {
			c := openOn(t, dial(t, s.addr), fmt.Sprintf("flood-%d", i))
			status[c.resp.StatusCode]++
			require.Equal(t, c.resp.StatusCode == 503, c.resp.Header.Get("Retry-After") != "")
		}
		require.Equal(t, map[int]int{200: 20, 503: 80}, status)
		huge := strings.Repeat("a/", 32<<10)
		for _, request := range []string{"GET / HTTP/1.1\r\nHost: x\r\nX-Huge: " + huge, "GET /" + huge + " HTTP/1.1\r\nHost: x"} {
			for range 20 {
				conn := dial(t, s.addr)
				_, _ = io.WriteString(conn, request+"\r\n\r\n")
				if data, _ := io.ReadAll(io.LimitReader(conn, 12)); len(data) == 12 { // otherwise a reset arrived first
					require.Equal(t, "HTTP/1.1 431", string(data))
				}
			}
		}
		for i := range 500 {
			status, _, _ := s.request("DELETE", fmt.Sprintf("/event/forcedisconnect?id=foreign-%d", i), "")
			require.Equal(t, 404, status)
		}
	})
	require.Len(t, s.rows(""), 30, "the ledger must contain no unknown id")
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
	// If the kernel accepts the pending data between two messages, try again.
	require.Eventually(t, func() bool {
		s.fill("a")
		s.hub.call(func() {
			for range 4 {
				s.hub.send("a", []byte("data: x\n\n"))
			}
		})
		return s.rows("a")["a"].Closed == "slow"
	}, 20*time.Second, time.Millisecond, "four pending frames must end the stream")

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

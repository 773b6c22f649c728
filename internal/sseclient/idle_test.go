package sseclient

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// connPair returns both ends of a connection. The client end is a Conn.
func connPair(t *testing.T) (client, server net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	client, err = net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	server, err = l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = client.Close(), server.Close() })
	return &Conn{Conn: client, Received: new(int64), Sent: new(int64)}, server
}

// silentBody returns a body whose read the sweep has interrupted, as after a stop of the process for longer than the
// idle timeout.
func silentBody(client net.Conn) *body {
	b := new(body)
	b.transport = blockingConn{client}
	b.timeout.Store(int64(time.Second))
	b.touch(time.Now().Add(-time.Minute))
	b.isInterrupted.Store(true)
	_ = client.SetReadDeadline(processStart)
	return b
}

func TestInterruptedReadReturnsAvailableData(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		do   func(server net.Conn)
		text string
		err  error
	}{
		"bytes":   {func(c net.Conn) { _, _ = io.WriteString(c, "data: 0\n\n") }, "data: 0\n\n", nil},
		"an end":  {func(c net.Conn) { _ = c.Close() }, "", io.EOF},
		"nothing": {func(net.Conn) {}, "", errIdle},
	} {
		client, server := connPair(t)
		tt.do(server)
		b := silentBody(client)
		p := make([]byte, 64)
		n, err := b.Read(p)
		require.ErrorIs(t, err, tt.err, name)
		require.Equal(t, tt.text, string(p[:n]), name)
		require.False(t, b.isInterrupted.Load(), name)
	}
}

// Bytes may arrive after the check of the sweep, but before its interruption.
func TestOutdatedInterruptIsIgnored(t *testing.T) {
	t.Parallel()
	client, server := connPair(t)
	b := silentBody(client)
	b.touch(time.Now())
	time.AfterFunc(20*time.Millisecond, func() { _, _ = io.WriteString(server, "data: 0\n\n") })
	n, err := b.Read(make([]byte, 64))
	require.NoError(t, err)
	require.Equal(t, 9, n)
}

func TestSweepEndsWithItsLastStream(t *testing.T) {
	t.Parallel()
	var w idleSweep
	marks := make([]*idleMark, 5)
	for i := range marks {
		client, _ := connPair(t)
		marks[i] = markOf(client, time.Hour)
		w.watch(marks[i], time.Now())
	}
	require.NotNil(t, w.timer)
	for _, i := range []int{4, 0, 2, 1, 3} {
		w.forget(marks[i])
		for place, m := range w.marks {
			require.EqualValues(t, place+1, m.index)
		}
	}
	require.Nil(t, w.timer)
	w.sweep() // a sweep that started before the last forget
	require.Nil(t, w.timer)
}

// A stream with a long timeout must not delay the check of a stream with a short timeout. Silence is detected within a
// tenth of the timeout, or within 50 ms if that is longer.
func TestSweepIsPunctual(t *testing.T) {
	t.Parallel()
	var w idleSweep
	slow, _ := connPair(t)
	quick, _ := connPair(t)
	longMark := markOf(slow, time.Hour)
	shortMark := markOf(quick, 500*time.Millisecond)
	w.watch(longMark, time.Now())
	start := time.Now()
	w.watch(shortMark, start)
	_, err := quick.Read(make([]byte, 1))
	duration := time.Since(start)
	require.ErrorContains(t, err, "timeout")
	require.GreaterOrEqual(t, duration, shortMark.limit())
	require.True(t, shortMark.isInterrupted.Load())
	require.False(t, longMark.isInterrupted.Load())

	now := time.Since(processStart)
	for _, timeout := range []time.Duration{time.Millisecond, 200 * time.Millisecond, time.Second, time.Minute} {
		m := markOf(nil, timeout)
		m.last.Store(int64(now - timeout + 1)) // silent 1 ns later
		require.LessOrEqual(t, m.nextCheck(now)-now, max(timeout/10, 50*time.Millisecond))
		m.last.Store(int64(now))
		require.LessOrEqual(t, m.nextCheck(now)-now, max(timeout, minGrain))
	}
	w.forget(shortMark)
	w.forget(longMark)
}

// After a stall of the process or the machine, the server gets more time: the duration of the stall, up to half of the
// timeout.
func TestStallDoesNotCountAsSilence(t *testing.T) {
	t.Parallel()
	const timeout = time.Minute
	for _, tt := range []struct{ delay, extension time.Duration }{
		{timeout / 20, 0}, {timeout / 10, timeout / 10}, {timeout / 4, timeout / 4}, {10 * timeout, timeout / 2},
	} {
		client, _ := connPair(t)
		m := markOf(client, timeout)
		now := time.Since(processStart)
		m.last.Store(int64(now - timeout - tt.delay))
		w := idleSweep{marks: []*idleMark{m}, next: now - tt.delay}
		w.sweep()
		require.Equal(t, tt.extension == 0, m.isInterrupted.Load(), "a sweep that is %v late must interrupt only without an extension", tt.delay)
		if tt.extension > 0 {
			require.InDelta(t, (now + tt.extension).Seconds(), m.nextCheck(now).Seconds(), .25*tt.extension.Seconds())
		}
	}
}

func markOf(conn net.Conn, timeout time.Duration) *idleMark {
	m := &idleMark{transport: blockingConn{conn}}
	m.timeout.Store(int64(timeout))
	return m
}

package sseclient

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// connPair returns both ends of a connection, ours as a Client dials it.
func connPair(t *testing.T) (ours, theirs net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	ours, err = net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	theirs, err = l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	return &Conn{Conn: ours, Received: new(int64), Sent: new(int64)}, theirs
}

// silentBody returns a body in the state that a process finds after it was stopped for longer than its idleTimeout:
// the sweep has interrupted the read before.
func silentBody(ours net.Conn) *body {
	b := new(body)
	b.transport = blocking{ours}
	b.timeout.Store(int64(time.Second))
	b.touch(time.Now().Add(-time.Minute))
	b.interrupted.Store(true)
	_ = ours.SetReadDeadline(processStart)
	return b
}

func TestInterruptedReadReturnsAvailableData(t *testing.T) {
	t.Parallel()
	for name, bring := range map[string]struct {
		do   func(theirs net.Conn)
		text string
		err  error
	}{
		"bytes":  {func(c net.Conn) { _, _ = io.WriteString(c, "data: 0\n\n") }, "data: 0\n\n", nil},
		"an end": {func(c net.Conn) { _ = c.Close() }, "", io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ours, theirs := connPair(t)
			bring.do(theirs)
			b := silentBody(ours)
			p := make([]byte, 64)
			n, err := b.Read(p)
			require.ErrorIs(t, err, bring.err)
			require.Equal(t, bring.text, string(p[:n]))
			require.False(t, b.interrupted.Load())
		})
	}
}

func TestInterruptedReadWithoutDataIsIdle(t *testing.T) {
	t.Parallel()
	ours, _ := connPair(t)
	_, err := silentBody(ours).Read(make([]byte, 64))
	require.ErrorIs(t, err, errIdle)
}

// The bytes came between the sweep's look and its interruption.
func TestOutdatedInterruptIsIgnored(t *testing.T) {
	t.Parallel()
	ours, theirs := connPair(t)
	b := silentBody(ours)
	b.touch(time.Now())
	time.AfterFunc(20*time.Millisecond, func() { _, _ = io.WriteString(theirs, "data: 0\n\n") })
	n, err := b.Read(make([]byte, 64))
	require.NoError(t, err)
	require.Equal(t, 9, n)
}

func TestSweepEndsWithItsLastStream(t *testing.T) {
	t.Parallel()
	var w idleSweep
	marks := make([]*idleMark, 5)
	for i := range marks {
		ours, _ := connPair(t)
		marks[i] = markOf(ours, time.Hour)
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
	w.sweep() // one that was on its way
	require.Nil(t, w.timer)
}

// A stream with a short timeout is not made to wait for one with a long one, and silence
// is noticed within a tenth of the timeout.
func TestSweepIsPunctual(t *testing.T) {
	t.Parallel()
	var w idleSweep
	slow, _ := connPair(t)
	quick, _ := connPair(t)
	long := markOf(slow, time.Hour)
	short := markOf(quick, 500*time.Millisecond)
	w.watch(long, time.Now())
	begun := time.Now()
	w.watch(short, begun)
	_, err := quick.Read(make([]byte, 1))
	took := time.Since(begun)
	require.ErrorContains(t, err, "timeout")
	require.GreaterOrEqual(t, took, short.limit())
	require.True(t, short.interrupted.Load())
	require.False(t, long.interrupted.Load())

	now := time.Since(processStart)
	for _, timeout := range []time.Duration{time.Millisecond, 200 * time.Millisecond, time.Second, time.Minute} {
		m := markOf(nil, timeout)
		m.last.Store(int64(now - timeout + 1)) // silent in a moment
		require.LessOrEqual(t, m.due(now)-now, max(timeout/10, 50*time.Millisecond))
		m.last.Store(int64(now))
		require.LessOrEqual(t, m.due(now)-now, max(timeout, minIdleGrain))
	}
	w.forget(short)
	w.forget(long)
}

// A process that did not run, perhaps because its whole machine was stalled, knows nothing of the
// server: it waits for it as long again, up to half of the timeout.
func TestStallIsNotSilence(t *testing.T) {
	t.Parallel()
	const timeout = time.Minute
	for _, c := range []struct{ late, waits time.Duration }{
		{timeout / 20, 0}, {timeout / 10, timeout / 10}, {timeout / 4, timeout / 4}, {10 * timeout, timeout / 2},
	} {
		ours, _ := connPair(t)
		m := markOf(ours, timeout)
		now := time.Since(processStart)
		m.last.Store(int64(now - timeout - c.late))
		w := idleSweep{marks: []*idleMark{m}, next: now - c.late}
		w.sweep()
		require.Equal(t, c.waits == 0, m.interrupted.Load(), "%v late", c.late)
		if c.waits > 0 {
			require.InDelta(t, (now + c.waits).Seconds(), m.due(now).Seconds(), .25*c.waits.Seconds())
		}
	}
}

// markOf returns the mark of a stream that may be silent for a time.
func markOf(conn net.Conn, timeout time.Duration) *idleMark {
	m := &idleMark{transport: blocking{conn}}
	m.timeout.Store(int64(timeout))
	return m
}

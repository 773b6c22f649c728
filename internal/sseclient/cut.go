package sseclient

import (
	"errors"
	"io"
	"math"
	"net"
	"os"
	"sync"
	"time"
)

// A Cut is a way in which a client breaks its own stream. docs/suites.md describes what the server notices of each.
type Cut uint8

// The ways.
const (
	CutFIN   Cut = iota + 1 // the connection is closed: FIN
	CutRST                  // it is reset: RST, and what was not read yet is lost
	CutHalf                 // the client vanishes: it sends and acknowledges nothing; a minute later it resets
	CutGone                 // it vanishes for good: until the process ends
	CutPause                // the reader stops for a time, and continues with the same connection
	cutSlow                 // no cut: the stream is read slowly, or not at all
)

// errCut is how the reading of a cut stream ends.
var errCut = errors.New("this client cut the stream itself")

// A cutting is a cut that was requested.
type cutting struct {
	kind    Cut
	pause   time.Duration
	rate    int           // bytes per second of a slow stream; math.MaxInt32: no longer slow
	until   time.Time     // end of a pause that started, or of a slow stream: its next read
	done    bool          // the connection is cut, or the pause has started
	stopped chan struct{} // closed when the stream is stopped
}

// Cut requests a cut. A polled stream makes it in its next turn, soon; it is not made if the stream ends before. A goroutine waits
// in the read of any other stream, so that its connection is cut here; it pauses after its next read. pause is the duration of a
// CutPause. Cut returns false if no stream is open, or one is being cut. Any goroutine may call it.
func (s *Stream) Cut(kind Cut, pause time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.cuttable() || s.cutting != nil {
		return false
	}
	c := &cutting{kind: kind, pause: pause, stopped: make(chan struct{})}
	if st, ok := s.raw.(*h2Stream); ok {
		return s.cutShared(st, c)
	}
	if polled, ok := s.raw.(*polled); ok {
		s.request(c)
		_ = polled.Close() // gives it a turn
		return true
	}
	if kind != CutPause {
		tcp := tcpOf(s.raw)
		if tcp == nil || cutNow(tcp, kind) != nil {
			return false
		}
		c.done = true
	}
	s.request(c)
	return true
}

// cuttable reports whether a stream is open. The caller holds mu.
func (s *Stream) cuttable() bool { return s.stopped == "" && s.raw != nil && s.cancel == nil }

// request makes the next turn of the stream notice a cut. The caller holds mu.
func (s *Stream) request(c *cutting) {
	s.cutting = c
	s.attention.Store(true)
}

// How a stream reconnects after Drop, until it is dropped again.
const (
	usualReturn  int32 = iota // it was not dropped
	spreadReturn              // after the reconnection time, without a permit to dial
	returnAtOnce              // at once
)

// Drop closes the open stream as a client does that loses its network for a moment. It reconnects with the last event ID, at once
// or after the reconnection time, and dials without a permit: a storm of reconnects must not be throttled. Drop returns false if no
// stream is open. Any goroutine may call it.
func (s *Stream) Drop(atOnce bool) bool {
	previous := s.dropped.Load()
	kind := spreadReturn
	if atOnce {
		kind = returnAtOnce
	}
	s.dropped.Store(kind) // before the cut, which another goroutine makes
	if !s.Cut(CutFIN, 0) {
		s.dropped.Store(previous)
		return false
	}
	return true
}

// needsPermit reports whether the stream waits for a permit to dial.
func (s *Stream) needsPermit() bool { return s.dropped.Load() == usualReturn }

// Vanish leaves the open stream half-open, as a machine does that is gone. It returns false if no stream is open, and an error if
// this system cannot do that. Any goroutine may call it.
func (s *Stream) Vanish() (bool, error) {
	if err := CanVanish(); err != nil {
		return false, err
	}
	s.mu.Lock()
	st, ok := s.raw.(*h2Stream)
	s.mu.Unlock()
	if ok && !st.conn.singleStream {
		return false, errSharedConnection
	}
	return s.Cut(CutGone, 0), nil
}

// slowTick is how often a slow stream is read.
const slowTick = 250 * time.Millisecond

var errNotSlow = errors.New("streams can be read slowly on Linux only")

// Slow limits the bytes per second that are read from the open stream, 0: none. Further data fills the buffer of the
// connection, and then that of the server. math.Inf(1) ends that. It returns false if no stream is open, or it is
// being cut, and an error if the stream cannot be read slowly. Any goroutine may call it.
func (s *Stream) Slow(bytesPerSecond float64) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.cuttable() || s.cutting != nil && s.cutting.kind != cutSlow {
		return false, nil
	}
	if st, ok := s.raw.(*h2Stream); ok && !st.conn.singleStream {
		return false, errSharedConnection
	}
	if polledBy(s.raw) == nil {
		return false, errNotSlow
	}
	s.request(&cutting{kind: cutSlow, rate: int(min(bytesPerSecond, math.MaxInt32)), stopped: make(chan struct{})})
	_ = s.raw.Close() // gives it a turn
	return true, nil
}

// tcpOf returns the connection below the wrappers, nil if there is none.
func tcpOf(raw io.Closer) *net.TCPConn {
	if conn, ok := raw.(net.Conn); ok {
		raw = rawOf(conn)
	}
	if counted, ok := raw.(*Conn); ok {
		raw = counted.Conn
	}
	tcp, _ := raw.(*net.TCPConn)
	return tcp
}

// cutNow cuts a connection that Go's own poller reads.
func cutNow(tcp *net.TCPConn, kind Cut) error {
	switch kind {
	case CutRST:
		_ = tcp.SetLinger(0) // an error comes again at the close
	case CutHalf, CutGone:
		left, err := tcp.File() // another descriptor of it, so that the close sends nothing
		if err != nil {
			return err
		}
		vanished.add(left, kind)
	}
	return tcp.Close()
}

// release makes the stream unreachable for Cut and Stop. It returns how the stream was cut, 0 if it was not.
func (s *Stream) release() (kind Cut) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.cutting; c != nil && c.done && c.kind != CutPause && c.kind != cutSlow {
		kind = c.kind
	}
	s.raw, s.cutting = nil, nil
	return kind
}

// due returns the cut that was requested, nil for none.
func (s *Stream) due() *cutting {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cutting
}

// endCut ends a pause or a slowness, unless another one has followed it.
func (s *Stream) endCut(c *cutting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cutting == c {
		s.cutting = nil
	}
}

// pausing is a blocking connection whose reader may pause.
type pausing struct {
	blocking
	stream *Stream
}

// Read reads from the connection, after a pause that was requested.
func (c pausing) Read(p []byte) (int, error) {
	if cut := c.stream.due(); cut != nil && cut.kind == CutPause {
		c.stream.pause(cut)
	}
	return c.Conn.Read(p)
}

// pause waits. It returns early if the stream is stopped.
func (s *Stream) pause(c *cutting) {
	now := time.Now()
	s.body.touch(now.Add(c.pause)) // the server is not silent
	s.on.Cut(now, CutPause)
	timer := time.NewTimer(c.pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		s.on.Resumed(time.Now(), CutPause)
	case <-c.stopped:
	}
	s.endCut(c)
}

// Limits of the connections that a CutHalf left half-open: each uses a descriptor here, and a stream of the server.
const (
	halfOpenFor = time.Minute
	maxHalfOpen = 1000
)

// A vanishedConns keeps connections that the client vanished from, and does not read them. Those of a CutHalf are reset after
// halfOpenFor, or if there are too many, the oldest first.
type vanishedConns struct {
	mu    sync.Mutex
	half  []*os.File
	conns []*os.File // of a CutGone
}

var vanished vanishedConns

// add leaves a connection half-open. If the system can, its kernel drops all that arrives on it, so that the server gets no
// acknowledgement any more; otherwise it acknowledges as much as fits its buffer.
func (v *vanishedConns) add(conn *os.File, kind Cut) {
	// Not by Fd: that makes reads block, also by another descriptor, whose reader could then not be told of its close.
	if raw, err := conn.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = dropPackets(fd) })
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if kind == CutGone {
		v.conns = append(v.conns, conn)
		return
	}
	if len(v.half) >= maxHalfOpen {
		_ = v.half[0].Close()
		v.half = v.half[1:]
	}
	v.half = append(v.half, conn)
	time.AfterFunc(halfOpenFor, func() { v.reset(conn) })
}

// reset closes a connection that is still there.
func (v *vanishedConns) reset(conn *os.File) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i, c := range v.half {
		if c == conn {
			_ = conn.Close()
			v.half = append(v.half[:i], v.half[i+1:]...)
			return
		}
	}
}

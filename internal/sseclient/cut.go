package sseclient

import (
	"errors"
	"io"
	"math"
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

// A Cut is a way to disconnect or pause a stream from the client's side. docs/suites.md describes the effects on
// servers.
type Cut uint8

// The cuts.
const (
	CutFIN      Cut = iota + 1 // closes the connection (FIN)
	CutRST                     // resets the connection (RST); unread bytes are lost
	CutHalfOpen                // leaves the connection half-open; closes it after a minute
	CutVanish                  // leaves the connection half-open until the process ends
	CutPause                   // stops reading for a time and continues with the same connection
	cutSlow                    // reads the stream slowly or not at all
)

var errCut = errors.New("this client cut the stream itself")

// A cutRequest is the requested cut of an open stream, or its current pause or slow read.
type cutRequest struct {
	kind     Cut
	pause    time.Duration
	rate     float64       // bytes per second of a slow stream; math.MaxInt32: no longer slow
	deadline time.Time     // end of the pause; for a slow stream, the time of its next read
	done     bool          // the connection is cut, or the pause or slow read has started
	stop     chan struct{} // closed when the stream is stopped
}

// Cut cuts the stream. A polled stream makes the cut in its next turn, unless it ends first. So does every HTTP/2
// stream for a CutFIN. Any other stream is cut at once, except that a pause starts when the current read returns. pause
// is the duration of a CutPause. Cut returns false if no stream is open, if a cut is in progress, or if the connection
// does not allow this cut. Any goroutine may call it.
func (s *Stream) Cut(kind Cut, pause time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isOpen() || s.cut != nil {
		return false
	}
	c := &cutRequest{kind: kind, pause: pause, stop: make(chan struct{})}
	if st, ok := s.raw.(*h2Stream); ok {
		return s.cutShared(st, c)
	}
	if polled, ok := s.raw.(*polledConn); ok {
		s.storeCut(c)
		_ = polled.Close() // requests a turn
		return true
	}
	if kind != CutPause {
		tcp := tcpOf(s.raw)
		if tcp == nil || cutNow(tcp, kind) != nil {
			return false
		}
		c.done = true
	}
	s.storeCut(c)
	return true
}

// isOpen reports whether the stream is open and not stopped. The caller holds mu.
func (s *Stream) isOpen() bool { return s.stopped == "" && s.raw != nil && s.cancel == nil }

// storeCut stores a cut for the next turn of the stream. The caller holds mu.
func (s *Stream) storeCut(c *cutRequest) {
	s.cut = c
	s.attention.Store(true)
}

// Values of Stream.drop. They apply until the next Drop.
const (
	dropNone      int32 = iota // the stream was not dropped
	dropDelayed                // reconnects after the reconnection time, without a permit to dial
	dropImmediate              // reconnects at once, without a permit to dial
)

// Drop closes the open stream, like a short loss of the client's network. The stream reconnects with the last event ID,
// at once or after the reconnection time. It dials without a permit, because a storm of reconnects must not be
// throttled. Drop returns false in the same cases as Cut. Any goroutine may call it.
func (s *Stream) Drop(immediate bool) bool {
	previous := s.drop.Load()
	kind := dropDelayed
	if immediate {
		kind = dropImmediate
	}
	s.drop.Store(kind) // before the cut, which another goroutine may make
	if !s.Cut(CutFIN, 0) {
		s.drop.Store(previous)
		return false
	}
	return true
}

func (s *Stream) needsPermit() bool { return s.drop.Load() == dropNone }

// Vanish leaves the open stream half-open, like a machine that loses power. It returns false in the same cases as Cut.
// It returns an error if the system does not allow half-open streams, or if the stream shares its connection. Any
// goroutine may call it.
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
	return s.Cut(CutVanish, 0), nil
}

// slowTick is the minimum interval between two reads of a slow stream.
const slowTick = 250 * time.Millisecond

var errSlowUnsupported = errors.New("slow reads are supported on Linux only, and not for an https URL through a proxy with TLS")

// Slow limits the bytes per second that are read from the open stream; 0 reads nothing and math.Inf(1) removes the
// limit. Further data fills the buffer of the connection, and then the buffer of the server. Slow returns false if
// no stream is open, or if a cut other than a slow read is in progress. It returns an error if the stream does not support
// slow reads. Any goroutine may call it.
func (s *Stream) Slow(bytesPerSecond float64) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isOpen() || s.cut != nil && s.cut.kind != cutSlow {
		return false, nil
	}
	if st, ok := s.raw.(*h2Stream); ok && !st.conn.singleStream {
		return false, errSharedConnection
	}
	if polledConnOf(s.raw) == nil {
		return false, errSlowUnsupported
	}
	s.storeCut(&cutRequest{kind: cutSlow, rate: min(bytesPerSecond, math.MaxInt32), stop: make(chan struct{})})
	_ = s.raw.Close() // requests a turn
	return true, nil
}

// tcpOf returns the TCP connection below the wrappers, or nil if the connection is not TCP.
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

// cutNow cuts a connection that Go's network poller reads. It returns an error if the connection is already closed,
// or if no descriptor is free for a half-open one.
func cutNow(tcp *net.TCPConn, kind Cut) error {
	switch kind {
	case CutRST:
		_ = tcp.SetLinger(0) // the close returns the same error
	case CutHalfOpen, CutVanish:
		file, err := tcp.File() // while this second descriptor is open, Close sends nothing
		if err != nil {
			return err
		}
		processVanishedConns.add(file, kind)
	}
	return tcp.Close()
}

// release ends the access of Cut and Stop to the connection. It returns the cut that ended the stream, or 0.
func (s *Stream) release() (kind Cut) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.cut; c != nil && c.done && c.kind != CutPause && c.kind != cutSlow {
		kind = c.kind
	}
	s.raw, s.cut = nil, nil
	return kind
}

func (s *Stream) pendingCut() *cutRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cut
}

// endCut removes a pause or a slow read, unless another cut has replaced it.
func (s *Stream) endCut(c *cutRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cut == c {
		s.cut = nil
	}
}

type pausingConn struct {
	blockingConn
	stream *Stream
}

func (c pausingConn) Read(p []byte) (int, error) {
	if cut := c.stream.pendingCut(); cut != nil && cut.kind == CutPause {
		c.stream.pause(cut)
	}
	return c.Conn.Read(p)
}

// pause blocks the reader for the duration of a CutPause. It returns early if the stream is stopped.
func (s *Stream) pause(c *cutRequest) {
	now := time.Now()
	s.body.touch(now.Add(c.pause)) // the idle timeout starts after the pause
	report(s, s.callbacks.Cut, now, CutPause)
	timer := time.NewTimer(c.pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		report(s, s.callbacks.Resumed, time.Now(), CutPause)
	case <-c.stop:
	}
	s.endCut(c)
}

// Limits for the connections of CutHalfOpen. Each connection uses a descriptor here and a stream on the server.
const (
	halfOpenFor = time.Minute
	maxHalfOpen = 1000
)

// vanishedConns keeps half-open connections without reading them. It closes a connection of CutHalfOpen after
// halfOpenFor, or earlier if there are more than maxHalfOpen, the oldest first.
type vanishedConns struct {
	mu        sync.Mutex
	temporary []*os.File // of a CutHalfOpen
	permanent []*os.File // of a CutVanish
}

var processVanishedConns vanishedConns

// add leaves a connection half-open. On Linux the kernel drops all packets that arrive on it, so the server gets no
// acknowledgment. Other systems acknowledge bytes until the receive buffer is full.
func (v *vanishedConns) add(conn *os.File, kind Cut) {
	// conn.Fd would make reads block, including reads through another descriptor, and a close could not end them.
	if raw, err := conn.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = dropPackets(fd) })
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if kind == CutVanish {
		v.permanent = append(v.permanent, conn)
		return
	}
	if len(v.temporary) >= maxHalfOpen {
		_ = v.temporary[0].Close()
		v.temporary = v.temporary[1:]
	}
	v.temporary = append(v.temporary, conn)
	time.AfterFunc(halfOpenFor, func() { v.close(conn) })
}

func (v *vanishedConns) close(conn *os.File) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if i := slices.Index(v.temporary, conn); i >= 0 {
		_ = conn.Close()
		v.temporary = slices.Delete(v.temporary, i, i+1)
	}
}

package sse

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"go.k6.io/k6/v2/lib/netext"
)

// A Cut is a way in which a client breaks its own stream.
type Cut uint8

// The ways. What the server sees of each docs/suites.md says.
const (
	CutFIN   Cut = iota + 1 // the connection is closed: FIN
	CutRST                  // it is reset: RST, and what was not read yet is gone
	CutHalf                 // the client vanishes: it sends nothing, and acknowledges nothing that comes; a minute later it resets
	CutGone                 // it vanishes for good: until the process ends
	CutPause                // the reader stops for a time, and goes on with the same connection
	cutSlow                 // no cut: the stream is read slowly, or not at all
)

// A Cuttable is an EventSource as its CutObserver sees it.
type Cuttable interface {
	// Cut asks for a cut, from any goroutine. It is made when the stream is read next, or not at all where the stream ends
	// before. pause is for how long a CutPause lasts. It returns false where no stream is open, or one is being cut.
	Cut(how Cut, pause time.Duration) bool
}

// CutObserver is an Observer that has streams cut. A stream that was cut ends with ReasonCut, and its EventSource
// connects again as after any other end.
type CutObserver interface {
	Observer
	// CutBy gives the EventSource to whoever cuts it, once, before the first Connecting. It returns false where nobody does.
	CutBy(c Cuttable) bool
	// Cut: the stream was cut, and Closed follows; or its pause begins.
	Cut(at time.Time, how Cut)
	// PauseOver: the reader goes on. It does not come where the script ended the stream meanwhile.
	PauseOver(at time.Time)
}

// errCut is how reading a stream ends that was cut.
var errCut = errors.New("this client cut the stream itself")

// cutting is a cut that was asked for.
type cutting struct {
	how   Cut
	pause time.Duration
	rate  int           // bytes per second of a stream that is read slowly; math.MaxInt32: no longer slowly
	until time.Time     // the end of a pause that has begun; of a slow stream: it is read again then
	done  bool          // the connection is cut; of a pause: it has begun
	over  chan struct{} // closed where the source is stopped
}

var _ Cuttable = (*source)(nil)

// Cut asks for a cut: a polled stream makes it in its next turn, which it gets soon. The goroutine that reads a parked one
// waits in the read, so that its connection is cut here; it pauses after its next read.
func (s *source) Cut(how Cut, pause time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.moment(); now.stopped != "" || now.cutting != nil || s.raw == nil || now.cancel != nil {
		return false
	}
	c := &cutting{how: how, pause: pause, over: make(chan struct{})}
	if st, ok := s.raw.(*h2Stream); ok {
		return s.cutShared(st, c)
	}
	if polled, ok := s.raw.(*polled); ok {
		s.wants(c)
		_ = polled.Close() // gives it a turn
		return true
	}
	if how != CutPause {
		tcp := tcpOf(s.raw)
		if tcp == nil || cutNow(tcp, how) != nil {
			return false
		}
		c.done = true
	}
	s.wants(c)
	return true
}

// tcpOf is the connection below that k6 has wrapped, nil where it is none.
func tcpOf(raw io.Closer) *net.TCPConn {
	if conn, ok := raw.(net.Conn); ok {
		for under := below(conn); under != nil; under = below(conn) {
			conn = under.Conn
		}
		raw = conn
	}
	if counted, ok := raw.(*netext.Conn); ok {
		raw = counted.Conn
	}
	tcp, _ := raw.(*net.TCPConn)
	return tcp
}

// cutNow cuts a connection that Go's own poller reads.
func cutNow(tcp *net.TCPConn, how Cut) error {
	switch how {
	case CutRST:
		_ = tcp.SetLinger(0) // the close says whether the connection is there
	case CutHalf, CutGone:
		left, err := tcp.File() // another descriptor of it, so that the close sends nothing
		if err != nil {
			return err
		}
		graveyard.bury(left, how)
	case CutFIN, CutPause:
	}
	return tcp.Close()
}

// wants has the next turn of the stream see a cut. The caller holds mu.
func (s *source) wants(c *cutting) {
	s.momentToSet().cutting = c
	s.attention.Store(true)
}

// due is the cut that was asked for, nil mostly.
func (s *source) due() *cutting {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.moment().cutting
}

// letGo ends the stream for all who reach it from elsewhere: nobody can cut it any more. It says how it was cut, 0 where it
// was not.
func (s *source) letGo() (how Cut) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.moment().cutting; c != nil && c.done && c.how != CutPause && c.how != cutSlow {
		how = c.how
	}
	s.raw = nil
	s.dropCut()
	return how
}

// forgetCut ends a pause.
func (s *source) forgetCut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropCut()
}

// dropCut is the same. The caller holds mu.
func (s *source) dropCut() {
	if s.now != nil {
		s.now.cutting = nil
		s.passed()
	}
}

// resting is a parked connection whose reader may pause.
type resting struct {
	parked
	source *source
}

// Read is that of the connection, when a pause that was asked for is over.
func (c resting) Read(p []byte) (int, error) {
	if cut := c.source.due(); cut != nil && cut.how == CutPause {
		c.source.rest(cut)
	}
	return c.Conn.Read(p)
}

// rest is the pause of a parked stream: its reader does not read. It returns early where the source is stopped.
//
//go:noinline // rare, and its frame would be part of every parked stream's stack
func (s *source) rest(c *cutting) {
	now := time.Now()
	s.body.heard(now.Add(c.pause)) // the silence is ours
	s.facets().cuts.Cut(now, CutPause)
	timer := time.NewTimer(c.pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		s.facets().cuts.PauseOver(time.Now())
	case <-c.over:
	}
	s.forgetCut()
}

// Bounds on the connections that a CutHalf left half-open: each takes a descriptor here, and a stream of the server's.
const (
	halfOpenFor  = time.Minute
	mostHalfOpen = 1000
)

// A cemetery keeps connections that the client vanished from, and does not read them. Those of a CutHalf are reset after
// halfOpenFor, or where there are too many, the oldest first.
type cemetery struct {
	mu   sync.Mutex
	open []*os.File
	gone []*os.File // of a CutGone
}

var graveyard cemetery

// bury leaves a connection half-open. Where the system can, its kernel drops all that comes on it, so that the server gets
// no acknowledgement any more; else it acknowledges as much as fits its buffer.
func (g *cemetery) bury(conn *os.File, how Cut) {
	// Not by Fd: that makes reads block, also by another descriptor, whose reader could then not be told of its close.
	if raw, err := conn.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = deafen(fd) })
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if how == CutGone {
		g.gone = append(g.gone, conn)
		return
	}
	if len(g.open) >= mostHalfOpen {
		_ = g.open[0].Close()
		g.open = g.open[1:]
	}
	g.open = append(g.open, conn)
	time.AfterFunc(halfOpenFor, func() { g.dig(conn) })
}

// dig closes a connection that is still there.
func (g *cemetery) dig(conn *os.File) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, c := range g.open {
		if c == conn {
			_ = conn.Close()
			g.open = append(g.open[:i], g.open[i+1:]...)
			return
		}
	}
}

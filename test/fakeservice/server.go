// Package fakeservice is an SSE service for tests, with faults and a record of its actions. Service sends noops on a
// schedule, over HTTP/1.1 and HTTP/2. Hub sends the messages published to its topics. Both use Server and Stream, as do
// the services of tools/campaign.
package fakeservice

import (
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A Server serves the streams of one fake service.
type Server struct {
	Lateness lateness
	Mu       sync.Mutex     // guards the records of the service
	Handlers sync.WaitGroup // handlers of streams
	Stopped  chan struct{}  // closed when the server stops
	http     *http.Server
}

// Serve accepts connections from each listener.
func (s *Server) Serve(h *http.Server, listeners ...net.Listener) {
	s.http, s.Stopped = h, make(chan struct{})
	for _, l := range listeners {
		go func() { _ = h.Serve(l) }()
	}
}

// Stop closes every connection, and waits for the handlers of streams. It may be called again.
func (s *Server) Stop() {
	_ = s.http.Close()
	s.Mu.Lock()
	if !s.hasStopped() {
		close(s.Stopped)
	}
	s.Mu.Unlock()
	s.Handlers.Wait()
}

// AddHandler adds the handler of a stream to Handlers. It returns false if the server has stopped.
func (s *Server) AddHandler() bool {
	s.Mu.Lock() // ensures that Add precedes Wait in Stop
	defer s.Mu.Unlock()
	if s.hasStopped() {
		return false
	}
	s.Handlers.Add(1)
	return true
}

func (s *Server) hasStopped() bool {
	select {
	case <-s.Stopped:
		return true
	default:
		return false
	}
}

// A lateness is the longest delay of a message in nanoseconds. A long delay shows that this process was saturated.
type lateness struct{ atomic.Int64 }

// Record records that a message due at the given time is sent now.
func (l *lateness) Record(due time.Time) {
	delay := int64(time.Since(due))
	for longest := l.Load(); delay > longest && !l.CompareAndSwap(longest, delay); longest = l.Load() {
	}
}

// EndStream responds to a client's request to end its stream, with 404 if the client has no open stream. If neverEnds
// is set, the stream stays open. The caller holds Mu.
func (s *Server) EndStream(w http.ResponseWriter, r *http.Request, c *Client, neverEnds bool) {
	if c.Open == nil {
		http.NotFound(w, r)
		return
	}
	if c.EndRequestedAt.IsZero() {
		c.EndRequestedAt = time.Now()
	}
	if !neverEnds {
		c.Open.Finish(EndRequested)
	}
}

// A Format is the format in which a service writes its streams. The zero value means LF and the framing of net/http.
type Format struct {
	Lines string // line ending; "": LF
	BOM   bool
	// Framing is chunks, split (each event in several chunks) or close (the body ends with the connection). "" means
	// chunks, on a connection that can be reused afterwards.
	Framing string
	Retry   int // retry field in milliseconds; 0: none
}

// A Stream is one response of type text/event-stream.
type Stream struct {
	Format
	W             http.ResponseWriter
	conn          *http.ResponseController
	ClientDone    <-chan struct{} // closed when the client has disconnected
	serverStopped <-chan struct{} // closed when the server stops
	wake          chan struct{}   // receives a value when a block is queued
	inbox         chan string     // broadcasts to send; nil: none
	cut           chan struct{}   // closed when the service disconnects the client; nil: never
	Ended         chan struct{}   // closed when the stream must end
	EndReason     string          // how the stream must end; "" while Ended is open
	EndAt         time.Time       // time at which the service ends the stream; zero: never
	EndDelay      time.Duration   // how long the service takes to end the stream on request
	http2         bool
	delayed       []func() error // functions that write the messages delayed until after the next one

	queue   sync.Mutex // guards the fields below
	blocks  []block    // sorted by due time
	lastDue time.Time  // due time of the last block that was queued in order
}

// NewStream returns the stream that answers a request.
func (s *Server) NewStream(f Format, w http.ResponseWriter, r *http.Request) *Stream {
	return &Stream{
		Format: f, W: w, conn: http.NewResponseController(w), ClientDone: r.Context().Done(), serverStopped: s.Stopped,
		wake: make(chan struct{}, 1), Ended: make(chan struct{}), http2: r.ProtoMajor == 2,
	}
}

// Finish makes the stream end, with the given reason. Only the first call has an effect. The caller holds the lock of
// the service.
func (s *Stream) Finish(end string) {
	if s.EndReason == "" {
		s.EndReason = end
		close(s.Ended)
	}
}

// ErrOver is returned when the service or the client has ended a stream, or when the server stops.
var ErrOver = errors.New("the stream is over")

// Wait waits until a time (zero: no limit), until a block is queued, or until end is closed. ended reports whether end
// was closed. Meanwhile, Wait sends broadcasts. It returns an error if the stream is over.
func (s *Stream) Wait(until time.Time, end <-chan struct{}) (ended bool, err error) {
	var timer <-chan time.Time
	if !until.IsZero() {
		t := time.NewTimer(time.Until(until))
		defer t.Stop()
		timer = t.C
	}
	for {
		select {
		case <-timer:
			return false, nil
		case <-s.wake:
			return false, nil
		case <-end:
			return true, nil
		case <-s.ClientDone:
			return false, ErrOver
		case <-s.serverStopped:
			return false, ErrOver
		case <-s.cut:
			return false, ErrOver
		case text := <-s.inbox:
			if err := s.send(text); err != nil {
				return false, err
			}
		}
	}
}

// Head writes the response headers and the start of the stream. The caller may have set further header fields.
func (s *Stream) Head() error {
	h := s.W.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	if !s.http2 && s.Framing != "" {
		h.Set("Connection", "close")
		if s.Framing == "close" {
			h.Set("Transfer-Encoding", "identity")
		}
	}
	body := ""
	if s.BOM {
		body = "\ufeff"
	}
	if s.Retry > 0 {
		body += "retry: " + strconv.Itoa(s.Retry) + "\n\n"
	}
	s.W.WriteHeader(http.StatusOK)
	return errors.Join(s.conn.Flush(), s.Write(body))
}

// Write sends text whose lines end with LF, in the stream's Format.
func (s *Stream) Write(text string) error {
	if s.Lines != "" {
		text = strings.ReplaceAll(text, "\n", s.Lines)
	}
	size := len(text)
	if s.Framing == "split" {
		size = max(3, size/50)
	}
	_ = s.conn.SetWriteDeadline(time.Now().Add(30 * time.Second))
	for len(text) > 0 {
		n := min(size, len(text))
		if err := s.send(text[:n]); err != nil {
			return err
		}
		text = text[n:]
	}
	return nil
}

// send sends text unchanged, in one chunk.
func (s *Stream) send(text string) error {
	if _, err := io.WriteString(s.W, text); err != nil {
		return err
	}
	return s.conn.Flush()
}

// Reset closes the connection of a response with a TCP RST.
func Reset(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		resetOnClose(conn)
		_ = conn.Close()
	}
}

func resetOnClose(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
}

type block struct {
	due   time.Time
	write func(due time.Time) error
}

// Queue adds a block. The stream calls write when the block is due, and ends if write returns an error. ErrOver means
// that the service ends the stream, and any other error that the client has closed the stream. Blocks that are queued
// with inOrder do not overtake each other.
func (s *Stream) Queue(due time.Time, inOrder bool, write func(due time.Time) error) {
	s.queue.Lock()
	if inOrder {
		if due.Before(s.lastDue) {
			due = s.lastDue
		}
		s.lastDue = due
	}
	s.blocks = append(s.blocks, block{due, write})
	slices.SortStableFunc(s.blocks, func(a, b block) int { return a.due.Compare(b.due) })
	s.queue.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Repeat calls write repeatedly. pause returns the time until the next call.
func (s *Stream) Repeat(pause func() time.Duration, write func() error) {
	s.Queue(time.Now().Add(pause()), false, func(time.Time) error {
		err := write()
		s.Repeat(pause, write)
		return err
	})
}

// Run writes queued blocks until the stream ends, and returns the reason, such as EndClient.
func (s *Stream) Run() (end string) {
	for {
		due := s.nextDue()
		ended, err := s.Wait(earliest(due, s.EndAt), s.Ended)
		now := time.Now()
		switch {
		case err != nil:
			return EndClient
		case ended:
			_ = s.pause(now.Add(s.EndDelay))
			return s.EndReason
		case !s.EndAt.IsZero() && !now.Before(s.EndAt):
			return EndInOrder
		case !due.IsZero() && !now.Before(due):
			b := s.dequeue()
			if err := b.write(b.due); errors.Is(err, ErrOver) {
				return EndInOrder
			} else if err != nil {
				return EndClient
			}
		}
	}
}

// pause waits until a time. It returns an error if the stream is over earlier.
func (s *Stream) pause(until time.Time) (err error) {
	for err == nil && time.Now().Before(until) {
		_, err = s.Wait(until, nil)
	}
	return err
}

func (s *Stream) nextDue() (due time.Time) {
	s.queue.Lock()
	defer s.queue.Unlock()
	if len(s.blocks) > 0 {
		due = s.blocks[0].due
	}
	return due
}

func (s *Stream) dequeue() block {
	s.queue.Lock()
	defer s.queue.Unlock()
	b := s.blocks[0]
	s.blocks = s.blocks[1:]
	return b
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

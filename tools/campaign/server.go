package main

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A server serves the streams of one fake service.
type server struct {
	late lateness
	mu   sync.Mutex     // guards what the service records
	open sync.WaitGroup // handlers of streams
	over chan struct{}  // closed when the server stops
	http *http.Server
}

// serve accepts connections from each listener.
func (s *server) serve(h *http.Server, listeners ...net.Listener) {
	s.http, s.over = h, make(chan struct{})
	for _, l := range listeners {
		go func() { _ = h.Serve(l) }()
	}
}

// stop ends every stream and waits for its handler. It does nothing after the first call.
func (s *server) stop() {
	select {
	case <-s.over:
	default:
		close(s.over)
	}
	_ = s.http.Close()
	s.open.Wait()
}

// A lateness is the longest time, in nanoseconds, by which a message was sent after it was due. It shows whether this program was
// saturated.
type lateness struct{ atomic.Int64 }

// record records that a message which was due then is sent now.
func (l *lateness) record(due time.Time) {
	late := int64(time.Since(due))
	for past := l.Load(); late > past && !l.CompareAndSwap(past, late); past = l.Load() {
	}
}

// endStream ends the stream of a client that requests it. never: the request is accepted, but the stream stays open.
func (s *server) endStream(w http.ResponseWriter, r *http.Request, c *client, never bool) {
	if c == nil || c.present == nil {
		http.NotFound(w, r)
		return
	}
	if c.asked.IsZero() {
		c.asked = time.Now()
	}
	if !never {
		c.present.finish(endAsked)
	}
}

// A format is how a service writes its streams.
type format struct {
	Lines   string // how lines end
	BOM     bool
	Framing string // chunks, split (each event in several chunks), close (ends with the connection)
	Retry   int    // milliseconds; 0: no retry field
}

// A stream is one response of type text/event-stream.
type stream struct {
	format
	w     http.ResponseWriter
	conn  *http.ResponseController
	gone  <-chan struct{} // closed when the client has gone
	over  <-chan struct{} // closed when the server stops
	wake  chan struct{}   // receives when there is something new to write; nil: never
	inbox chan string     // texts to send as they are; nil: none
	cut   chan struct{}   // closed when the service gives the client up; nil: never
	end   chan struct{}   // closed when the stream shall end
	how   string          // it shall end; "" while end is open
	until time.Time       // the service ends the stream then; zero: it does not
}

// newStream returns the stream that answers a request.
func (s *server) newStream(f format, w http.ResponseWriter, r *http.Request) *stream {
	return &stream{
		format: f, w: w, conn: http.NewResponseController(w), gone: r.Context().Done(), over: s.over, end: make(chan struct{}),
	}
}

// finish makes the stream end in that way. The caller holds the lock of the service.
func (s *stream) finish(how string) {
	if s.how == "" {
		s.how = how
		close(s.end)
	}
}

// errOver ends a stream that a fault has ended, or whose client has gone.
var errOver = errors.New("the stream is over")

// wait waits until a time (zero: no limit), or until the stream is woken. ended reports whether end was closed before; a nil end is
// never closed.
func (s *stream) wait(until time.Time, end <-chan struct{}) (ended bool, err error) {
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
		case <-s.gone:
			return false, errOver
		case <-s.over:
			return false, errOver
		case <-s.cut:
			return false, errOver
		case text := <-s.inbox:
			if err := s.send(text); err != nil {
				return false, err
			}
		}
	}
}

// head writes the response's headers and what the stream begins with. Header fields may have been added before.
func (s *stream) head() error {
	h := s.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("Connection", "close")
	if s.Framing == "close" {
		h.Set("Transfer-Encoding", "identity")
	}
	body := ""
	if s.BOM {
		body = "\ufeff"
	}
	if s.Retry > 0 {
		body += "retry: " + strconv.Itoa(s.Retry) + "\n\n"
	}
	s.w.WriteHeader(http.StatusOK)
	return errors.Join(s.conn.Flush(), s.write(body))
}

// write sends text, whose lines end with LF, in one chunk or several.
func (s *stream) write(text string) error {
	text = strings.ReplaceAll(text, "\n", s.Lines)
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

// send sends text as it is, in one chunk.
func (s *stream) send(text string) error {
	if _, err := io.WriteString(s.w, text); err != nil {
		return err
	}
	return s.conn.Flush()
}

// reset ends a connection with a TCP RST.
func reset(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		resetOnClose(conn)
		_ = conn.Close()
	}
}

// resetOnClose makes the end of a connection a TCP RST.
func resetOnClose(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
}

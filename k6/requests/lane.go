package requests

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/lib/netext"

	"github.com/sse-soak/sse-soak/internal/http1"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/k6/network"
)

const (
	maxKept    = 64 << 20 // bytes of a body that is compared, unless a longer one is wanted
	keepBuffer = 64 << 10 // capacity of the body buffer that is kept between two responses
	maxHead    = 1 << 20  // bytes of a head, interim responses included
)

// A lane makes one request at a time, on one connection while that lasts. One goroutine uses it.
type lane struct {
	s       *stage
	conn    *http1.Conn // nil if there is none
	target  *target     // of conn
	last    *operation  // on conn
	lastUse time.Time   // when the last exchange ended
	body    bytes.Buffer
	filled  []byte // a request with a text of its own
	text    []byte // that text, in filled
}

// A lanes holds the lanes of a stage that may have a connection.
type lanes struct {
	mu  sync.Mutex
	all map[*lane]struct{}
}

// newDialer returns a dialer with k6's network settings.
func newDialer(state *lib.State) *http1.Dialer {
	return &http1.Dialer{
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := state.Dialer.DialContext(ctx, network, address)
			if counted, ok := conn.(*netext.Conn); ok && err == nil {
				return socket{counted}, nil
			}
			return conn, err
		},
		TLS: func(conn net.Conn, server string) *tls.Conn {
			return tls.Client(conn, network.TLSConfig(state, server))
		},
		MaxHead: maxHead,
	}
}

// A socket is a connection of k6, which counts bytes, with access to its file descriptor.
type socket struct{ *netext.Conn }

var _ syscall.Conn = socket{}

func (s socket) SyscallConn() (syscall.RawConn, error) {
	conn, ok := s.Conn.Conn.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return conn.SyscallConn()
}

func (s *stage) newLane() *lane {
	l := &lane{s: s}
	s.lanes.mu.Lock()
	defer s.lanes.mu.Unlock()
	if s.lanes.all == nil {
		s.lanes.all = map[*lane]struct{}{}
	}
	s.lanes.all[l] = struct{}{}
	return l
}

// settling is the time for which connections stay open after the last answer of a stage, so that unrequested bytes can arrive.
const settling = 50 * time.Millisecond

// closeLanes checks the connections of the stage for unrequested bytes, then closes them.
func (s *stage) closeLanes() {
	select {
	case <-time.After(settling):
	case <-s.ctx.Done():
	}
	s.lanes.mu.Lock()
	all := slices.Collect(maps.Keys(s.lanes.all))
	s.lanes.mu.Unlock()
	for _, l := range all {
		if l.conn != nil && s.ctx.Err() == nil {
			l.ended()
		}
		l.close()
	}
}

// close closes the connection of the lane.
func (l *lane) close() {
	l.hangUp()
	l.s.lanes.mu.Lock()
	defer l.s.lanes.mu.Unlock()
	delete(l.s.lanes.all, l)
}

// hangUp closes the connection, if there is one.
func (l *lane) hangUp() {
	if l.conn != nil {
		_ = l.conn.Close()
	}
	l.conn, l.target = nil, nil
}

// An exchange is a request and what came of it.
type exchange struct {
	op       *operation
	from     time.Time // from which its time counts
	deadline time.Time
	first    time.Time // of its answer's bytes; zero: none came
	end      time.Time
	code     string // "": it was interrupted, and is not counted
	server   string
	inFlight string
	waited   time.Duration // until a lane was free
}

// do makes a request. Its time counts from an instant and is limited by a deadline.
func (l *lane) do(op *operation, from, deadline time.Time) exchange {
	x := exchange{op: op, from: from, deadline: deadline}
	err := l.connect(&x)
	if err == nil {
		err = l.send(&x)
		err = l.receive(&x, err)
	}
	l.finish(&x, err)
	return x
}

// finish records the end of an exchange.
func (l *lane) finish(x *exchange, err error) {
	x.end = time.Now()
	l.lastUse, l.last = x.end, x.op
	if err == nil {
		return
	}
	l.hangUp()
	if l.s.ctx.Err() != nil {
		x.code = ""
		return
	}
	if !x.end.Before(x.deadline) {
		err = context.DeadlineExceeded
	}
	x.code = codeOf(err)
	if cut := (truncatedError{}); errors.As(err, &cut) && !isTimeout(err) {
		x.code = shard.CodeTruncated
	}
	l.s.tell(x, err)
}

// connect opens a connection to the target of an exchange, unless one is open.
func (l *lane) connect(x *exchange) error {
	// Within a millisecond after an answer the lane does not check: it would cost a system call, and bytes on their way would not be
	// found yet.
	if l.conn != nil && (l.target != x.op.target || time.Since(l.lastUse) >= time.Millisecond && l.ended()) {
		l.hangUp()
	}
	if l.conn != nil {
		return nil
	}
	t := x.op.target
	conn, err := l.s.dialer.Open(l.s.ctx, x.deadline, t.url, t.through)
	if err != nil {
		return err
	}
	l.conn, l.target = conn, t
	return nil
}

// ended reports whether the connection cannot be reused: since the last answer the server has closed it, or sent unrequested bytes,
// which ended counts as a fault of the service.
func (l *lane) ended() bool {
	begin, err := l.conn.Unrequested()
	if len(begin) > 0 && !requestTimeout.Match(begin) {
		l.s.unrequested(l.last, begin)
	}
	return len(begin) > 0 || err != nil && !errors.Is(err, errors.ErrUnsupported)
}

// requestTimeout matches the response that a server may send on an idle connection before it closes it (RFC 9110, 15.5.9).
var requestTimeout = regexp.MustCompile(`^HTTP/1\.[01] 408`)

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// A truncatedError is the reason why the body of an answer with the right status could not be read to its end.
type truncatedError struct{ error }

func (t truncatedError) Unwrap() error { return t.error }

// send writes the request.
func (l *lane) send(x *exchange) error {
	if err := l.conn.SetDeadline(x.deadline); err != nil {
		return err
	}
	sent := x.op.sent
	if len(x.op.unique) > 0 {
		l.filled, l.text = x.op.personalize(l.filled, l.s.prefix, l.s.uniques.Add(1))
		sent = l.filled
	}
	_, err := l.conn.Write(sent)
	return err
}

// receive reads the answer. A server may answer before it has read all of a request, and hang up: unsent is the error of that.
func (l *lane) receive(x *exchange, unsent error) error {
	resp, err := l.conn.Head(x.op.request) //nolint:bodyclose // answer reads it to its end, or the connection is closed
	x.first = l.conn.FirstByte()
	if err == nil {
		err = l.answer(x, resp)
	}
	if err != nil && unsent != nil {
		return unsent
	}
	if unsent != nil {
		l.hangUp()
	}
	return err
}

// payload returns the body of the answer, with the placeholder for the request's own text.
func (l *lane) payload(op *operation) []byte {
	if len(op.unique) == 0 {
		return l.body.Bytes()
	}
	return bytes.ReplaceAll(l.body.Bytes(), l.text, []byte(placeholder))
}

// answer reads the body, and checks the answer.
func (l *lane) answer(x *exchange, resp *http.Response) error {
	x.server, x.inFlight = resp.Header.Get("X-Server"), resp.Header.Get("X-In-Flight")
	w := &x.op.want
	l.body.Reset()
	looks := resp.StatusCode == w.status && w.looks()
	switched := resp.StatusCode == http.StatusSwitchingProtocols // unasked; no HTTP follows
	if looks {
		if _, err := l.body.ReadFrom(io.LimitReader(resp.Body, w.most())); err != nil {
			return truncatedError{err}
		}
	}
	rest, err := io.Copy(io.Discard, resp.Body)
	switch {
	case err != nil && resp.StatusCode == w.status:
		return truncatedError{err}
	case err != nil:
		return err
	}
	excess := len(l.conn.Buffered()) > 0 // the server's answer is longer than its length, or was not requested
	switch {
	case resp.StatusCode != w.status:
		x.code = "status-" + strconv.Itoa(resp.StatusCode)
	case excess && !switched, looks && rest > 0, !w.matches(l.payload(x.op)):
		x.code = shard.CodeWrongContent
	default:
		x.code = shard.CodeOK
	}
	if resp.Close || excess || switched || l.s.state.Options.NoConnectionReuse.Bool {
		l.hangUp()
	}
	if l.body.Cap() > keepBuffer {
		l.body = bytes.Buffer{}
	}
	return nil
}

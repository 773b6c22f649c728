package requests

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/k6/network"
)

// Bounds of an answer.
const (
	readBuffer = 4 << 10
	maxKept    = 64 << 20 // of a body that is looked at, unless a longer one is wanted
	keepBuffer = 64 << 10 // between two answers
	maxHead    = 1 << 20  // of a head, interim responses with it
	maxInterim = 10       // 1xx responses before the final one
)

// A lane makes one request at a time, on one connection while that lasts. One goroutine uses it.
type lane struct {
	s      *stage
	target *target // that the connection goes to
	conn   net.Conn
	raw    net.Conn // below TLS
	reader *bufio.Reader
	bound  bounded // what reader reads
	body   bytes.Buffer
	filled []byte // a request with a text of its own
	text   []byte // that text, in filled
	used   time.Time
	last   *operation // the last one on the connection

	mu   sync.Mutex // of what interrupt may close
	open net.Conn
}

// lanes are those of a stage that may have a connection.
type lanes struct {
	mu  sync.Mutex
	all map[*lane]struct{}
}

// interrupt ends whatever the lanes wait for.
func (l *lanes) interrupt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for lane := range l.all {
		lane.mu.Lock()
		if lane.open != nil {
			_ = lane.open.SetDeadline(longAgo)
		}
		lane.mu.Unlock()
	}
}

var longAgo = time.Unix(1, 0)

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

// close ends the lane.
func (l *lane) close() {
	l.hangUp()
	l.s.lanes.mu.Lock()
	defer l.s.lanes.mu.Unlock()
	delete(l.s.lanes.all, l)
}

func (l *lane) attach(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = conn
}

// hangUp closes the connection, for TLS without a close_notify, which could wait for seconds for room to be sent.
func (l *lane) hangUp() {
	if l.raw != nil {
		l.attach(nil)
		_ = l.raw.Close()
	}
	l.conn, l.raw, l.target = nil, nil, nil
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

// do makes a request, whose time counts from an instant and may last until another.
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

// finish says how an exchange ended.
func (l *lane) finish(x *exchange, err error) {
	x.end = time.Now()
	l.used, l.last = x.end, x.op
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

// connect makes sure that there is a connection to the target of an exchange.
func (l *lane) connect(x *exchange) error {
	// Within a millisecond after an answer the lane does not check: it would cost a system call, and bytes on their way would not be
	// found yet.
	if l.conn != nil && (l.target != x.op.target || time.Since(l.used) >= time.Millisecond && l.ended()) {
		l.hangUp()
	}
	if l.conn != nil {
		return nil
	}
	ctx, cancel := context.WithDeadline(l.s.ctx, x.deadline)
	defer cancel()
	t := x.op.target
	raw, err := l.s.state.Dialer.DialContext(ctx, "tcp", t.address)
	if err != nil {
		return t.through.Undialed(err) //nolint:wrapcheck // says all
	}
	l.raw, l.target = raw, t
	l.attach(raw)
	if err := l.arm(x.deadline); err != nil {
		return err
	}
	conn, err := t.through.Reach(ctx, raw, func(conn net.Conn, name string) *tls.Conn {
		return tls.Client(conn, network.TLSConfig(l.s.state, name))
	})
	if err != nil {
		return err //nolint:wrapcheck // names the proxy
	}
	if t.tls != nil {
		secure := tls.Client(conn, t.tls)
		if err := secure.HandshakeContext(ctx); err != nil {
			return err //nolint:wrapcheck // codeOf looks at it
		}
		conn = secure
	}
	l.conn = conn
	if l.reader == nil {
		l.reader = bufio.NewReaderSize(&l.bound, readBuffer)
	}
	l.bound = bounded{conn, math.MaxInt64}
	l.reader.Reset(&l.bound)
	return nil
}

// arm sets the deadline of what the connection does next, unless the stage is over.
func (l *lane) arm(deadline time.Time) error {
	_ = l.raw.SetDeadline(deadline) // an error comes again at the first read
	return l.s.ctx.Err()            //nolint:wrapcheck // after it: interrupt may have come before
}

// ended reports whether the connection cannot be reused: since the last answer the server has closed it, or sent unrequested bytes,
// which ended counts as a fault of the service.
func (l *lane) ended() bool {
	pending, ended := peek(l.raw)
	if ended || !pending {
		return ended
	}
	_ = l.raw.SetDeadline(time.Now().Add(time.Millisecond))
	begin, err := l.reader.Peek(len("HTTP/1.1 408"))
	if len(begin) == 0 { // over TLS: the end of the connection, or a session ticket
		return !isTimeout(err)
	}
	if !requestTimeout.Match(begin) {
		l.s.unrequested(l.last, begin)
	}
	return true
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
	if err := l.arm(x.deadline); err != nil {
		return err
	}
	sent := x.op.sent
	if len(x.op.unique) > 0 {
		l.filled, l.text = x.op.own(l.filled, l.s.prefix, l.s.uniques.Add(1))
		sent = l.filled
	}
	_, err := l.conn.Write(sent)
	return err //nolint:wrapcheck // codeOf looks at it
}

// receive reads the answer. A server may answer before it has read all of a request, and hang up: unsent is the error of that.
func (l *lane) receive(x *exchange, unsent error) error {
	resp, err := l.head(x) //nolint:bodyclose // answer reads it to its end, or the connection is closed
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

// A bounded reader reads no more than is left.
type bounded struct {
	net.Conn
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errors.New("the head of the answer is longer than 1 MiB")
	}
	n, err := b.Conn.Read(p)
	b.left -= int64(n)
	return n, err //nolint:wrapcheck // codeOf looks at it
}

// head reads the head of the final answer.
func (l *lane) head(x *exchange) (*http.Response, error) {
	l.bound.left = maxHead
	defer func() { l.bound.left = math.MaxInt64 }()
	for range maxInterim {
		if _, err := l.reader.Peek(1); err != nil {
			return nil, err //nolint:wrapcheck // codeOf looks at it
		}
		x.first = time.Now()
		resp, err := http.ReadResponse(l.reader, x.op.asked)
		if err != nil {
			return nil, err //nolint:wrapcheck // codeOf looks at it
		}
		if resp.StatusCode >= 200 || resp.StatusCode == http.StatusSwitchingProtocols {
			return resp, nil
		}
	}
	return nil, errors.New("the server sends interim responses (1xx) without end")
}

// said is the body of the answer, with the placeholder for the request's own text.
func (l *lane) said(op *operation) []byte {
	if len(op.unique) == 0 {
		return l.body.Bytes()
	}
	return bytes.ReplaceAll(l.body.Bytes(), l.text, []byte(placeholder))
}

// answer reads the body, and says what the answer is worth.
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
		return err //nolint:wrapcheck // codeOf looks at it
	}
	beyond := l.reader.Buffered() > 0 // the server's answer is longer than it says, or is one that nobody asked for
	switch {
	case resp.StatusCode != w.status:
		x.code = "status-" + strconv.Itoa(resp.StatusCode)
	case beyond && !switched, looks && rest > 0, !w.met(l.said(x.op)):
		x.code = shard.CodeWrong
	default:
		x.code = shard.CodeOK
	}
	if resp.Close || beyond || switched || l.s.state.Options.NoConnectionReuse.Bool {
		l.hangUp()
	}
	if l.body.Cap() > keepBuffer {
		l.body = bytes.Buffer{}
	}
	return nil
}

package requests

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"go.k6.io/k6/v2/lib"

	"github.com/sse-soak/sse-soak/internal/http1"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/k6/network"
)

const (
	maxBody         = 64 << 20 // maximum bytes of a body that is compared, unless a longer one is expected
	maxReusedBuffer = 64 << 10 // maximum capacity of a body buffer that is reused
	maxHead         = 1 << 20  // maximum bytes of a head, interim responses included
)

// A lane makes one request at a time and reuses its connection. Only one goroutine at a time may use a lane.
type lane struct {
	s          *stage
	conn       *http1.Conn // nil if the lane has no connection
	target     *target     // of conn
	lastOp     *operation  // of the last request on conn; before that, the operation for which conn was opened
	lastUse    time.Time   // end of the last exchange
	body       bytes.Buffer
	buffer     []byte // the last request with a unique text
	uniqueText []byte // a part of buffer
}

func newDialer(state *lib.State) *http1.Dialer {
	return &http1.Dialer{
		Dial: func(ctx context.Context, networkName, address string) (net.Conn, error) {
			return network.Dial(ctx, state, networkName, address)
		},
		TLS: func(conn net.Conn, server string) *tls.Conn {
			return tls.Client(conn, network.TLSConfig(state, server))
		},
		MaxHead: maxHead,
	}
}

// newLane returns a new lane of the stage, without a connection. closeLanes closes it.
func (s *stage) newLane() *lane {
	l := &lane{s: s}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lanes = append(s.lanes, l)
	return l
}

// settleTime is how long connections stay open after a stage's last response, so that unrequested bytes can arrive.
const settleTime = 50 * time.Millisecond

// closeLanes closes the connections after the last request. Unless k6 interrupted the stage, it first checks them for
// unrequested bytes.
func (s *stage) closeLanes() {
	select {
	case <-time.After(settleTime):
	case <-s.ctx.Done():
	}
	for _, l := range s.lanes {
		if l.conn != nil && s.ctx.Err() == nil {
			_ = l.checkIdle()
		}
		l.hangUp()
	}
}

func (l *lane) hangUp() {
	if l.conn != nil {
		_ = l.conn.Close()
	}
	l.conn, l.target = nil, nil
}

type exchange struct {
	op         *operation
	start      time.Time // the duration counts from here
	deadline   time.Time
	firstByte  time.Time // of the response; zero if no byte arrived
	end        time.Time
	code       string        // "" if k6 interrupted the stage: the exchange is not counted
	server     string        // X-Server
	inFlight   string        // X-In-Flight
	laneWait   time.Duration // time until a lane was free
	releasedAt time.Time     // when all requests of a burst were started; zero in other load models and after a failed dial
	sentAt     time.Time     // end of send, only in a burst
}

// do makes a request. Its duration counts from start.
func (l *lane) do(op *operation, start, deadline time.Time) exchange {
	x := exchange{op: op, start: start, deadline: deadline}
	err := l.connect(&x)
	if err == nil {
		err = l.send(&x)
		err = l.receive(&x, err)
	}
	l.finish(&x, err)
	return x
}

// finish records the end of an exchange. After an error it also closes the connection, sets the outcome and, unless k6
// interrupted the stage, logs the first error with that outcome.
func (l *lane) finish(x *exchange, err error) {
	x.end = time.Now()
	l.lastUse, l.lastOp = x.end, x.op
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
	if truncated := (truncatedError{}); errors.As(err, &truncated) && !isTimeout(err) {
		x.code = shard.CodeTruncated
	}
	l.s.logFailure(x, "%v", err)
}

// connect opens a connection to the target of an exchange, unless the lane has a reusable one.
func (l *lane) connect(x *exchange) error {
	// A check within a millisecond after a response would cost a system call, and miss unrequested bytes that are still
	// in transit.
	if l.conn != nil && (l.target != x.op.target || time.Since(l.lastUse) >= time.Millisecond && !l.checkIdle()) {
		l.hangUp()
	}
	if l.conn != nil {
		return nil
	}
	t := x.op.target
	conn, err := l.s.dialer.Open(l.s.ctx, x.deadline, t.url, t.route)
	if err != nil {
		return err
	}
	l.conn, l.target, l.lastOp = conn, t, x.op
	return nil
}

// checkIdle reports whether the connection can be reused: the server has neither closed it nor sent unrequested bytes
// after the last response. If the operating system cannot determine that, the result is true. checkIdle counts
// unrequested bytes as a fault of the service, unless requestTimeout matches them. A refusal before the first request
// is not a fault: it is the response to that request.
func (l *lane) checkIdle() bool {
	received, err := l.conn.PeekUnrequested()
	if l.lastUse.IsZero() && refusal.Match(received) {
		return true
	}
	if len(received) > 0 && !requestTimeout.Match(received) {
		l.s.noteUnrequested(l.lastOp, received)
	}
	return len(received) == 0 && (err == nil || errors.Is(err, errors.ErrUnsupported))
}

// requestTimeout matches the response that a server may send before it closes an idle connection (RFC 9110, 15.5.9).
var requestTimeout = regexp.MustCompile(`^HTTP/1\.[01] 408`)

// refusal matches the response of a server or proxy that refuses a connection as soon as it accepts it.
var refusal = regexp.MustCompile(`^HTTP/1\.[01] (429|503)`)

// isTimeout reports whether an error is a timeout, including context.DeadlineExceeded.
func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// A truncatedError is the error of reading the body of a response with the expected status.
type truncatedError struct{ error }

func (t truncatedError) Unwrap() error { return t.error }

// send writes the request, and sets the deadline of the connection for the whole exchange.
func (l *lane) send(x *exchange) error {
	if err := l.conn.SetDeadline(x.deadline); err != nil {
		return err
	}
	request := x.op.bytes
	if len(x.op.unique) > 0 {
		l.buffer, l.uniqueText = x.op.writeUnique(l.buffer, l.s.prefix, l.s.uniqueCount.Add(1))
		request = l.buffer
	}
	_, err := l.conn.Write(request)
	return err
}

// receive reads the response, even if sendErr, the error of send, is not nil: a server may respond and close the
// connection before it has read the whole request.
func (l *lane) receive(x *exchange, sendErr error) error {
	resp, err := l.conn.Head(x.op.request) //nolint:bodyclose // check reads it to its end, or the connection is closed
	x.firstByte = l.conn.FirstByte()
	if err == nil {
		err = l.check(x, resp)
	}
	if err != nil && sendErr != nil {
		return sendErr
	}
	if sendErr != nil {
		l.hangUp()
	}
	return err
}

// payload returns the body of the response, in which the placeholder replaces the unique text of the request.
func (l *lane) payload(op *operation) []byte {
	if len(op.unique) == 0 {
		return l.body.Bytes()
	}
	return bytes.ReplaceAll(l.body.Bytes(), l.uniqueText, []byte(placeholder))
}

// check reads the body, compares the response with the expected one, and sets the outcome. It closes a connection that
// cannot be reused.
func (l *lane) check(x *exchange, resp *http.Response) error {
	x.server, x.inFlight = resp.Header.Get("X-Server"), resp.Header.Get("X-In-Flight")
	w := &x.op.want
	l.body.Reset()
	compare := resp.StatusCode == w.status && w.needsBody()
	isSwitched := resp.StatusCode == http.StatusSwitchingProtocols // no HTTP follows
	if compare {
		if _, err := l.body.ReadFrom(io.LimitReader(resp.Body, w.maxLength())); err != nil {
			return truncatedError{err}
		}
	}
	surplus, err := io.Copy(io.Discard, resp.Body)
	switch {
	case err != nil && resp.StatusCode == w.status:
		return truncatedError{err}
	case err != nil:
		return err
	}
	hasExcess := len(l.conn.Buffered()) > 0 // unrequested bytes, or a body longer than its Content-Length
	switch {
	case resp.StatusCode != w.status:
		x.code = "status-" + strconv.Itoa(resp.StatusCode)
		l.s.logFailure(x, "the response has status %s instead of %d", resp.Status, w.status)
	case hasExcess && !isSwitched:
		x.code = shard.CodeWrongContent
		l.s.logFailure(x, "more bytes follow the response: %.100q", l.conn.Buffered())
	case compare && surplus > 0, !w.matches(l.payload(x.op)):
		x.code = shard.CodeWrongContent
		l.s.logFailure(x, "the body differs from the expected one; it begins with %.100q", l.payload(x.op))
	default:
		x.code = shard.CodeOK
	}
	if resp.Close || hasExcess || isSwitched || l.s.state.Options.NoConnectionReuse.Bool {
		l.hangUp()
	}
	if l.body.Cap() > maxReusedBuffer {
		l.body = bytes.Buffer{}
	}
	return nil
}

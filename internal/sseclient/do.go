package sseclient

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/sse-soak/sse-soak/internal/sseclient/coding"
)

// Open requests an event stream, once, and leaves the reading to its caller. It returns how the attempt ended if the response is
// not an event stream, with that response if there is one. When ctx ends the connection is closed.
func (c *Client) Open(ctx context.Context, o *Options, r Request) (*Response, *Close) {
	return c.send(ctx, o, r, (*exchange).open)
}

// Do makes a request, once, and leaves the reading of the response to its caller, whatever its status and type. When ctx ends the
// connection is closed.
func (c *Client) Do(ctx context.Context, o *Options, r Request) (*Response, *Close) {
	return c.send(ctx, o, r, (*exchange).do)
}

func (c *Client) send(
	ctx context.Context, o *Options, r Request, by func(*exchange, context.Context, *request) (*Response, *failure),
) (*Response, *Close) {
	dialing, cancel := contextWithin(ctx, o.ConnectTimeout)
	defer cancel()
	u, err := ParseURL(r.URL)
	if err != nil {
		return nil, &Close{Reason: ReasonError, Err: err, Retry: -1}
	}
	req := o.request(c, u, &r)
	o.Resume.apply(req, o.LastEventID)
	response, fail := by(&exchange{client: c, debug: o.Debug, attach: closeAfter(ctx)}, dialing, req)
	if fail != nil {
		return response, &Close{Reason: fail.reason, Err: fail.err, Status: fail.status, Retry: -1, Response: response}
	}
	return response, nil
}

// closeAfter returns an attach that closes the connection when ctx ends.
func closeAfter(ctx context.Context) func(net.Conn) bool {
	return func(conn net.Conn) bool {
		context.AfterFunc(ctx, func() { hangUp(conn) })
		return ctx.Err() == nil
	}
}

// A Body is the body of a response that blocks in Read, without its content coding. One goroutine reads it; any may call Received.
type Body struct {
	body
	plain    io.Reader
	err      error // of a content coding that is not known
	latest   time.Time
	received atomic.Int64
	since    atomic.Int64 // arrival of the last byte, since processStart
}

// Body returns the body of the response. Reads fail if the server sends no byte for idleTimeout; 0: no limit.
func (r *Response) Body(idleTimeout time.Duration) *Body {
	r.hold()
	b := &Body{latest: r.At}
	b.begin(r, blocking{r.conn})
	b.at = &b.latest
	b.timeout.Store(int64(idleTimeout))
	b.watch(r.At)
	b.plain = readFunc(b.readCoded)
	if packed := r.Coding(); packed != "" {
		b.plain, b.err = coding.New(packed, b.plain)
	}
	return b
}

// readCoded reads the body with its content coding.
func (b *Body) readCoded(p []byte) (int, error) {
	n, err := b.body.Read(p)
	if n > 0 {
		b.since.Store(int64(b.latest.Sub(processStart)))
		b.received.Add(int64(n))
	}
	return n, err
}

// At returns when the bytes of the last Read arrived.
func (b *Body) At() time.Time { return b.latest }

// Received returns the number of bytes of the body that arrived, with its content coding, and when the last one did.
func (b *Body) Received() (n int64, at time.Time) {
	n = b.received.Load()
	return n, processStart.Add(time.Duration(b.since.Load()))
}

// Read reads the body without its content coding.
func (b *Body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	return b.plain.Read(p)
}

// Close ends the reading, and closes the connection.
func (b *Body) Close() error {
	b.unwatch()
	b.transport.hangUp()
	return nil
}

// EndOf returns how a stream ended by the error of reading it.
func EndOf(err error) Close {
	f := readFailure(err)
	return Close{Reason: f.reason, Err: f.err, Retry: -1, Opened: true}
}

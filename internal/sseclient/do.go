package sseclient

import (
	"context"
	"io"
	"net"
	"time"
)

// Open requests an event stream, once, and leaves the reading to its caller. It returns how the attempt ended if the response is
// not an event stream, with that response if there is one. When ctx ends the connection is closed.
func (c *Client) Open(ctx context.Context, o *Options, request Request) (*Response, *Close) {
	dialing, cancel := contextWithin(ctx, o.ConnectTimeout)
	defer cancel()
	u, err := ParseURL(request.URL)
	if err != nil {
		return nil, &Close{Reason: ReasonError, Err: err, Retry: -1}
	}
	d := exchange{client: c, debug: o.Debug, attach: closeAfter(ctx)}
	r, fail := d.open(dialing, o.request(c, u, &request))
	if fail != nil {
		return r, &Close{Reason: fail.reason, Err: fail.err, Status: fail.status, Retry: -1, Response: r}
	}
	return r, nil
}

// closeAfter returns an attach that closes the connection when ctx ends.
func closeAfter(ctx context.Context) func(net.Conn) bool {
	return func(conn net.Conn) bool {
		context.AfterFunc(ctx, func() { hangUp(conn) })
		return ctx.Err() == nil
	}
}

// A Body is the body of a response that blocks in Read, without its content coding. It is for one goroutine.
type Body struct {
	body
	plain  io.Reader
	latest time.Time
}

// Body returns the body of the response. Reads fail if the server sends no byte for idleTimeout; 0: no limit.
func (r *Response) Body(idleTimeout time.Duration) *Body {
	r.hold()
	b := &Body{latest: r.At}
	b.begin(r, blocking{r.conn})
	b.at = &b.latest
	b.timeout.Store(int64(idleTimeout))
	b.watch(r.At)
	b.plain = b.unpacked(r)
	return b
}

// At returns when the bytes of the last Read arrived.
func (b *Body) At() time.Time { return b.latest }

// Read reads the body without its content coding.
func (b *Body) Read(p []byte) (int, error) { return b.plain.Read(p) }

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

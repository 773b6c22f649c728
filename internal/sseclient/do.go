package sseclient

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/sse-soak/sse-soak/internal/sseclient/coding"
)

// Open makes one attempt to open an event stream and returns its response for reading. If the attempt fails, Open
// returns a Close, and the response if there is one. The end of ctx closes the connection.
func (c *Client) Open(ctx context.Context, o *Options, r Request) (*Response, *Close) {
	return c.send(ctx, o, r, (*exchange).open)
}

// Do makes one request and returns the response, with any status and type. If the request fails, Do returns a Close,
// and the response if there is one. The end of ctx closes the connection.
func (c *Client) Do(ctx context.Context, o *Options, r Request) (*Response, *Close) {
	return c.send(ctx, o, r, (*exchange).do)
}

func (c *Client) send(
	ctx context.Context, o *Options, r Request, roundTrip func(*exchange, context.Context, *request) (*Response, *failure),
) (*Response, *Close) {
	dialing, cancel := contextWithin(ctx, o.ConnectTimeout)
	defer cancel()
	u, err := ParseURL(r.URL)
	if err != nil {
		return nil, &Close{Reason: ReasonError, Err: err, Retry: -1}
	}
	req := o.request(c, u, &r)
	o.Resume.apply(req, o.LastEventID)
	response, fail := roundTrip(&exchange{client: c, debug: o.Debug, attach: closeAfter(ctx)}, dialing, req)
	if fail != nil {
		return response, &Close{Reason: fail.reason, Err: fail.err, Status: fail.status, Retry: -1, Response: response}
	}
	return response, nil
}

// closeAfter returns a function for exchange.attach. Once the function has been called, the end of ctx closes the
// connection.
func closeAfter(ctx context.Context) func(net.Conn) bool {
	return func(conn net.Conn) bool {
		context.AfterFunc(ctx, func() { hangUp(conn) })
		return ctx.Err() == nil
	}
}

// A Body is the decoded body of a response. Any goroutine may call Received, but only one may call the other methods.
type Body struct {
	body
	decoder     io.Reader
	err         error // an unsupported content coding
	lastArrival time.Time
	received    atomic.Int64
	lastByte    atomic.Int64 // arrival time of the last byte, since processStart
}

// Body returns the body of the response. Reads fail if the server sends no byte for idleTimeout; 0 means no limit.
func (r *Response) Body(idleTimeout time.Duration) *Body {
	r.keepOpen()
	b := &Body{lastArrival: r.At}
	b.begin(r, blockingConn{r.conn})
	b.arrival = &b.lastArrival
	b.timeout.Store(int64(idleTimeout))
	b.watch(r.At)
	b.decoder = readFunc(b.readCoded)
	if contentCoding := r.Coding(); contentCoding != "" {
		b.decoder, b.err = coding.New(contentCoding, b.decoder)
	}
	return b
}

func (b *Body) readCoded(p []byte) (int, error) {
	n, err := b.body.Read(p)
	if n > 0 {
		b.lastByte.Store(int64(b.lastArrival.Sub(processStart)))
		b.received.Add(int64(n))
	}
	return n, err
}

// At returns the arrival time of the bytes of the last Read.
func (b *Body) At() time.Time { return b.lastArrival }

// Received returns the number of bytes before decoding, and the arrival time of the last byte. The time is not valid if
// n is 0.
func (b *Body) Received() (n int64, at time.Time) {
	n = b.received.Load()
	return n, processStart.Add(time.Duration(b.lastByte.Load()))
}

// Read reads the decoded body.
func (b *Body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	return b.decoder.Read(p)
}

// Close closes the connection. No Read may follow.
func (b *Body) Close() error {
	b.unwatch()
	b.transport.hangUp()
	return nil
}

// EndOf returns the Close for an error of Body.Read. The response must come from Open.
func EndOf(err error) Close {
	f := readFailure(err)
	return Close{Reason: f.reason, Err: f.err, Status: f.status, Retry: -1, Opened: true}
}

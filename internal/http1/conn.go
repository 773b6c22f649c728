// Package http1 is the plain HTTP/1.1 client: its caller keeps the connections and makes one request at a time on each.
//
// It sends each request exactly once. The client of net/http may send a request again when a kept connection ends, opens no
// connection before there is a request, and does not report the idle time of a connection. net/http encodes the requests and
// parses the responses.
package http1

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/sse-soak/sse-soak/internal/proxy"
)

// A Dialer opens connections.
type Dialer struct {
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)
	TLS     func(conn net.Conn, server string) *tls.Conn // the client side, with a server or a proxy of that name
	MaxHead int                                          // bytes of a response head, interim responses included
}

var pastTime = time.Unix(1, 0)

// Open connects to the server of a URL, or to a proxy that forwards requests to it, until the deadline. When ctx ends, the opening
// fails, and so do all reads and writes on the connection later.
func (d *Dialer) Open(ctx context.Context, deadline time.Time, u *url.URL, through *proxy.Proxy) (*Conn, error) {
	opening, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	raw, err := d.Dial(opening, "tcp", through.Address(u))
	if err != nil {
		return nil, through.DialError(err)
	}
	stop := interruptAfter(opening, raw)
	conn, err := through.Reach(opening, raw, d.TLS)
	if err == nil && u.Scheme == "https" {
		secure := d.TLS(conn, u.Hostname())
		conn, err = secure, secure.HandshakeContext(opening)
	}
	if !stop() && err == nil {
		err = opening.Err()
	}
	if err != nil {
		_ = raw.Close()
		return nil, err
	}
	c := &Conn{conn: conn, raw: raw, reader: newReader(bufferSize, d.MaxHead), ctx: ctx, stop: interruptAfter(ctx, raw)}
	c.reader.Reset(conn)
	_ = c.SetDeadline(deadline) // the write returns the same error
	return c, nil
}

// interruptAfter makes reads and writes fail once ctx is done, also those in progress, until stop is called.
func interruptAfter(ctx context.Context, conn net.Conn) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = conn.SetDeadline(pastTime) })
}

// A Conn is a connection for one request at a time. One goroutine uses it; any goroutine may call Close.
type Conn struct {
	conn   net.Conn // of TLS if the URL is https
	raw    net.Conn // below TLS
	reader *Reader
	ended  error // found by Unrequested
	ctx    context.Context
	stop   func() bool // ends the wait for ctx
}

const bufferSize = 4 << 10

// Write sends a request, or a part of it.
func (c *Conn) Write(request []byte) (int, error) {
	c.reader.first = time.Time{}
	return c.conn.Write(request)
}

// Head reads the head of the response to a request: see Reader.Head.
func (c *Conn) Head(req *http.Request) (*http.Response, error) { return c.reader.Head(req) }

// FirstByte returns when the first byte of the last head arrived; zero if no byte arrived since the last Write.
func (c *Conn) FirstByte() time.Time { return c.reader.first }

// Buffered returns the bytes that were read beyond the last head or body.
func (c *Conn) Buffered() []byte { return c.reader.Buffered() }

// SetDeadline sets the time at which reads and writes fail. Its error is that of the context of Open.
func (c *Conn) SetDeadline(t time.Time) error {
	_ = c.raw.SetDeadline(t) // the read or write returns the same error
	err := c.ctx.Err()
	if err != nil {
		_ = c.raw.SetDeadline(pastTime) // t may have replaced the interruption
	}
	return err
}

// Close closes the connection, for TLS without a close_notify, which could wait for seconds until there is room to send it.
func (c *Conn) Close() error {
	c.stop()
	return c.raw.Close()
}

// Reusable reports whether a peer has neither ended an idle connection nor sent bytes on it. It is false if the operating system cannot
// tell.
func Reusable(conn net.Conn) bool {
	pending, err := peek(conn)
	return !pending && err == nil
}

// ticketTime is the time for which Unrequested waits for the data of a TLS record that has arrived.
const ticketTime = time.Millisecond

// Unrequested examines an idle connection: it returns the first bytes that the server sent after the last response,
// up to the status of an HTTP response, or an error if the connection has ended. A connection with neither can be
// used again. The error is errors.ErrUnsupported if the operating system does not support it. The caller sets a new
// deadline afterwards.
func (c *Conn) Unrequested() ([]byte, error) {
	if len(c.Buffered()) == 0 && c.ended == nil {
		pending, err := peek(c.raw)
		if c.ended = err; err == nil && !pending {
			return nil, nil
		}
	}
	if c.ended != nil {
		return nil, c.ended
	}
	_ = c.raw.SetDeadline(time.Now().Add(ticketTime)) // the read returns the same error
	begin, err := c.reader.buffer.Peek(len("HTTP/1.1 200"))
	switch {
	case len(begin) > 0:
		return begin, nil
	case errors.Is(err, os.ErrDeadlineExceeded): // a TLS session ticket
		return nil, nil
	}
	c.ended = err
	return nil, err
}

// WriteRequest writes a request as its server expects it, or a proxy that forwards it. It adds the credentials of the URL and of the
// proxy to the header.
func WriteRequest(to io.Writer, r *http.Request, through *proxy.Proxy) error {
	if user := r.URL.User; user != nil && r.Header.Get("Authorization") == "" {
		password, _ := user.Password()
		r.SetBasicAuth(user.Username(), password)
	}
	if !through.Forwards() {
		return r.Write(to)
	}
	if authorization := through.Authorization(); authorization != "" {
		r.Header.Set("Proxy-Authorization", authorization)
	}
	return r.WriteProxy(to)
}

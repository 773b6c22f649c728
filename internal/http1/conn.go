// Package http1 is a plain HTTP/1.1 client. Its caller owns the connections and makes one request at a time on each.
//
// It never repeats a request. The client of net/http may repeat one when an idle connection ends, and opens no
// connection before there is a request. This package uses net/http only to encode requests and to parse responses.
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
	TLS     func(conn net.Conn, server string) *tls.Conn // returns the client side of TLS with that server or proxy
	MaxHead int                                          // maximum bytes of a response head, interim responses included
}

// pastTime is a deadline that ends all reads and writes, including those in progress.
var pastTime = time.Unix(1, 0)

// Open returns a connection for requests to a URL: to its server, directly or through a tunnel, or to a proxy that
// forwards the requests. Open fails at the deadline, which is also the first deadline of the connection. When ctx ends,
// Open and all later reads and writes on the connection fail.
func (d *Dialer) Open(ctx context.Context, deadline time.Time, u *url.URL, route *proxy.Proxy) (*Conn, error) {
	opening, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	raw, err := d.Dial(opening, "tcp", route.Address(u))
	if err != nil {
		return nil, route.DialError(err)
	}
	stop := interruptAfter(opening, raw)
	conn, err := route.Reach(opening, raw, d.TLS)
	if err == nil && u.Scheme == "https" {
		var direct *proxy.Proxy
		name, _, _ := net.SplitHostPort(direct.Address(u)) // in ASCII, as in certificates
		secure := d.TLS(conn, name)
		conn, err = secure, secure.HandshakeContext(opening)
	}
	if !stop() && err == nil {
		err = opening.Err()
	}
	if err != nil {
		_ = raw.Close()
		return nil, err
	}
	c := &Conn{conn: conn, raw: raw, Reader: newReader(conn, bufferSize, d.MaxHead), ctx: ctx, stop: interruptAfter(ctx, raw)}
	_ = c.SetDeadline(deadline) // the first write returns the same error
	return c, nil
}

// interruptAfter makes reads and writes fail when ctx ends, even those in progress. It returns the stop function of
// context.AfterFunc.
func interruptAfter(ctx context.Context, conn net.Conn) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = conn.SetDeadline(pastTime) })
}

// A Conn is a connection for one request at a time. One goroutine uses it; any goroutine may call Close.
type Conn struct {
	*Reader
	conn net.Conn // TLS if the URL is https
	raw  net.Conn // below TLS
	err  error    // why the connection cannot be reused; PeekUnrequested sets it
	ctx  context.Context
	stop func() bool // prevents the interruption; see interruptAfter
}

const bufferSize = 4 << 10

// Write sends a request, or a part of it. It also resets FirstByte.
func (c *Conn) Write(request []byte) (int, error) {
	c.first = time.Time{}
	return c.conn.Write(request)
}

// FirstByte returns the arrival time of the first byte of the last head; zero if none has arrived since the last Write.
func (c *Conn) FirstByte() time.Time { return c.first }

// SetDeadline sets the time at which reads and writes fail. It returns an error if the context of Open has ended.
func (c *Conn) SetDeadline(t time.Time) error {
	_ = c.raw.SetDeadline(t) // the read or write returns the same error
	err := c.ctx.Err()
	if err != nil {
		_ = c.raw.SetDeadline(pastTime) // t may have replaced the interruption
	}
	return err
}

// Close closes the connection. It sends no TLS close_notify alert, because that could block if the peer does not read.
func (c *Conn) Close() error {
	c.stop()
	return c.raw.Close()
}

// Reusable reports whether an idle connection is open and has no unread bytes. It always returns false on Windows,
// which cannot determine that. Elsewhere it returns true for a connection without a socket.
func Reusable(conn net.Conn) bool {
	pending, err := peek(conn)
	return !pending && err == nil
}

// ticketTime is how long PeekUnrequested waits for data. A TLS record with a session ticket has none.
const ticketTime = time.Millisecond

// PeekUnrequested returns the bytes that the server sent on an idle connection after the last response, up to the
// length of "HTTP/1.1 200". It returns an error if the connection has ended, and errors.ErrUnsupported if the operating
// system cannot determine that. If it returns neither bytes nor an error, the connection can be reused. PeekUnrequested
// changes the deadline, so the caller must set a new one.
func (c *Conn) PeekUnrequested() ([]byte, error) {
	if len(c.Buffered()) == 0 && c.err == nil {
		pending, err := peek(c.raw)
		if c.err = err; err == nil && !pending {
			return nil, nil
		}
	}
	if c.err != nil {
		return nil, c.err
	}
	_ = c.raw.SetDeadline(time.Now().Add(ticketTime)) // the read returns the same error
	start, err := c.buffer.Peek(len("HTTP/1.1 200"))
	switch {
	case len(start) > 0:
		return start, nil
	case errors.Is(err, os.ErrDeadlineExceeded): // the bytes were a TLS session ticket
		return nil, nil
	}
	c.err = err
	return nil, err
}

// AddCredentials adds the credentials of the URL to the request, unless it already has the header Authorization.
func AddCredentials(r *http.Request) {
	if user := r.URL.User; user != nil && r.Header.Get("Authorization") == "" {
		password, _ := user.Password()
		r.SetBasicAuth(user.Username(), password)
	}
}

// WriteRequest writes a request for its server, or for a proxy that forwards the request. It calls AddCredentials. For
// a proxy that forwards the request, it also adds the proxy's credentials.
func WriteRequest(to io.Writer, r *http.Request, route *proxy.Proxy) error {
	AddCredentials(r)
	if !route.Forwards() {
		return r.Write(to)
	}
	if authorization := route.Authorization(); authorization != "" {
		r.Header.Set("Proxy-Authorization", authorization)
	}
	return r.WriteProxy(to)
}

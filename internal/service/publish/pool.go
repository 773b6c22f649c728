package publish

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/url"
	"sync"
	"syscall"
	"time"

	"github.com/sse-soak/sse-soak/internal/http1"
	"github.com/sse-soak/sse-soak/internal/proxy"
)

const (
	// maxIdle is the longest idle time after which a connection is reused. A server may close an idle connection at any
	// time (RFC 9112, 9.5). A message that is sent at that moment may be lost, and must not be sent twice.
	maxIdle = time.Second
	// minIdle is the shortest idle time for which a closed connection is attributed to an idle timeout of the server.
	minIdle = 100 * time.Millisecond
	// maxResponse limits the head and the body of a response, in bytes. Beyond it, the connection is closed.
	maxResponse = 256 << 10
)

type pool struct {
	dialer  http1.Dialer
	proxies proxy.Chooser

	mu      sync.Mutex
	origins map[string]*origin
}

// An origin is a scheme with a host, and its idle connections.
type origin struct {
	url   *url.URL
	route *proxy.Proxy
	idle  *http1.IdleConns[*conn]
}

type conn struct {
	*http1.Conn
	origin *origin
	idle   time.Duration // time without a request before the current one; 0 on a new connection
}

// newPool returns an empty pool. insecure turns off the verification of certificates.
func newPool(insecure bool, proxies proxy.Chooser) *pool {
	return &pool{proxies: proxies, origins: map[string]*origin{}, dialer: http1.Dialer{
		Dial: new(net.Dialer).DialContext,
		TLS: func(conn net.Conn, server string) *tls.Conn {
			return tls.Client(conn, &tls.Config{
				ServerName: server, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12,
				InsecureSkipVerify: insecure, // #nosec G402 -- the user's choice, as for the streams
			})
		},
		MaxHead: maxResponse,
	}}
}

// connect returns a connection to the server of a URL, for a request that ends at the deadline or with ctx.
func (p *pool) connect(ctx context.Context, u *url.URL, deadline time.Time) (c *conn, reused bool, err error) {
	o, err := p.origin(u)
	if err != nil {
		return nil, false, err
	}
	for {
		c, idle, ok := o.idle.Take()
		if !ok {
			break
		}
		// If the system cannot determine whether the server has closed the connection, the outcome of a message on it would
		// be unknown.
		unrequested, err := c.PeekUnrequested()
		if c.idle = idle; len(unrequested) == 0 && err == nil && c.SetDeadline(deadline) == nil {
			return c, true, nil
		}
		_ = c.Close()
	}
	opened, err := p.dialer.Open(ctx, deadline, o.url, o.route)
	if err != nil {
		return nil, false, err
	}
	return &conn{Conn: opened, origin: o}, false, nil
}

func (p *pool) origin(u *url.URL) (*origin, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := u.Scheme + "://" + u.Host
	if o := p.origins[name]; o != nil {
		return o, nil
	}
	route, err := p.proxies.For(u)
	if err != nil {
		return nil, err
	}
	o := &origin{url: u, route: route, idle: http1.NewIdleConns[*conn](maxIdle)}
	p.origins[name] = o
	return o, nil
}

// mayBeClosedAsIdle reports whether the server may have closed the connection as idle while a request was in transit.
// The connection must have been idle for at least minIdle, and have ended within maxIdle after the request, without a
// byte of a response. elapsed is the time since the request was sent.
func (c *conn) mayBeClosedAsIdle(err error, elapsed time.Duration) bool {
	ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
	return ended && c.FirstByte().IsZero() && c.idle >= minIdle && elapsed < maxIdle
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, o := range p.origins {
		_ = o.idle.Close()
	}
	clear(p.origins)
}

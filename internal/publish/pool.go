package publish

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/internal/proxy"
)

const (
	// keepIdle is for how long an idle connection is kept. Servers close theirs after 5 s or more (Node, uvicorn): a
	// message that is sent at that moment is lost, and nobody could say whether the service had it.
	keepIdle = 4 * time.Second
	// mostAnswer is what is read of an answer, its head included. A longer one ends its connection.
	mostAnswer = 256 << 10
)

// A pool keeps the connections of a publisher. It is one of our own because net/http's may send a request twice
// (one with GET or an Idempotency-Key, where a kept connection ends before the answer), and because the time and
// the number are to be written into a message when its connection is there.
type pool struct {
	insecure bool
	proxies  proxy.Chooser

	mu      sync.Mutex
	closed  bool
	all     map[*conn]struct{}
	origins map[string]*origin
}

// origin is a scheme with a host, and the connections to it that are idle, the one used last at the end.
type origin struct {
	url     *url.URL
	through *proxy.Proxy
	direct  bool   // no proxy takes the requests themselves
	extra   []byte // header lines for that proxy
	idle    []*conn
}

// A conn is one connection, used for one request at a time.
type conn struct {
	net.Conn
	raw    net.Conn // below TLS
	origin *origin
	in     *bufio.Reader
	left   int // bytes that may be read
	since  time.Time
}

func newPool(insecure bool, proxies proxy.Chooser) *pool {
	return &pool{insecure: insecure, proxies: proxies, all: map[*conn]struct{}{}, origins: map[string]*origin{}}
}

// Read reads no more than what an answer may have.
func (c *conn) Read(b []byte) (int, error) {
	if c.left <= 0 {
		return 0, errTooLong
	}
	n, err := c.Conn.Read(b[:min(len(b), c.left)])
	c.left -= n
	return n, err
}

var errTooLong = errors.New("the answer is too long")

var errClosed = errors.New("the publisher was stopped")

// get is a connection to an origin (such as http://host:80) for a request that is over at the deadline.
func (p *pool) get(ctx context.Context, name []byte, deadline time.Time) (c *conn, reused bool, err error) {
	for {
		o, c, err := p.kept(name)
		if err != nil {
			return nil, false, err
		}
		if c == nil {
			c, err := p.dial(ctx, o, deadline)
			return c, false, err
		}
		c.left = mostAnswer
		if c.SetDeadline(deadline) == nil && time.Since(c.since) < keepIdle && c.in.Buffered() == 0 && alive(c.raw) {
			return c, true, nil
		}
		p.drop(c)
	}
}

// kept is an idle connection, nil where there is none.
func (p *pool) kept(name []byte) (*origin, *conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, errClosed
	}
	o := p.origins[string(name)]
	if o == nil {
		var err error
		if o, err = p.origin(string(name)); err != nil {
			return nil, nil, err
		}
		p.origins[string(name)] = o
	}
	if len(o.idle) == 0 {
		return o, nil, nil
	}
	c := o.idle[len(o.idle)-1]
	o.idle = o.idle[:len(o.idle)-1]
	return o, c, nil
}

// origin finds the way to one, which is the same for all its connections.
func (p *pool) origin(name string) (*origin, error) {
	u, err := url.Parse(name)
	if err != nil {
		return nil, reason(err)
	}
	o := &origin{url: u}
	if o.through, err = p.proxies.For(u); err != nil {
		return nil, err //nolint:wrapcheck // names the proxy
	}
	if o.direct = !o.through.Forwards(); !o.direct && o.through.Authorization() != "" {
		o.extra = []byte("Proxy-Authorization: " + o.through.Authorization() + "\r\n")
	}
	return o, nil
}

func (p *pool) dial(ctx context.Context, o *origin, deadline time.Time) (*conn, error) {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	raw, err := new(net.Dialer).DialContext(ctx, "tcp", o.through.Address(o.url))
	if err != nil {
		return nil, o.through.Undialed(err) //nolint:wrapcheck // names the proxy
	}
	c := &conn{Conn: raw, raw: raw, origin: o, left: mostAnswer}
	c.in = bufio.NewReader(c)
	if err := p.add(c); err != nil {
		_ = raw.Close()
		return nil, err
	}
	err = c.SetDeadline(deadline)
	if err == nil {
		c.Conn, err = p.reach(ctx, o, raw)
	}
	if err != nil {
		p.drop(c)
		return nil, err
	}
	return c, nil
}

// reach makes a connection that is dialed one to send requests on.
func (p *pool) reach(ctx context.Context, o *origin, raw net.Conn) (net.Conn, error) {
	on, err := o.through.Reach(ctx, raw, p.secure)
	if err != nil || o.url.Scheme != "https" {
		return on, err //nolint:wrapcheck // names the proxy
	}
	secure := p.secure(on, o.url.Hostname())
	return secure, secure.HandshakeContext(ctx)
}

func (p *pool) secure(conn net.Conn, server string) *tls.Conn {
	return tls.Client(conn, &tls.Config{
		ServerName: server, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12,
		InsecureSkipVerify: p.insecure, //nolint:gosec // as the user asked for, like that of the streams
	})
}

func (p *pool) add(c *conn) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return errClosed
	}
	p.all[c] = struct{}{}
	return nil
}

// put gives back a connection that can be used again, and closes what has been idle for too long.
func (p *pool) put(c *conn) {
	c.since = time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	idle := append(c.origin.idle, c)
	for c.since.Sub(idle[0].since) >= keepIdle {
		_ = idle[0].raw.Close()
		delete(p.all, idle[0])
		idle = idle[1:]
	}
	c.origin.idle = idle
}

// drop closes a connection that get gave.
func (p *pool) drop(c *conn) {
	_ = c.raw.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, c)
}

// close closes all connections, those with a request in flight as well.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for c := range p.all {
		_ = c.raw.Close()
	}
	clear(p.all)
}

func (p *pool) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

package publish

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sse-soak/sse-soak/internal/proxy"
)

const (
	// keepIdle is the longest time for which a connection may be idle before it is reused. A server may close an idle connection at
	// any time (RFC 9112, 9.5). A message that is sent at that moment may be lost, and must not be sent twice.
	keepIdle = time.Second
	// leastIdle is the shortest idle time after which a server may have closed a connection as idle.
	leastIdle = 100 * time.Millisecond
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
	left   int           // bytes that may be read
	began  bool          // the response to the present request has started
	since  time.Time     // when the last response ended
	idle   time.Duration // before the present request; 0 on a new connection
	keep   time.Duration // the longest idle time before reuse
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
	c.began = c.began || n > 0
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
		c.left, c.began, c.idle = mostAnswer, false, time.Since(c.since)
		if c.SetDeadline(deadline) == nil && c.idle < c.keep && c.in.Buffered() == 0 && alive(c.raw) {
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

// put returns a connection to the pool after a response, and closes connections that have been idle for too long.
func (p *pool) put(c *conn, answer http.Header) {
	c.since, c.keep = time.Now(), idleLimit(answer)
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

// idleLimit returns how long a connection may be idle after a response: half of the server's own timeout (Keep-Alive:
// timeout=5), because the next request must arrive within that timeout.
func idleLimit(answer http.Header) time.Duration {
	for _, parameter := range strings.Split(answer.Get("Keep-Alive"), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(parameter), "=")
		if !strings.EqualFold(name, "timeout") {
			continue
		}
		if s, err := strconv.ParseUint(strings.Trim(value, `"`), 10, 16); err == nil {
			return min(time.Duration(s)*time.Second/2, keepIdle)
		}
	}
	return keepIdle
}

// closedIdle reports whether the server may have closed the connection as idle while a request was on its way: no byte of a
// response arrived, and the connection ended within keepIdle.
func (c *conn) closedIdle(err error, sent time.Duration) bool {
	ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
	return ended && !c.began && c.idle >= leastIdle && sent < keepIdle
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

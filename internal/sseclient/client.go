// Package sseclient is a client for Server-Sent Events: it connects, parses, reconnects, resumes and disconnects
// streams.
//
// A Client has the network settings. A Group contains streams that one call can end. A Stream connects and reconnects
// one subscriber, and reports to its Callbacks. Client.Open and Client.Do make one request and return the response.
//
// # Goroutines
//
// One goroutine dials and reads the response header. On Linux one poller then reads nearly all streams of the process
// (epoll_linux.go). Any other stream or HTTP/2 connection has a goroutine; see Client.Dial. A stream that waits for its
// next attempt has only a timer.
//
// # Transports
//
// A transport is the connection of an open stream (transport.go). There are three kinds: a connection that blocks in
// Read, a connection that the poller reads, and a stream of an HTTP/2 connection (h2_*.go).
package sseclient

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sse-soak/sse-soak/internal/proxy"
)

// A Client has the network settings of streams. Streams over HTTP/2 can share its connections. The zero value uses the
// defaults of package net and the proxies of the environment. The fields must not change after the first use.
type Client struct {
	// Dial opens a TCP connection. On Linux the poller reads a *Conn that wraps a *net.TCPConn, unless it carries TLS
	// within TLS. A goroutine reads any other connection.
	Dial      func(ctx context.Context, network, address string) (net.Conn, error)
	TLS       func(serverName string) *tls.Config // returns a new configuration; nil: the defaults
	Proxies   proxy.Chooser                       // nil: the proxies of the environment
	UserAgent string                              // "": no User-Agent is sent
	NoSharing bool                                // each request has its own connection
	// Await waits until a request may be sent. It returns false if ctx ends first. nil: requests do not wait.
	Await func(ctx context.Context) bool
	// DialPatience is how long a request waits for an HTTP/2 connection that another request dials. 0 means 1 s.
	DialPatience time.Duration

	tlsMu   sync.Mutex
	configs map[tlsKey]*tls.Config
	pool    h2Pool
	idle    idlePool
}

type tlsKey struct {
	serverName string
	protocol   Protocol
}

// tlsConfig returns the configuration that all connections with the same server name and protocol share.
func (c *Client) tlsConfig(serverName string, protocol Protocol) *tls.Config {
	c.tlsMu.Lock()
	defer c.tlsMu.Unlock()
	key := tlsKey{serverName, protocol}
	conf := c.configs[key]
	if conf == nil {
		if conf = new(tls.Config); c.TLS != nil {
			conf = c.TLS(serverName)
		}
		if conf.ServerName == "" {
			conf.ServerName = serverName
		}
		conf.NextProtos = protocol.alpn()
		if c.configs == nil {
			c.configs = make(map[tlsKey]*tls.Config)
		}
		c.configs[key] = conf
	}
	return conf
}

func (c *Client) dial(ctx context.Context, address string) (net.Conn, error) {
	dial := c.Dial
	if dial == nil {
		dial = dialWithCounters
	}
	return dial(ctx, "tcp", address)
}

func dialWithCounters(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &Conn{Conn: conn, Received: new(int64), Sent: new(int64)}, nil
}

func (c *Client) await(ctx context.Context) bool { return c.Await == nil || c.Await(ctx) }

// CloseIdle closes the connections that have no stream.
func (c *Client) CloseIdle() {
	c.pool.closeIdle()
	c.idle.close()
}

// A Conn is a connection that counts its bytes. The counters are updated atomically.
type Conn struct {
	net.Conn
	Received, Sent *int64
}

func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	atomic.AddInt64(c.Received, int64(n))
	return n, err
}

func (c *Conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	atomic.AddInt64(c.Sent, int64(n))
	return n, err
}

// SyscallConn implements syscall.Conn.
func (c *Conn) SyscallConn() (syscall.RawConn, error) {
	socket, ok := c.Conn.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return socket.SyscallConn()
}

// A Group is a set of streams that end when the context of the group ends, or earlier.
type Group struct {
	client        *Client
	ctx           context.Context
	unwatch       func() bool // stops watching ctx
	isInterrupted atomic.Bool

	mu      sync.Mutex
	streams map[*Stream]struct{} // the streams that have not ended
}

// Group returns a group whose streams are interrupted when ctx ends.
func (c *Client) Group(ctx context.Context) *Group {
	g := &Group{client: c, ctx: ctx, streams: make(map[*Stream]struct{})}
	g.unwatch = context.AfterFunc(ctx, g.Interrupt)
	return g
}

// Context returns the context whose end interrupts the streams.
func (g *Group) Context() context.Context { return g.ctx }

// Close stops watching the context. The caller must call it when all streams have ended.
func (g *Group) Close() { g.unwatch() }

// Interrupt ends all streams with ReasonInterrupted. It does not wait.
func (g *Group) Interrupt() {
	g.isInterrupted.Store(true)
	g.mu.Lock()
	all := maps.Clone(g.streams)
	g.mu.Unlock()
	for s := range all {
		s.Stop(ReasonInterrupted)
	}
}

// Interrupted reports whether the streams were interrupted.
func (g *Group) Interrupted() bool { return g.isInterrupted.Load() }

// Add returns a new stream, which the caller starts with Start or Open. The caller must not change o or callbacks,
// which streams share. Stream.Value returns value.
func (g *Group) Add(o *Options, callbacks *Callbacks, value any) *Stream {
	s := &Stream{group: g, opts: o, callbacks: callbacks, value: value}
	if callbacks.FollowUp != nil {
		s.calls = new(sync.Mutex)
	}
	if o.LastEventID != "" {
		s.parser.SetLastEventID(o.LastEventID)
	}
	s.reconnect.Store(int32(o.Reconnect))
	s.body.timeout.Store(int64(o.IdleTimeout))
	s.cuttable = callbacks.Cuttable != nil && callbacks.Cuttable(s)
	g.mu.Lock()
	g.streams[s] = struct{}{}
	g.mu.Unlock()
	if g.Interrupted() {
		s.Stop(ReasonInterrupted)
	}
	return s
}

func (g *Group) forget(s *Stream) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.streams, s)
}

// processStart is the reference point for times that are stored as durations.
var processStart = time.Now()

package sseclient

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/sse-soak/sse-soak/internal/http1"
)

// Connections are reused as by net/http.Transport, which k6/http and vegeta use: per server, the most recently used
// first, after a whole body only, for a limited time. As there, a request with a body is repeated only if the server
// has certainly not received it.

// keepIdle is the longest time for which a connection is idle before it is reused.
const keepIdle = 2 * time.Second

// idleConns are the idle connections to one server.
type idleConns = http1.Idle[idleConn]

// An idleConn is a connection between two requests.
type idleConn struct{ net.Conn }

func (c idleConn) Close() error {
	hangUp(c.Conn)
	return nil
}

// An idlePool has the idle HTTP/1.1 connections of a virtual user.
type idlePool struct {
	mu    sync.Mutex
	sites map[idleKey]*idleConns
}

// idleKey is what requests have in common that may use the same connection.
type idleKey struct {
	scheme, host string
	protocol     Protocol
}

// idleFor returns the idle connections that may carry a request, and that its connection joins; nil if the connection
// is for this request only.
func (c *Client) idleFor(r *request) *idleConns {
	if httpguts.HeaderValuesContainsToken(r.header.Values("Connection"), "close") {
		return nil // no request may follow (RFC 9112, 9.6)
	}
	if r.plain || r.Protocol == HTTP2 || c.Unshared {
		return nil
	}
	key := idleKey{r.url.Scheme, strings.ToLower(r.url.Host), r.Protocol}
	c.idle.mu.Lock()
	defer c.idle.mu.Unlock()
	if c.idle.sites == nil {
		c.idle.sites = make(map[idleKey]*idleConns)
	}
	idle := c.idle.sites[key]
	if idle == nil {
		idle = http1.NewIdle[idleConn](keepIdle)
		c.idle.sites[key] = idle
	}
	return idle
}

func (p *idlePool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, idle := range p.sites {
		_ = idle.Close()
	}
}

// takeIdle returns an idle connection that the server has not closed, nil if there is none.
func (d *exchange) takeIdle(req *request) net.Conn {
	idle := d.client.idleFor(req)
	if idle == nil || d.fresh {
		return nil
	}
	for {
		c, _, ok := idle.Take()
		if !ok {
			return nil
		}
		if http1.Reusable(rawOf(c.Conn)) {
			return c.Conn
		}
		_ = c.Close()
		idle.NoteEnd()
	}
}

// KeepConnection leaves the connection to the next request of the client, if the response ends by its own length or
// last chunk. Otherwise the connection is closed after it. A callback of the stream calls it.
func (s *Stream) KeepConnection() { s.keeps = true }

// leaveConnection leaves the connection of a stream that has ended to another request, and reports whether it did.
func (s *Stream) leaveConnection(err error) bool {
	b := &s.body
	return s.keeps && errors.Is(err, io.EOF) && b.ended && !b.excess && b.left == nil && b.transport.keep()
}

// errUnreceived is the error of a request on a reused connection that the server had closed before any of it arrived.
var errUnreceived = errors.New("the server had closed the idle connection")

// unreceived adds errUnreceived to the error of a request of which n bytes were sent, if that is certain. A request
// may be sent again only if it was never processed (RFC 9110, 9.2.2; RFC 9112, 9.3.1). The end of a connection
// acknowledges all that has arrived before it, so a server that acknowledged nothing had closed the connection
// earlier. A server that ends after it received the request, or resets the connection, which proves nothing, has
// failed: its request is not repeated.
func (r *Response) unreceived(n int, err error) error {
	if r.reused && (n == 0 || errors.Is(err, io.EOF) && unacknowledged(rawOf(r.conn)) >= n) {
		return fmt.Errorf("%w: %w", errUnreceived, err)
	}
	return err
}

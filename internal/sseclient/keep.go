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

// The reuse of connections follows the rules of http.Transport, which k6/http and vegeta use. A connection is reused
// for the same server, for a limited time, and after a complete body. The most recently used connection is reused
// first. A request is sent again only if the server has certainly not received it.

const maxIdleTime = 2 * time.Second

type idleConns = http1.IdleConns[idleConn]

type idleConn struct{ net.Conn }

func (c idleConn) Close() error {
	hangUp(c.Conn)
	return nil
}

type idlePool struct {
	mu    sync.Mutex
	sites map[siteKey]*idleConns
}

// idleFor returns the set of idle HTTP/1.1 connections for a request, or nil if the request must not use one.
func (c *Client) idleFor(r *request) *idleConns {
	if httpguts.HeaderValuesContainsToken(r.header.Values("Connection"), "close") {
		return nil // no request may follow (RFC 9112, 9.6)
	}
	if r.plain || r.Protocol == HTTP2 || c.NoSharing {
		return nil
	}
	key := siteKey{r.url.Scheme, strings.ToLower(r.url.Host), Sharing{Protocol: r.Protocol}}
	c.idle.mu.Lock()
	defer c.idle.mu.Unlock()
	if c.idle.sites == nil {
		c.idle.sites = make(map[siteKey]*idleConns)
	}
	idle := c.idle.sites[key]
	if idle == nil {
		idle = http1.NewIdleConns[idleConn](maxIdleTime)
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

// takeIdle returns an idle connection that the server has not closed, or nil without such a connection.
func (e *exchange) takeIdle(req *request) net.Conn {
	idle := e.client.idleFor(req)
	if idle == nil || e.skipIdle {
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

// KeepConnection keeps the connection for the next request of the client, if the framing of the response marks the end
// of its body. Only callbacks of the stream may call it.
func (s *Stream) KeepConnection() { s.keepsConnection = true }

// makeConnectionIdle makes the connection of an ended stream idle, and reports whether that is possible.
func (s *Stream) makeConnectionIdle(err error) bool {
	b := &s.body
	return s.keepsConnection && errors.Is(err, io.EOF) && b.done && !b.excess && b.leftover == nil && b.transport.keep()
}

// errUnreceived is the error if the server closed the reused connection before any byte of the request arrived.
var errUnreceived = errors.New("the server had closed the idle connection")

// markUnreceived wraps the error of a request with errUnreceived if the server certainly received none of its n bytes.
// Only such a request may be sent again (RFC 9110, 9.2.2; RFC 9112, 9.3.1). The FIN of a server acknowledges all bytes
// that arrived earlier. If the FIN acknowledges no byte of the request, the server closed the connection before the
// request arrived. A reset proves nothing.
func (r *Response) markUnreceived(n int, err error) error {
	if r.isReused && (n == 0 || errors.Is(err, io.EOF) && unacknowledgedBytes(rawOf(r.conn)) >= n) {
		return fmt.Errorf("%w: %w", errUnreceived, err)
	}
	return err
}

package http1

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// IdleConns is a set of idle connections to one server. Put and Take close the connections that have reached the limit
// of the idle time. Take returns the most recently used connection first, so that surplus connections reach the limit.
type IdleConns[C io.Closer] struct {
	mu          sync.Mutex
	maxIdleTime time.Duration // maximum idle time; 0 disables reuse
	limit       time.Duration // maxIdleTime, or less if the server announced a timeout
	conns       []idleConn[C] // the most recently used last
	reuseWorks  bool          // the server has responded on a connection that Take returned
}

type idleConn[C io.Closer] struct {
	conn  C
	since time.Time // the end of its last response
}

const maxIdleConns = 1000

// NewIdleConns returns an empty set, in which a connection may be idle for maxIdleTime. A server may close an idle
// connection at any time (RFC 9112, 9.5). maxIdleTime should therefore be shorter than the timeouts of servers: 5 s in
// uvicorn and Node.js, 75 s in nginx.
func NewIdleConns[C io.Closer](maxIdleTime time.Duration) *IdleConns[C] {
	return &IdleConns[C]{maxIdleTime: maxIdleTime, limit: maxIdleTime}
}

// ApplyKeepAlive applies the timeout that a response announces (Keep-Alive: timeout=5). The limit is half of that
// timeout, because the next request must arrive before the timeout. Without a timeout, the maximum idle time applies.
func (i *IdleConns[C]) ApplyKeepAlive(response http.Header) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.limit = i.maxIdleTime
	for parameter := range strings.SplitSeq(response.Get("Keep-Alive"), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(parameter), "=")
		if !strings.EqualFold(name, "timeout") {
			continue
		}
		if s, err := strconv.ParseUint(strings.Trim(value, `"`), 10, 16); err == nil {
			i.limit = min(time.Duration(s)*time.Second/2, i.maxIdleTime)
		}
	}
}

// Put adds a connection whose last response has ended. Beyond maxIdleConns, it closes the least recently used one.
func (i *IdleConns[C]) Put(c C) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.conns = append(i.conns, idleConn[C]{c, time.Now()})
	i.expire()
	i.closeFirst(max(0, len(i.conns)-maxIdleConns))
}

// Take removes the most recently used connection and returns it with its idle time. ok is false if no connection is
// within the limit of the idle time. The server may have closed the connection.
func (i *IdleConns[C]) Take() (c C, idle time.Duration, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.expire()
	n := len(i.conns) - 1
	if n < 0 {
		return c, 0, false
	}
	last := i.conns[n]
	i.conns = slices.Delete(i.conns, n, n+1)
	return last.conn, time.Since(last.since), true
}

// NoteResponse records that the server responded on a connection that Take returned.
func (i *IdleConns[C]) NoteResponse() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.reuseWorks = true
}

// NoteEnd records that the server ended an idle connection, or ended a connection instead of leaving it idle. Some
// servers end each connection after one response without announcing it, and a request sent at that time fails. Unless
// the server has responded on a reused connection before, NoteEnd closes all connections and disables reuse.
func (i *IdleConns[C]) NoteEnd() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.reuseWorks {
		i.maxIdleTime, i.limit = 0, 0
		i.closeFirst(len(i.conns))
	}
}

// expire closes the connections that have reached the limit of the idle time. The caller holds mu.
func (i *IdleConns[C]) expire() {
	n := 0
	for n < len(i.conns) && time.Since(i.conns[n].since) >= i.limit {
		n++
	}
	i.closeFirst(n)
}

// closeFirst closes the n connections that were used least recently. The caller holds mu.
func (i *IdleConns[C]) closeFirst(n int) {
	for _, c := range i.conns[:n] {
		_ = c.conn.Close()
	}
	i.conns = slices.Delete(i.conns, 0, n)
}

// Close closes all connections.
func (i *IdleConns[C]) Close() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closeFirst(len(i.conns))
	return nil
}

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

// An Idle is a set of idle connections to one server. It closes a connection that reaches the limit of the idle time.
// Take returns the most recently used connection first, so that surplus connections reach the limit.
type Idle[C io.Closer] struct {
	mu     sync.Mutex
	keep   time.Duration // maximum idle time; 0: no connection is reused
	limit  time.Duration // keep, or less if the server announced a timeout
	conns  []idleConn[C] // the most recently used last
	timer  *time.Timer   // calls expire; nil: no call is pending
	reuses bool          // the server has responded on a connection that Take returned
}

// An idleConn is a connection of an Idle.
type idleConn[C io.Closer] struct {
	conn  C
	since time.Time // the end of its last response
}

// maxIdle limits the number of idle connections to one server.
const maxIdle = 1000

// NewIdle returns an empty set. It closes connections that are idle for keep. A server may close an idle connection at
// any time (RFC 9112, 9.5). keep should therefore be shorter than the timeouts of servers: 5 s in uvicorn and Node.js,
// 75 s in nginx.
func NewIdle[C io.Closer](keep time.Duration) *Idle[C] { return &Idle[C]{keep: keep, limit: keep} }

// Limit applies the timeout that a server announces in a response (Keep-Alive: timeout=5). The limit is half of it,
// because the next request must arrive before the timeout. A response without a timeout restores the maximum idle time.
func (i *Idle[C]) Limit(response http.Header) {
	i.mu.Lock()
	defer i.mu.Unlock()
	limit := i.keep
	for parameter := range strings.SplitSeq(response.Get("Keep-Alive"), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(parameter), "=")
		if !strings.EqualFold(name, "timeout") {
			continue
		}
		if s, err := strconv.ParseUint(strings.Trim(value, `"`), 10, 16); err == nil {
			limit = min(time.Duration(s)*time.Second/2, i.keep)
		}
	}
	i.limit = limit
}

// Put adds a connection whose last response has ended. Beyond maxIdle connections, it closes the least recently used
// one.
func (i *Idle[C]) Put(c C) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.conns = append(i.conns, idleConn[C]{c, time.Now()})
	if len(i.conns) > maxIdle {
		i.closeFirst(1)
	}
	if i.timer == nil {
		i.timer = time.AfterFunc(i.limit, i.expire)
	}
}

// Take removes the most recently used connection and returns it with its idle time. ok is false if no connection is
// within the limit of the idle time. The server may have closed the connection.
func (i *Idle[C]) Take() (c C, idle time.Duration, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	last := len(i.conns) - 1
	if last < 0 {
		return c, 0, false
	}
	if idle = time.Since(i.conns[last].since); idle >= i.limit {
		i.closeFirst(last + 1)
		return c, 0, false
	}
	c = i.conns[last].conn
	i.conns[last] = idleConn[C]{}
	i.conns = i.conns[:last]
	return c, idle, true
}

// NoteResponse records that the server responded on a connection that Take returned.
func (i *Idle[C]) NoteResponse() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.reuses = true
}

// NoteEnd records that the server had ended a connection that Take returned. Some servers end each connection after
// one response without announcing it (Connection: close). A request that arrives as the connection ends fails.
// NoteEnd therefore closes all connections and disables reuse, unless the server has responded on a reused connection
// before.
func (i *Idle[C]) NoteEnd() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.reuses {
		i.keep, i.limit = 0, 0
		i.closeFirst(len(i.conns))
	}
}

// expire closes the connections that have reached the limit.
func (i *Idle[C]) expire() {
	i.mu.Lock()
	defer i.mu.Unlock()
	now, n := time.Now(), 0
	for n < len(i.conns) && now.Sub(i.conns[n].since) >= i.limit {
		n++
	}
	i.closeFirst(n)
	if i.timer = nil; len(i.conns) > 0 {
		i.timer = time.AfterFunc(i.limit-now.Sub(i.conns[0].since), i.expire)
	}
}

// closeFirst closes the n connections that were used least recently. The caller holds mu.
func (i *Idle[C]) closeFirst(n int) {
	for _, c := range i.conns[:n] {
		_ = c.conn.Close()
	}
	i.conns = slices.Delete(i.conns, 0, n)
}

// Close closes all connections.
func (i *Idle[C]) Close() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closeFirst(len(i.conns))
	if i.timer != nil {
		i.timer.Stop()
		i.timer = nil
	}
	return nil
}

package sse

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/metrics"
)

// Client is what open hands to its function. Its exported methods are the API; they
// run on the goroutine of open, as all handlers do.
type Client struct {
	m        *module
	state    *lib.State
	rt       *sobek.Runtime
	ctx      context.Context // the iteration's; a client lives within open
	params   *openParams
	handlers map[string][]sobek.Callable
	answer   *answer // nil before a response
	begun    time.Time
	openedAt time.Time // zero before an event stream
	events   int
	tags     metrics.TagsAndMeta // of the request, with the response's once there is one

	messages  chan message        // from the reader
	scheduled chan sobek.Callable // from timers
	done      chan struct{}       // closed by shutDown
	reader    sync.WaitGroup

	mu     sync.Mutex // guards what follows
	conn   net.Conn
	cancel context.CancelFunc
	closed bool
}

// message is what the reader tells: an answer, an event or the end.
type message struct {
	answer *answer
	event  *Event
	at     time.Time // of the event
	end    *failure
}

// Event is one event as open's handlers get it.
type Event struct {
	ID         string  `js:"id"` // of this very event, empty where it has none
	Name       string  `js:"name"`
	Data       string  `js:"data"`
	Comment    string  `js:"comment"`
	ReceivedAt float64 `js:"receivedAt"` // ms since 1970
}

var _ link = (*Client)(nil)

func newClient(m *module, state *lib.State, p *openParams) *Client {
	p.describe(state)
	return &Client{
		m: m, state: state, rt: m.vu.Runtime(), ctx: m.vu.Context(), params: p, tags: p.tags,
		handlers:  make(map[string][]sobek.Callable),
		messages:  make(chan message),
		scheduled: make(chan sobek.Callable),
		done:      make(chan struct{}),
	}
}

// On adds a handler for open, event or error. Other names are ignored, as upstream.
func (c *Client) On(event string, handler sobek.Value) {
	if fn, ok := sobek.AssertFunction(handler); ok {
		c.handlers[event] = append(c.handlers[event], fn)
	}
}

// Close ends the stream; open returns after the running handler.
func (c *Client) Close() { c.hangUp() }

// attach implements link.
func (c *Client) attach(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn = conn
	return !c.closed
}

func (c *Client) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// hangUp stops the dial or closes the connection, from any goroutine.
func (c *Client) hangUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.cancel != nil {
		c.cancel()
	}
	if c.conn != nil {
		hangUp(c.conn)
	}
}

// shutDown leaves no goroutine and no timer's callback behind.
func (c *Client) shutDown() {
	c.hangUp()
	close(c.done)
	c.reader.Wait()
}

// OpenError is the argument of an error handler: error() as upstream's Go errors
// have it, and the same in properties.
type OpenError struct {
	Message string `js:"message"`
	Reason  string `js:"reason"`
	Status  int    `js:"status"`
}

var _ error = (*OpenError)(nil)

func newOpenError(f *failure) *OpenError {
	return &OpenError{Message: f.message(), Reason: string(f.reason), Status: f.status}
}

// Error returns the message.
func (e *OpenError) Error() string { return e.Message }

package sse

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/k6/sse/eventstream"
)

// Client is what open hands to its function. Its exported methods are the API; they
// run on the goroutine of open, as all handlers do.
type Client struct {
	m        *module
	state    *lib.State
	rt       *sobek.Runtime
	ctx      context.Context //nolint:containedctx // the iteration's; a client lives within open
	params   *openParams
	handlers map[string][]sobek.Callable
	answer   *answer   // nil before a response
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
	begun  time.Time
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

// SetTimeout runs fn once after ms milliseconds, between events: the event loop, and
// with it the global setTimeout, stands still during open.
func (c *Client) SetTimeout(fn sobek.Callable, ms float64) error {
	d, err := timerDelay("setTimeout", fn, ms)
	if err == nil {
		time.AfterFunc(d, func() { c.schedule(fn) })
	}
	return err
}

// SetInterval runs fn every ms milliseconds until open returns.
func (c *Client) SetInterval(fn sobek.Callable, ms float64) error {
	d, err := timerDelay("setInterval", fn, ms)
	if err != nil {
		return err
	}
	go func() {
		ticker := time.NewTicker(d)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				c.schedule(fn)
			case <-c.done:
				return
			}
		}
	}()
	return nil
}

func timerDelay(name string, fn sobek.Callable, ms float64) (time.Duration, error) {
	if fn == nil {
		return 0, fmt.Errorf("%s requires a function", name)
	}
	if !(ms > 0) {
		return 0, fmt.Errorf("%s requires a delay above 0 ms, received %v", name, ms)
	}
	return time.Duration(ms * float64(time.Millisecond)), nil
}

func (c *Client) schedule(fn sobek.Callable) {
	select {
	case c.scheduled <- fn:
	case <-c.done:
	}
}

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

// read makes the request and reads the stream, in a goroutine of its own.
func (c *Client) read(ctx context.Context) {
	defer c.reader.Done()
	begun := time.Now()
	req, err := c.params.request(c.state)
	if err != nil {
		c.tell(message{begun: begun, end: &failure{reason: ReasonError, err: err}})
		return
	}
	dialCtx, cancel := contextWithin(ctx, c.params.connectTimeout)
	defer cancel()
	d := dialer{m: c.m, state: c.state, link: c}
	a, fail := d.open(dialCtx, req)
	if fail != nil {
		c.tell(message{answer: a, begun: begun, end: fail})
		return
	}
	if !c.tell(message{answer: a, begun: begun}) {
		return
	}
	_ = a.conn.SetDeadline(time.Time{})
	b := &body{conn: a.conn, left: a.left, at: a.at, idle: c.params.idleTimeout, framing: a.frame}
	if b.idle > 0 {
		_ = a.conn.SetReadDeadline(a.at.Add(b.idle))
	}
	c.stream(b)
}

func (c *Client) stream(b *body) {
	p := eventstream.New(b)
	var e eventstream.Event
	for {
		if err := p.Next(&e); err != nil {
			c.tell(message{end: readFailure(err)})
			return
		}
		ev := &Event{Name: string(e.Name), Data: string(e.Data), Comment: string(e.Comment), ReceivedAt: epochMs(b.at)}
		if e.HasID {
			ev.ID = string(e.ID)
		}
		if !c.tell(message{event: ev, at: b.at}) {
			return
		}
	}
}

// tell hands a message to open's loop; false once that has gone.
func (c *Client) tell(msg message) bool {
	select {
	case c.messages <- msg:
		return true
	case <-c.done:
		return false
	}
}

// run reads until the stream has ended and calls the handlers. It returns how it
// ended, nil after Close, and the exception of a handler.
func (c *Client) run() (*failure, error) {
	ctx, cancel := c.params.limit(c.ctx)
	c.mu.Lock()
	c.cancel = cancel
	c.mu.Unlock()
	defer cancel()
	unwatch := context.AfterFunc(ctx, c.hangUp)
	defer unwatch()
	c.reader.Add(1)
	go c.read(ctx)
	for {
		select {
		case msg := <-c.messages:
			done, fail, err := c.handle(ctx, msg)
			if done || err != nil {
				return fail, err
			}
		case fn := <-c.scheduled:
			if _, err := fn(sobek.Undefined()); err != nil {
				return nil, err
			}
		case <-c.ctx.Done():
			return nil, nil //nolint:nilnil // k6 is ending the VU; no more JS
		}
	}
}

// handle tells the script of one message. done says that it was the last.
func (c *Client) handle(ctx context.Context, msg message) (done bool, fail *failure, err error) {
	if msg.answer != nil {
		c.answer = msg.answer
		c.tags = describeResponse(c.params.tags, c.state, msg.answer)
	}
	switch {
	case msg.answer != nil && msg.end == nil:
		c.countOpened(msg.begun)
		err = c.call("open", sobek.Undefined())
	case msg.event != nil:
		if c.isClosed() {
			return false, nil, nil // the end follows
		}
		c.countEvent(msg.at)
		err = c.call("event", c.rt.ToValue(msg.event))
	case msg.end != nil:
		return c.finish(ctx, msg.end)
	}
	return false, nil, err
}

// finish tells how the stream ended, unless the script has closed it.
func (c *Client) finish(ctx context.Context, end *failure) (done bool, fail *failure, err error) {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		end = &failure{
			reason: ReasonTimeout, status: end.status,
			err: fmt.Errorf("%w of %v (Client.Timeout exceeded)", errTimeout, c.params.timeout),
		}
	} else if c.isClosed() || c.ctx.Err() != nil {
		return true, nil, nil
	}
	if end.reason == ReasonServer {
		return true, end, nil
	}
	return true, end, c.call("error", c.rt.ToValue(newOpenError(end)))
}

// call calls the handlers of an event.
func (c *Client) call(event string, arg sobek.Value) error {
	for _, fn := range c.handlers[event] {
		if _, err := fn(sobek.Undefined(), arg); err != nil {
			return err
		}
	}
	return nil
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

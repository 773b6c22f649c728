package sse

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/sseclient"
)

// A Client is the argument of the function that open calls. Scripts use its exported methods. These methods and all
// handlers run on the goroutine of open.
type Client struct {
	m      *Module
	client *sseclient.Client
	state  *lib.State
	params *openParams
	ctx    context.Context // ends with Close, with open and with the iteration
	cancel context.CancelFunc
	tasks  chan func() error // from the reader and from timers
	reader sync.WaitGroup

	// Only the goroutine of open uses these fields, except that the reader sets started before its first task.
	handlers map[string][]sobek.Callable
	resp     *sseclient.Response // nil before its arrival
	end      *sseclient.Close    // the end of the stream; nil before it, or if the script closed the stream
	isClosed bool                // the script called close
	started  time.Time           // start of the request
	openedAt time.Time           // arrival of the header; zero unless the response opened an event stream
	events   int                 // number of events
	tags     metrics.TagsAndMeta // of the request, and of the response after its arrival
}

func newClient(m *Module, state *lib.State, p *openParams) *Client {
	describeRequest(&p.tags, state.Options.SystemTags, p.parsedURL, p.request.Method)
	p.Debug = debugOf(state, &p.tags)
	ctx, cancel := context.WithCancel(m.vu.Context())
	return &Client{
		m: m, client: m.clientFor(state), state: state, params: p, ctx: ctx, cancel: cancel, tags: p.tags,
		handlers: make(map[string][]sobek.Callable), tasks: make(chan func() error),
	}
}

// On adds a handler for open, event or error. Like xk6-sse, it ignores other names, and values that are not functions.
func (c *Client) On(event string, handler sobek.Value) {
	if fn, ok := sobek.AssertFunction(handler); ok {
		c.handlers[event] = append(c.handlers[event], fn)
	}
}

// Close ends the stream. open returns after the current handler.
func (c *Client) Close() {
	c.isClosed = true
	c.cancel()
}

// SetTimeout runs fn once after ms milliseconds, between events. The global setTimeout does not work during open, which
// blocks the event loop.
func (c *Client) SetTimeout(fn sobek.Callable, ms float64) error {
	d, err := timerDelay("setTimeout", fn, ms)
	if err == nil {
		time.AfterFunc(d, func() { c.callLater(fn) })
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
				c.callLater(fn)
			case <-c.ctx.Done():
				return
			}
		}
	}()
	return nil
}

// timerDelay returns the delay of a timer: at least 1 ns, and at most 1e12 ms, so that a time.Duration can hold it.
func timerDelay(name string, fn sobek.Callable, ms float64) (time.Duration, error) {
	if fn == nil {
		return 0, fmt.Errorf("%s: the first argument must be a function", name)
	}
	if !(ms > 0) {
		return 0, fmt.Errorf("%s: the delay must be above 0 ms, got %v", name, ms)
	}
	return max(time.Duration(min(ms, 1e12)*float64(time.Millisecond)), 1), nil
}

// callLater waits until the goroutine of open accepts a call of fn, or until open returns.
func (c *Client) callLater(fn sobek.Callable) {
	c.post(func() error {
		_, err := fn(sobek.Undefined())
		return err
	})
}

// An Event is the argument of an event handler of open.
type Event struct {
	ID         string  `js:"id"` // of this event, "" if it has none
	Name       string  `js:"name"`
	Data       string  `js:"data"`
	Comment    string  `js:"comment"`
	ReceivedAt float64 `js:"receivedAt"` // ms since 1970
}

// An OpenError is the argument of an error handler. Its method error() returns the message, as in xk6-sse.
type OpenError struct {
	Message string `js:"message"`
	Reason  string `js:"reason"`
	Status  int    `js:"status"`
}

var _ error = (*OpenError)(nil)

func (e *OpenError) Error() string { return e.Message }

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

// Client is what open hands to its function. Its exported methods are the API; they
// run on the goroutine of open, as all handlers do.
type Client struct {
	m      *module
	client *sseclient.Client
	state  *lib.State
	params *openParams
	ctx    context.Context // ends with the script's Close, with open, and with the iteration
	cancel context.CancelFunc
	tasks  chan func() error // from the reader and from timers
	reader sync.WaitGroup

	// On the goroutine of open only.
	handlers map[string][]sobek.Callable
	answer   *sseclient.Response // nil before a response
	end      *sseclient.Close    // how the stream ended by itself
	closed   bool                // by the script
	started  time.Time
	openedAt time.Time // zero before an event stream
	events   int
	tags     metrics.TagsAndMeta // of the request, with the response's once there is one
}

func newClient(m *module, state *lib.State, p *openParams) *Client {
	describeRequest(&p.tags, state.Options.SystemTags, p.to, p.method)
	p.Debug = debugOf(state, &p.tags)
	ctx, cancel := context.WithCancel(m.vu.Context())
	return &Client{
		m: m, client: m.clientFor(state), state: state, params: p, ctx: ctx, cancel: cancel, tags: p.tags,
		handlers: make(map[string][]sobek.Callable), tasks: make(chan func() error),
	}
}

// On adds a handler for open, event or error. Other names are ignored, as upstream.
func (c *Client) On(event string, handler sobek.Value) {
	if fn, ok := sobek.AssertFunction(handler); ok {
		c.handlers[event] = append(c.handlers[event], fn)
	}
}

// Close ends the stream; open returns after the running handler.
func (c *Client) Close() {
	c.closed = true
	c.cancel()
}

// SetTimeout runs fn once after ms milliseconds, between events: during open the event
// loop, and with it the global setTimeout, waits.
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

func timerDelay(name string, fn sobek.Callable, ms float64) (time.Duration, error) {
	if fn == nil {
		return 0, fmt.Errorf("%s requires a function", name)
	}
	if !(ms > 0) {
		return 0, fmt.Errorf("%s requires a delay above 0 ms, received %v", name, ms)
	}
	return time.Duration(ms * float64(time.Millisecond)), nil
}

func (c *Client) callLater(fn sobek.Callable) {
	c.post(func() error {
		_, err := fn(sobek.Undefined())
		return err
	})
}

// Event is one event as open's handlers get it.
type Event struct {
	ID         string  `js:"id"` // of this very event, empty where it has none
	Name       string  `js:"name"`
	Data       string  `js:"data"`
	Comment    string  `js:"comment"`
	ReceivedAt float64 `js:"receivedAt"` // ms since 1970
}

// OpenError is the argument of an error handler: error() as upstream's Go errors
// have it, and the same in properties.
type OpenError struct {
	Message string `js:"message"`
	Reason  string `js:"reason"`
	Status  int    `js:"status"`
}

var _ error = (*OpenError)(nil)

// Error returns the message.
func (e *OpenError) Error() string { return e.Message }

package sse

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/grafana/sobek"
)

// run reads until the stream has ended and calls the handlers. It returns how it
// ended, nil after Close, and the exception of a handler.
func (c *Client) run() (*failure, error) {
	c.begun = time.Now()
	ctx, cancel := contextWithin(c.ctx, c.params.timeout)
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
			return nil, nil // k6 is ending the VU; no more JS
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
		c.countOpened()
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
	late := end.reason == ReasonConnectTimeout && c.params.timeout > 0 && time.Since(c.begun) >= c.params.timeout
	if late || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		end = &failure{
			reason: ReasonTimeout, status: end.status,
			err: fmt.Errorf("%w of %v (Client.Timeout exceeded)", errTimeout, c.params.timeout),
		}
	} else if c.isClosed() || c.ctx.Err() != nil {
		return true, nil, nil //nolint:nilerr // the script closed it, or k6 ends the iteration
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

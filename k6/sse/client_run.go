package sse

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/k6/sse/eventstream"
)

var (
	errEnded   = errors.New("the stream has ended") // the last task's
	errTimeout = errors.New("the request took longer than its timeout")
)

// run reads until the stream has ended and calls the handlers. It returns the exception
// of one. No goroutine is left behind it.
func (c *Client) run() error {
	c.begun = time.Now()
	defer func() {
		c.cancel()
		c.reader.Wait()
	}()
	c.reader.Go(func() {
		if !awaitRate(c.ctx, c.state) {
			return
		}
		c.begun = time.Now() // to wait is no part of the request
		ctx, cancel := contextWithin(c.ctx, c.params.timeout)
		defer cancel()
		c.read(ctx)
	})
	for {
		select {
		case t := <-c.tasks:
			if err := t(); err == errEnded {
				return nil
			} else if err != nil {
				return err
			}
		case <-c.ctx.Done():
			return nil // closed, or k6 is ending the VU: no more JS
		}
	}
}

// post has open run a task; false once it runs none any more.
func (c *Client) post(t task) bool {
	select {
	case c.tasks <- t:
		return true
	case <-c.ctx.Done():
		return false
	}
}

// read makes the request and reads the stream, in a goroutine of its own, until ctx ends.
func (c *Client) read(ctx context.Context) {
	ended := func(a *answer, f *failure) { c.post(func() error { return c.finish(ctx, a, f) }) }
	if err := c.params.invalid; err != nil {
		ended(nil, &failure{reason: ReasonError, err: err})
		return
	}
	dialCtx, cancel := contextWithin(ctx, c.params.connectTimeout)
	defer cancel()
	d := dialer{m: c.m, state: c.state, tags: &c.params.tags, attach: func(conn net.Conn) bool {
		context.AfterFunc(ctx, func() { hangUp(conn) })
		return ctx.Err() == nil
	}}
	a, fail := d.open(dialCtx, c.params.request(c.state))
	if fail != nil {
		ended(a, fail)
		return
	}
	if !c.post(func() error { return c.opened(a) }) {
		return
	}
	a.hold()
	var b body
	b.begin(a, parked{a.conn})
	at := a.at
	b.at = &at
	b.timeout.Store(int64(c.params.idleTimeout))
	b.watch(at)
	defer b.unwatch()
	var p eventstream.Parser
	p.Reset(b.unpacked(a), int(c.params.maxEventSize))
	var e eventstream.Block
	for {
		if err := c.next(&p, &e); err != nil {
			ended(nil, readFailure(err))
			return
		}
		at := at
		ev := &Event{Name: eventstream.Text(e.Name), Data: eventstream.Text(e.Data), Comment: eventstream.Text(e.Comment), ReceivedAt: epochMs(at)}
		if e.HasID {
			ev.ID = eventstream.Text(e.ID)
		}
		if !c.post(func() error { return c.event(ctx, at, ev) }) {
			return
		}
	}
}

// next reads the next event, or block where the script wants to be told of each.
func (c *Client) next(p *eventstream.Parser, b *eventstream.Block) error {
	if !c.params.everyBlock {
		return p.Next(&b.Event)
	}
	for {
		if part, err := p.NextPart(b); err != nil || part == eventstream.WholeBlock {
			return err
		}
	}
}

// answered notes the response. What follows runs on the goroutine of open.
func (c *Client) answered(a *answer) {
	c.answer = a
	c.tags = describeResponse(c.params.tags, c.state, a)
}

func (c *Client) opened(a *answer) error {
	c.answered(a)
	c.openedAt = a.at
	c.push(c.m.metrics.streamOpened(&c.tags, c.begun, a.at))
	return c.call("open", sobek.Undefined())
}

// event pushes a sample for each event, as upstream does.
func (c *Client) event(ctx context.Context, at time.Time, e *Event) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the end follows, and says why
	}
	if c.events++; c.events == 1 {
		c.push(sample(c.m.metrics.firstEvent, &c.tags, at, metrics.D(at.Sub(c.openedAt))))
	}
	c.push(sample(c.m.metrics.event, &c.tags, at, 1))
	return c.call("event", c.m.vu.Runtime().ToValue(e))
}

// finish tells how the stream ended, unless the script has closed it. a is the answer of a
// request that was refused by its status or type.
func (c *Client) finish(ctx context.Context, a *answer, end *failure) error {
	if a != nil {
		c.answered(a)
	}
	late := end.reason == ReasonConnectTimeout && c.params.timeout > 0 && time.Since(c.begun) >= c.params.timeout
	if late || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		end = &failure{
			reason: ReasonTimeout, status: end.status,
			err: fmt.Errorf("%w of %v (Client.Timeout exceeded)", errTimeout, c.params.timeout),
		}
	} else if c.ctx.Err() != nil {
		return errEnded
	}
	c.end = end
	if end.reason != ReasonServer {
		e := &OpenError{Message: end.message(), Reason: string(end.reason), Status: end.status}
		if err := c.call("error", c.m.vu.Runtime().ToValue(e)); err != nil {
			return err
		}
	}
	return errEnded
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

// push hands samples to k6. open runs on the event loop, where k6 itself pushes
// without a look at the context right after: none is lost.
func (c *Client) push(s metrics.SampleContainer) { c.state.Samples <- s }

// countClosed pushes how it ended, and the http_reqs and http_req_duration that
// upstream emits for the whole stream. Upstream's http_req_sending, which was the
// time to connect, is sse_connecting here.
func (c *Client) countClosed(thrown error) {
	now := time.Now()
	why := ReasonClient
	switch {
	case c.end != nil:
		why = c.end.reason
	case thrown != nil:
		why = ReasonInterrupted
	}
	b := c.m.metrics.builtin
	c.push(metrics.Samples{
		c.m.metrics.streamClosed(c.tags, now, why, !c.openedAt.IsZero()),
		sample(b.HTTPReqs, &c.tags, now, 1),
		sample(b.HTTPReqDuration, &c.tags, now, metrics.D(now.Sub(c.begun))),
	})
}

package sse

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

var (
	errEnded   = errors.New("the stream has ended") // the result of the last task
	errTimeout = errors.New("the request took longer than its timeout")
)

// run calls the handlers until the stream ends, or until a handler throws an exception, which it returns. The reader
// ends before run returns.
func (c *Client) run() error {
	c.started = time.Now()
	defer func() {
		c.cancel()
		c.reader.Wait()
	}()
	c.reader.Go(func() {
		if !awaitRate(c.ctx, c.state) {
			return
		}
		c.started = time.Now() // the wait for rps is not part of the request
		ctx, cancel := c.ctx, context.CancelFunc(func() {})
		if c.params.timeout > 0 {
			ctx, cancel = context.WithTimeout(c.ctx, c.params.timeout)
		}
		defer cancel()
		c.read(ctx)
	})
	for {
		select {
		case task := <-c.tasks:
			if err := task(); err == errEnded {
				return nil
			} else if err != nil {
				return err
			}
		case <-c.ctx.Done():
			return nil // the script called close, or k6 ended the iteration
		}
	}
}

// post passes a task to the goroutine of open, and waits until that goroutine accepts the task. It returns false if
// c.ctx ends first.
func (c *Client) post(task func() error) bool {
	select {
	case c.tasks <- task:
		return true
	case <-c.ctx.Done():
		return false
	}
}

// read sends the request, and reads the stream until it ends or ctx is done. It runs in the goroutine of the reader.
func (c *Client) read(ctx context.Context) {
	r, end := c.client.Open(ctx, &c.params.Options, c.params.request)
	if end != nil {
		c.post(func() error { return c.finish(ctx, end) })
		return
	}
	if !c.post(func() error { return c.opened(r) }) {
		return
	}
	body := r.Body(c.params.IdleTimeout)
	defer func() { _ = body.Close() }()
	var p eventstream.Parser
	p.Reset(body, c.params.MaxEventSize)
	var e eventstream.Block
	for {
		if err := c.next(&p, &e); err != nil {
			end := sseclient.EndOf(err)
			c.post(func() error { return c.finish(ctx, &end) })
			return
		}
		at := body.At()
		ev := &Event{
			Name: eventstream.Text(e.Name), Data: eventstream.Text(e.Data), Comment: eventstream.Text(e.Comment),
			ReceivedAt: epochMs(at),
		}
		if e.HasID {
			ev.ID = eventstream.Text(e.ID)
		}
		if !c.post(func() error { return c.event(ctx, at, ev) }) {
			return
		}
	}
}

// next reads the next event or, with everyBlock, the next block.
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

// setResponse stores the response. This method and the methods below run on the goroutine of open.
func (c *Client) setResponse(r *sseclient.Response) {
	c.resp = r
	c.tags = describeResponse(c.params.tags, c.state, r)
}

func (c *Client) opened(r *sseclient.Response) error {
	c.setResponse(r)
	c.openedAt = r.At
	c.push(c.m.metrics.streamOpened(&c.tags, c.started, r.At))
	return c.call("open", sobek.Undefined())
}

// event calls the handlers for event. It pushes a sample for each event, as xk6-sse does.
func (c *Client) event(ctx context.Context, at time.Time, e *Event) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // finish reports the reason
	}
	if c.events++; c.events == 1 {
		c.push(sample(c.m.metrics.firstEvent, &c.tags, at, metrics.D(at.Sub(c.openedAt))))
	}
	c.push(sample(c.m.metrics.event, &c.tags, at, 1))
	return c.call("event", c.m.vu.Runtime().ToValue(e))
}

// contentTypeWarning logs the warning once per process. Scripts for xk6-sse may read responses of any type.
var contentTypeWarning sync.Once

// finish reports the end of the stream, unless the script has closed it or k6 has ended the iteration. It returns
// errEnded, or the exception of a handler.
func (c *Client) finish(ctx context.Context, end *sseclient.Close) error {
	if end.Response != nil {
		c.setResponse(end.Response)
	}
	timedOut := end.Reason == sseclient.ReasonConnectTimeout && c.params.timeout > 0 && time.Since(c.started) >= c.params.timeout
	if timedOut || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		end = &sseclient.Close{
			Reason: sseclient.ReasonTimeout, Status: end.Status,
			Err: fmt.Errorf("%w of %v (Client.Timeout exceeded)", errTimeout, c.params.timeout),
		}
	} else if c.ctx.Err() != nil {
		return errEnded
	}
	c.end = end
	if end.Reason == sseclient.ReasonContentType {
		contentTypeWarning.Do(func() {
			c.state.Logger.Warnf("open: %s; a check of the status passes, but no event is read. "+
				"Set anyContentType to read a response of any type. (logged once)", end.Message())
		})
	}
	if end.Reason != sseclient.ReasonServer {
		e := &OpenError{Message: end.Message(), Reason: string(end.Reason), Status: end.Status}
		if err := c.call("error", c.m.vu.Runtime().ToValue(e)); err != nil {
			return err
		}
	}
	return errEnded
}

// call calls the handlers for open, event or error, up to the first exception.
func (c *Client) call(event string, arg sobek.Value) error {
	for _, fn := range c.handlers[event] {
		if _, err := fn(sobek.Undefined(), arg); err != nil {
			return err
		}
	}
	return nil
}

// push passes samples to k6. No sample is lost, because open runs on the event loop, and k6 accepts samples until the
// event loop ends.
func (c *Client) push(s metrics.SampleContainer) { c.state.Samples <- s }

// countClosed pushes the samples of the end of the stream. Like xk6-sse, it pushes http_reqs and http_req_duration for
// the whole stream. xk6-sse reports the time to connect as http_req_sending; here sse_connecting reports it. err is the
// exception of a handler, nil for none.
func (c *Client) countClosed(err error) {
	now := time.Now()
	reason := sseclient.ReasonClient
	switch {
	case c.end != nil:
		reason = c.end.Reason
	case err != nil:
		reason = sseclient.ReasonInterrupted
	}
	b := c.m.metrics.builtin
	c.push(metrics.Samples{
		c.m.metrics.streamClosed(c.tags, now, reason, !c.openedAt.IsZero()),
		sample(b.HTTPReqs, &c.tags, now, 1),
		sample(b.HTTPReqDuration, &c.tags, now, metrics.D(now.Sub(c.started))),
	})
}

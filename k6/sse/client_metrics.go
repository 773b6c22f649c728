package sse

import (
	"strconv"
	"time"

	"go.k6.io/k6/v2/metrics"
)

// push hands samples to k6. open runs on the event loop, where k6 itself pushes
// without a look at the context right after: none is lost.
func (c *Client) push(s metrics.SampleContainer) { c.state.Samples <- s }

func (c *Client) countOpened() {
	c.openedAt = c.answer.at
	m := c.m.metrics
	c.push(metrics.Samples{
		sample(m.connecting, &c.tags, c.openedAt, metrics.D(c.openedAt.Sub(c.begun))),
		sample(m.opened, &c.tags, c.openedAt, 1),
	})
}

// countEvent pushes one sample per event, as upstream does.
func (c *Client) countEvent(at time.Time) {
	if c.events++; c.events == 1 {
		c.push(sample(c.m.metrics.firstEvent, &c.tags, at, metrics.D(at.Sub(c.openedAt))))
	}
	c.push(sample(c.m.metrics.event, &c.tags, at, 1))
}

// countClosed pushes how it ended, and the http_reqs and http_req_duration that
// upstream emits for the whole stream. Upstream's http_req_sending, which was the
// time to connect, is sse_connecting here.
func (c *Client) countClosed(fail *failure, thrown error) {
	now := time.Now()
	why := ReasonClient
	switch {
	case fail != nil:
		why = fail.reason
	case thrown != nil, c.ctx.Err() != nil:
		why = ReasonInterrupted
	}
	tm := c.tags.Clone()
	tm.SetTag("reason", string(why))
	tm.SetTag("opened", strconv.FormatBool(!c.openedAt.IsZero()))
	b := c.m.metrics.builtin
	c.push(metrics.Samples{
		sample(c.m.metrics.closed, &tm, now, 1),
		sample(b.HTTPReqs, &c.tags, now, 1),
		sample(b.HTTPReqDuration, &c.tags, now, metrics.D(now.Sub(c.begun))),
	})
}

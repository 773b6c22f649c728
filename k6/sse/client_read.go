package sse

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/sse-soak/sse-soak/k6/sse/eventstream"
)

// read makes the request and reads the stream, in a goroutine of its own.
func (c *Client) read(ctx context.Context) {
	defer c.reader.Done()
	req, err := c.params.request(c.state)
	if err != nil {
		c.tell(message{end: &failure{reason: ReasonError, err: err}})
		return
	}
	dialCtx, cancel := contextWithin(ctx, c.params.connectTimeout)
	defer cancel()
	d := dialer{m: c.m, state: c.state, link: c}
	a, fail := d.open(dialCtx, req)
	if fail != nil {
		c.tell(message{answer: a, end: fail})
		return
	}
	if !c.tell(message{answer: a}) {
		return
	}
	_ = a.conn.SetDeadline(time.Time{})
	b := &body{wire: parked{a.conn}, left: a.left, at: a.at, framing: a.frame}
	var idle atomic.Int64
	idle.Store(int64(c.params.idleTimeout))
	b.watch(&idle)
	defer b.unwatch()
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

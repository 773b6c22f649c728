package sse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

var errNoPlace = errors.New("the server allows no stream on the connection (MAX_CONCURRENT_STREAMS is 0)")

// awaitSettings waits until streams may be asked for, and no longer than ctx. It reserves the first place.
func (c *h2Conn) awaitSettings(ctx context.Context) error {
	select {
	case <-c.ready:
		c.mu.Lock()
		defer c.mu.Unlock()
		switch {
		case c.usable() && c.most > 0:
			c.places++
			return nil
		case c.usable():
			return errNoPlace
		case errors.Is(c.going, errHalfStream): // it goes, as at a deploy: another connection may lead to one that stays
			return fmt.Errorf("%w: %w", errUnprocessed, c.going)
		}
		return cmp.Or(c.going, c.failed, c.broken)
	case <-ctx.Done():
		return ctx.Err() //nolint:wrapcheck // its caller says of what
	}
}

// reserve takes a place for one more stream, if there is one.
func (c *h2Conn) reserve() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.usable() || c.doubted || c.places+len(c.streams) >= c.room() {
		return false
	}
	c.places++
	return true
}

// doubt is called where the server was silent for too long. A machine on the way that has forgotten the connection tells
// nobody: until the server is heard again, which a PING asks for, new streams go elsewhere.
func (c *h2Conn) doubt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.alone && !c.doubted && c.usable() {
		c.doubted = true
		_ = c.framer.WritePing(false, [8]byte{}) // to a buffer: it has no error
		c.flush()
	}
}

// usable says that new streams may be asked for. The caller holds mu.
func (c *h2Conn) usable() bool {
	return c.failed == nil && c.broken == nil && c.going == nil && !c.retired && c.next < h2LastStream
}

// room is how many streams there may be. The caller holds mu.
func (c *h2Conn) room() int {
	if c.per > 0 {
		return min(c.per, int(c.most))
	}
	return int(c.most)
}

// firstOpened says, of an event stream that has opened, whether it is the first one on the connection.
func (c *h2Conn) firstOpened() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := !c.opened
	c.opened = true
	return first
}

// tellShared tells an observer that wants to know.
func tellShared(o Observer, first bool) {
	if o, ok := o.(SharedObserver); ok {
		o.Shared(first)
	}
}

// left is called where a place or a stream is given up. The caller holds mu.
func (c *h2Conn) left() {
	if c.places+len(c.streams) > 0 || c.failed != nil {
		return
	}
	if c.alone || c.going != nil {
		c.retired = true
		c.nudge(nil)
		return
	}
	if c.idle == nil {
		c.idle = time.AfterFunc(h2IdleFor, c.retire)
	} else {
		c.idle.Reset(h2IdleFor)
	}
}

// retire closes the connection if it has no stream.
func (c *h2Conn) retire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.places+len(c.streams) == 0 && c.failed == nil && !c.retired {
		c.retired = true
		c.nudge(nil)
	}
}

package sseclient

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
)

// h2Streams are those of a connection, by their numbers. A map of them takes four times as much.
type h2Streams []*h2Stream

// at is where a number is, or would be. As long as no stream has left, that follows from the first one's.
func (s h2Streams) at(id uint32) (i int, found bool) {
	if len(s) > 0 && id >= s[0].id {
		if i = int(id-s[0].id) / 2; i < len(s) && s[i].id == id {
			return i, true
		}
	}
	return slices.BinarySearchFunc(s, id, func(st *h2Stream, id uint32) int { return cmp.Compare(st.id, id) })
}

// get is the stream of a number, nil where there is none.
func (s h2Streams) get(id uint32) *h2Stream {
	if i, found := s.at(id); found {
		return s[i]
	}
	return nil
}

func (s *h2Streams) remove(st *h2Stream) {
	if i, found := s.at(st.id); found {
		*s = slices.Delete(*s, i, i+1)
	}
}

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
		case errors.Is(c.goAwayErr, errHalfStream): // it goes, as at a deploy: another connection may lead to one that stays
			return c.unprocessed()
		}
		return cmp.Or(c.goAwayErr, c.failed, c.broken)
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

// doubt is called if the server was silent for too long. A NAT that has forgotten the connection sends no notice.
// Until the server answers a PING, new streams use another connection.
func (c *h2Conn) doubt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.singleStream && !c.doubted && c.usable() {
		c.doubted = true
		_ = c.framer.WritePing(false, [8]byte{}) // to a buffer: it has no error
		c.flush()
	}
}

// usable reports whether new streams may be requested. The caller holds mu.
func (c *h2Conn) usable() bool {
	return c.failed == nil && c.broken == nil && c.goAwayErr == nil && !c.retired && c.next < h2LastStream
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

// left is called where a place or a stream is given up. The caller holds mu.
func (c *h2Conn) left() {
	if c.places+len(c.streams) > 0 || c.failed != nil {
		return
	}
	if c.singleStream || c.goAwayErr != nil {
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

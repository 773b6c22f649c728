package sseclient

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
)

// h2Streams is the list of the streams of a connection, sorted by id. A map would use four times the memory.
type h2Streams []*h2Stream

// index returns the index of an id, or the index at which the id would be inserted. If no stream was removed, the index
// is half of the distance from the first id, because all ids are odd.
func (s h2Streams) index(id uint32) (i int, found bool) {
	if len(s) > 0 && id >= s[0].id {
		if i = int(id-s[0].id) / 2; i < len(s) && s[i].id == id {
			return i, true
		}
	}
	return slices.BinarySearchFunc(s, id, func(st *h2Stream, id uint32) int { return cmp.Compare(st.id, id) })
}

func (s h2Streams) get(id uint32) *h2Stream {
	if i, found := s.index(id); found {
		return s[i]
	}
	return nil
}

func (s *h2Streams) remove(st *h2Stream) {
	if i, found := s.index(st.id); found {
		*s = slices.Delete(*s, i, i+1)
	}
}

var errNoStreams = errors.New("the server allows no stream on the connection (MAX_CONCURRENT_STREAMS is 0)")

// awaitSettings waits for the SETTINGS of the server until ctx ends, and makes the first reservation.
func (c *h2Conn) awaitSettings(ctx context.Context) error {
	select {
	case <-c.ready:
		c.mu.Lock()
		defer c.mu.Unlock()
		switch {
		case c.canOpen() && c.maxConcurrent > 0:
			c.reservations++
			return nil
		case c.canOpen():
			return errNoStreams
		case errors.Is(c.goAwayErr, errTruncatedStream):
			return c.unprocessed() // the server is shutting down, but a new connection may reach another server
		}
		return cmp.Or(c.goAwayErr, c.endErr, c.writeErr)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reserve makes a reservation for a stream. It returns false if the connection allows no further stream or is suspect.
func (c *h2Conn) reserve() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.canOpen() || c.isSuspect || c.reservations+len(c.streams) >= c.capacity() {
		return false
	}
	c.reservations++
	return true
}

// suspect sends a PING after a stream was silent for too long, because a NAT may have dropped the connection without
// notice. Until a byte arrives, new streams use another connection.
func (c *h2Conn) suspect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.singleStream && !c.isSuspect && c.canOpen() {
		c.isSuspect = true
		_ = c.framer.WritePing(false, [8]byte{}) // writing to a buffer does not fail
		c.flush()
	}
}

// canOpen reports whether the connection may be used for new streams. It ignores the capacity. The caller holds mu.
func (c *h2Conn) canOpen() bool {
	return c.endErr == nil && c.writeErr == nil && c.goAwayErr == nil && !c.isRetired && c.nextID < h2LastStream
}

// capacity returns the maximum number of streams. The caller holds mu.
func (c *h2Conn) capacity() int {
	if c.maxStreams > 0 {
		return min(c.maxStreams, int(c.maxConcurrent))
	}
	return int(c.maxConcurrent)
}

// firstOpened records that an event stream has opened, and reports whether it is the first one on the connection.
func (c *h2Conn) firstOpened() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := !c.hadStream
	c.hadStream = true
	return first
}

// retireIfUnused closes a connection without streams or reservations. If the connection allows further streams, it
// stays open for h2IdleFor. The caller holds mu.
func (c *h2Conn) retireIfUnused() {
	if c.reservations+len(c.streams) > 0 || c.endErr != nil {
		return
	}
	if c.singleStream || c.goAwayErr != nil {
		c.isRetired = true
		c.nudge(nil)
		return
	}
	if c.idle == nil {
		c.idle = time.AfterFunc(h2IdleFor, c.retire)
	} else {
		c.idle.Reset(h2IdleFor)
	}
}

// retire closes the connection if it has neither streams nor reservations.
func (c *h2Conn) retire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reservations+len(c.streams) == 0 && c.endErr == nil && !c.isRetired {
		c.isRetired = true
		c.nudge(nil)
	}
}

package h2service

import (
	"net"
	"strconv"
	"sync"
	"time"
)

// A stream is open at a device. Guarded by its connection's mu.
type stream struct {
	device     *device
	numbering  *numbering
	connection *connection
	number     uint32 // of HTTP/2
	slot       int
	index      int // in its slot
	window     int // bytes that the client takes
	owed       int // noops that are due
	added      bool
	waits      bool // is among waiting or blocked
	ending     bool // the end follows what is owed
	over       bool
}

// A connection writes for all its streams: what falls due at once goes out in one piece.
type connection struct {
	service *Service
	conn    net.Conn
	http2   bool

	mu      sync.Mutex
	changed *sync.Cond // a window grew, or the connection is over
	slots   [][]*stream
	waiting []*stream // have something to write, and no goroutine does yet
	blocked []*stream // likewise, and no window for it
	over    bool
	// Of HTTP/2:
	open          map[uint32]*stream
	window        int
	initialWindow int // of streams to come

	wake    chan struct{}
	writing sync.Mutex
}

func (s *Service) newConnection(conn net.Conn) *connection {
	c := &connection{service: s, conn: conn, slots: make([][]*stream, s.Slots), wake: make(chan struct{}, 1)}
	c.changed = sync.NewCond(&c.mu)
	return c
}

// begin takes part in what falls due. The writer ends after close.
func (c *connection) begin() {
	c.service.mu.Lock()
	c.service.connections[c] = true
	c.service.mu.Unlock()
	go c.writer()
}

// add lets a stream fall due from now on.
func (c *connection) add(s *stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		c.service.leave(s, "client")
		return
	}
	s.index, s.added = len(c.slots[s.slot]), true
	c.slots[s.slot] = append(c.slots[s.slot], s)
	if s.ending {
		c.write(s)
	}
}

// remove is the end of a stream. With the lock.
func (c *connection) remove(s *stream, reason string) {
	if s.over {
		return
	}
	s.over = true
	delete(c.open, s.number)
	if !s.added {
		return
	}
	all := c.slots[s.slot]
	last := all[len(all)-1]
	all[s.index], last.index = last, s.index
	all[len(all)-1] = nil
	c.slots[s.slot] = all[:len(all)-1]
	c.service.leave(s, reason)
}

// due owes each stream of a slot one more noop.
func (c *connection) due(slot int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.slots[slot] {
		if !s.ending {
			s.owed++
			c.write(s)
		}
	}
}

// end ends a stream in order, behind what is owed.
func (c *connection) end(s *stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.ending = true
	c.write(s)
}

// write has the writer look at a stream. With the lock.
func (c *connection) write(s *stream) {
	if s.waits || s.over || !s.added {
		return
	}
	s.waits = true
	c.waiting = append(c.waiting, s)
	c.signal()
}

func (c *connection) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// widened is called when a window grew. With the lock.
func (c *connection) widened() {
	c.changed.Broadcast()
	if len(c.blocked) > 0 {
		c.waiting = append(c.waiting, c.blocked...)
		c.blocked = c.blocked[:0]
		c.signal()
	}
}

// writer writes what is owed until the connection is over.
func (c *connection) writer() {
	var out []byte
	var put []*stream // one entry for each noop in out
	for over := false; !over; {
		<-c.wake
		out, put, over = c.gather(out[:0], put[:0])
		if len(out) > 0 && c.send(out) != nil {
			over = true
			put = nil
		}
		for _, s := range put {
			s.numbering.sent.Add(1)
		}
		c.service.sent.Add(uint64(len(put)))
	}
	_ = c.conn.Close() // which the reader sees
}

// send writes frames in one piece.
func (c *connection) send(frames []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err := c.conn.Write(frames)
	return err
}

// gather frames what is owed, as far as windows allow, and says whether more can follow.
func (c *connection) gather(out []byte, put []*stream) (frames []byte, of []*stream, over bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var buf [96]byte
	now := time.Now().UnixMicro()
	for i, s := range c.waiting {
		c.waiting[i] = nil
		for ; s.owed > 0 && !s.over; s.owed-- {
			event := appendNoop(buf[:0], s.numbering.last.Load()+1, now)
			if c.http2 && min(c.window, s.window) < len(event) {
				break
			}
			c.window, s.window = c.window-len(event), s.window-len(event)
			s.numbering.last.Add(1)
			out, put = c.framed(out, s, event, false), append(put, s)
		}
		switch {
		case s.over:
		case s.owed > 0:
			c.blocked = append(c.blocked, s)
			continue
		case s.ending:
			out, over = c.framed(out, s, nil, true), !c.http2
			c.remove(s, "forcedisconnect")
		}
		s.waits = false
	}
	c.waiting = c.waiting[:0]
	return out, put, over || c.over
}

// framed writes an event as a chunk of HTTP/1.1 or as a DATA frame.
func (c *connection) framed(out []byte, s *stream, event []byte, end bool) []byte {
	if c.http2 {
		return appendData(out, s.number, event, end)
	}
	if end {
		return append(out, "0\r\n\r\n"...)
	}
	out = append(strconv.AppendInt(out, int64(len(event)), 16), '\r', '\n')
	return append(append(out, event...), '\r', '\n')
}

func appendNoop(b []byte, number uint64, sent int64) []byte {
	b = strconv.AppendUint(append(b, "id: "...), number, 10)
	b = strconv.AppendInt(append(b, "\n: sent="...), sent, 10)
	return append(b, "\ndata: 0\n\n"...)
}

// close ends all that the connection holds.
func (c *connection) close() {
	_ = c.conn.Close()
	c.service.mu.Lock()
	delete(c.service.connections, c)
	c.service.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	c.changed.Broadcast()
	c.signal()
	for slot := range c.slots {
		for len(c.slots[slot]) > 0 {
			c.remove(c.slots[slot][0], "client")
		}
	}
}

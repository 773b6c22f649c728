package main

import (
	"sync"
	"time"
)

// What the service did with a noop.
type noop struct {
	slot      int
	number    uint64 // from 1, without gap, in the order in which they were due
	due       time.Time
	at        time.Time // when it was last written; zero: never
	copies    int
	corrupt   bool
	overtaken bool
	unserved  bool // no noop and no number was made for this slot
	away      bool // it came due while the client was away
	named     bool // it went as an event of another name, so it was no noop
}

// lost says that the noop did not reach a client that was cut off at that time.
func (n *noop) lost(cut time.Time) bool {
	return n.at.IsZero() || n.named || !cut.IsZero() && n.at.After(cut)
}

// A device is what really happened to one id: what its client was sent, and how its streams ended.
type device struct {
	mu       sync.Mutex
	id       string
	streams  int
	first    time.Time // when slot 1 was due
	openedAt time.Time // headers of the first stream
	lastOpen time.Time // and of the last
	askedAt  time.Time // the request for its end
	closedAt time.Time // the end of the last stream
	cutAt    time.Time // from here on the wire swallowed everything
	goneAt   time.Time // the wire cut the client's connection off
	noops    []noop
	numbers  uint64
	end      chan struct{} // of the present stream; nil: there is none
	ended    bool          // end is closed
	lives    time.Time     // when the service ends the present stream; zero: never
}

// add records a noop, and gives it its number. With the lock.
func (d *device) add(n noop) int {
	if !n.unserved {
		d.numbers++
		n.number = d.numbers
	}
	d.noops = append(d.noops, n)
	return len(d.noops) - 1
}

// cutAfter says that nothing arrives which was written after so many noops.
func (d *device) cutAfter(noops int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cutAt = d.openedAt
	if noops > 0 {
		d.cutAt = d.noops[noops-1].at
	}
}

// gone says that the client has lost its connection.
func (d *device) gone() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.goneAt = time.Now()
}

// swallow marks the noops of a stream that is over as lost, if the wire swallowed them.
func (d *device) swallow() {
	for i := range d.noops {
		if n := &d.noops[i]; n.lost(d.cutAt) {
			n.at, n.copies = time.Time{}, 0
		}
	}
	d.cutAt = time.Time{}
}

// endedAsAsked says that the last stream was there when its end was asked for. A request may come after
// the client has given the stream up, or lost it, which a proxy need not tell the service.
func (d *device) endedAsAsked() bool {
	if d.goneAt.After(d.lastOpen) {
		return false
	}
	return !d.askedAt.IsZero() && (d.closedAt.IsZero() || d.askedAt.Before(d.closedAt))
}

// over is the last moment at which the device could be owed a noop.
func (d *device) over() time.Time {
	if d.endedAsAsked() {
		return d.askedAt
	}
	if d.goneAt.After(d.lastOpen) && (d.closedAt.IsZero() || d.goneAt.Before(d.closedAt)) {
		return d.goneAt
	}
	return d.closedAt
}

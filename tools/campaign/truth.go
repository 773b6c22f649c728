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
	struck   bool      // a fault was put in
	cutAt    time.Time // from here on the wire swallowed everything
	goneAt   time.Time // the wire cut the client's connection off
	noops    []noop
	numbers  uint64
	end      chan struct{} // of the present stream; nil: there is none
	ended    bool          // end is closed
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

// sent is what the service's ledger says: a noop that was lost counts as sent.
func (d *device) sent() uint64 { return d.numbers }

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

// lateness is the longest time by which a noop left later than it was meant to. It shows whether this
// program itself was starved.
type lateness struct {
	mu  sync.Mutex
	max time.Duration
}

func (l *lateness) note(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.max = max(l.max, d)
}

func (l *lateness) worst() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.max
}

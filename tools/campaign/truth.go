package main

import "time"

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

// A device is what really happened to one id: what its client was sent, and how its streams ended. The lock of the service guards it.
type device struct {
	client
	first   time.Time // when slot 1 was due
	cutAt   time.Time // from here on the wire swallowed everything
	goneAt  time.Time // the wire cut the client's connection off
	noops   []noop
	numbers uint64
}

// add records a noop, and gives it its number.
func (d *device) add(n noop) int {
	if !n.unserved {
		d.numbers++
		n.number = d.numbers
	}
	d.noops = append(d.noops, n)
	return len(d.noops) - 1
}

// cutAfter records that nothing arrives which was written after so many noops.
func (d *device) cutAfter(noops int) {
	d.cutAt = d.spans[0].from
	if noops > 0 {
		d.cutAt = d.noops[noops-1].at
	}
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

// disconnected reports whether the client lost its last stream before the service knew.
func (d *device) disconnected() bool { return d.goneAt.After(d.last().from) }

// endedAsAsked reports whether the last stream was open when its end was requested. A request may come after the client has given
// the stream up, or lost it, which a proxy need not report to the service.
func (d *device) endedAsAsked() bool {
	closed := d.last().to
	return !d.disconnected() && !d.asked.IsZero() && (closed.IsZero() || d.asked.Before(closed))
}

// over is the last moment at which a noop could be expected.
func (d *device) over() time.Time {
	closed := d.last().to
	switch {
	case d.endedAsAsked():
		return d.asked
	case d.disconnected() && (closed.IsZero() || d.goneAt.Before(closed)):
		return d.goneAt
	}
	return closed
}

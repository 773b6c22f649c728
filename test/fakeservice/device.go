package fakeservice

import "time"

// A Noop is the record of one noop.
type Noop struct {
	Slot         int
	Number       uint64 // from 1, without gaps, in the order in which noops are due
	Due          time.Time
	At           time.Time // when it was last written; zero: never
	Copies       int
	Corrupt      bool
	Overtaken    bool
	Unserved     bool // the service made no noop for this slot, and used no number
	Disconnected bool // it was due while the client was disconnected
	OtherEvent   bool // it had another event name, so it was no noop
}

// Lost reports whether the noop did not reach a client that was disconnected at that time.
func (n *Noop) Lost(cut time.Time) bool {
	return n.At.IsZero() || n.OtherEvent || !cut.IsZero() && n.At.After(cut)
}

// A Device is the record of one client id: the messages to the client, and how its streams ended. The lock of the
// service guards it.
type Device struct {
	Client
	First          time.Time // when slot 1 was due
	CutAt          time.Time // from this time on, the wire dropped everything
	disconnectedAt time.Time // when the wire cut the client's connection
	Noops          []Noop
	numbers        uint64
}

// add records a noop, and assigns its number.
func (d *Device) add(n Noop) int {
	if !n.Unserved {
		d.numbers++
		n.Number = d.numbers
	}
	d.Noops = append(d.Noops, n)
	return len(d.Noops) - 1
}

// cutAfter records that no noop after the given one arrives.
func (d *Device) cutAfter(noops int) {
	d.CutAt = d.Spans[0].From
	if noops > 0 {
		d.CutAt = d.Noops[noops-1].At
	}
}

// markLost marks the noops of an ended stream as lost if the wire dropped them.
func (d *Device) markLost() {
	for i := range d.Noops {
		if n := &d.Noops[i]; n.Lost(d.CutAt) {
			n.At, n.Copies = time.Time{}, 0
		}
	}
	d.CutAt = time.Time{}
}

// isDisconnected reports whether the client lost its last stream before the service noticed.
func (d *Device) isDisconnected() bool { return d.disconnectedAt.After(d.Last().From) }

// EndedOnRequest reports whether the last stream was open when its end was requested. A client may request the end of
// a stream that it has already closed or lost; a proxy may not report that to the service.
func (d *Device) EndedOnRequest() bool {
	closed := d.Last().To
	return !d.isDisconnected() && !d.EndRequestedAt.IsZero() && (closed.IsZero() || d.EndRequestedAt.Before(closed))
}

// LastExpected returns the last time at which a noop could be expected.
func (d *Device) LastExpected() time.Time {
	closed := d.Last().To
	switch {
	case d.EndedOnRequest():
		return d.EndRequestedAt
	case d.isDisconnected() && (closed.IsZero() || d.disconnectedAt.Before(closed)):
		return d.disconnectedAt
	}
	return closed
}

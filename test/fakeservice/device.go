package fakeservice

import "time"

// A Noop is the record of one noop.
type Noop struct {
	Slot         int    // position in the schedule of the device, from 1
	Number       uint64 // from 1, without gaps, in the order in which noops are due; 0: unserved
	Due          time.Time
	At           time.Time // when it was last written; zero: never
	Copies       int       // how often it was written
	Corrupt      bool
	Overtaken    bool // a later noop was written before it
	Unserved     bool // the service made no noop for this slot, and used no number
	Disconnected bool // the client was disconnected when the noop was due
	OtherEvent   bool // it had a different event name, so clients do not count it as a noop
}

// Lost reports whether the noop did not reach the client as a noop. cut is the time from which the wire dropped all
// noops; zero: never.
func (n *Noop) Lost(cut time.Time) bool {
	return n.At.IsZero() || n.OtherEvent || !cut.IsZero() && n.At.After(cut)
}

// A Device is the record of one client of a Service: its noops, and how its streams ended. The lock of the service
// guards it.
type Device struct {
	Client
	First          time.Time // when slot 1 was due
	CutAt          time.Time // time from which the wire dropped all noops; zero: never
	disconnectedAt time.Time // when the wire cut the client's connection
	Noops          []Noop
	numbers        uint64 // number of the last noop
}

func (d *Device) add(n Noop) int {
	if !n.Unserved {
		d.numbers++
		n.Number = d.numbers
	}
	d.Noops = append(d.Noops, n)
	return len(d.Noops) - 1
}

func (d *Device) cutAfter(noops int) {
	d.CutAt = d.Spans[0].From
	if noops > 0 {
		d.CutAt = d.Noops[noops-1].At
	}
}

func (d *Device) markLost() {
	for i := range d.Noops {
		if n := &d.Noops[i]; n.Lost(d.CutAt) {
			n.At, n.Copies = time.Time{}, 0
		}
	}
	d.CutAt = time.Time{}
}

// isDisconnected reports whether the wire disconnected the client's last stream. The service may not have noticed.
func (d *Device) isDisconnected() bool { return d.disconnectedAt.After(d.Last().From) }

// EndedOnRequest reports whether the last stream was open when its end was requested. A request may also arrive after
// the client has disconnected, if a proxy has not reported the disconnect.
func (d *Device) EndedOnRequest() bool {
	closed := d.Last().To
	return !d.isDisconnected() && !d.EndRequestedAt.IsZero() && (closed.IsZero() || d.EndRequestedAt.Before(closed))
}

// LastExpected returns the last time at which a noop could be expected; zero: the last stream is open.
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

package control

import (
	"bytes"
	"strconv"
	"time"
)

// rise is the drift, as a share of the elapsed time, at which the earliest arrival is adjusted: the clocks of two
// machines differ by less.
const rise = 1e-3

// longest is the largest delay that a reference reports: a stream is an hour behind at most.
const longest = time.Hour

// An Account counts the expected and received events of one stream, by the reader's own clock. The zero value is a
// stream without events.
type Account struct {
	// RequestedAt is when the stream was requested: no reference starts to count before that. Zero: unknown.
	RequestedAt time.Time

	number uint64    // of the last event
	base   time.Time // when event 0 would have arrived, by the fastest event so far
	last   time.Time // when the last event arrived
	counts uint64    // events that were counted as expected
}

// An Arrival is one event.
type Arrival struct {
	Lost uint64 // events that were skipped right before it
	// Late is the delay above the fastest event, without the delay of the reference itself: it is due to the reader
	// or to the network between.
	Late time.Duration
	// Reference is by how much the reference was late to send it.
	Reference time.Duration
}

// Note counts an event. It is not ok if it is a duplicate or not from a reference.
func (a *Account) Note(at time.Time, id, data []byte) (out Arrival, ok bool) {
	number, err := strconv.ParseUint(string(id), 10, 63)
	text, marked := bytes.CutPrefix(data, []byte(mark))
	late, errLate := strconv.ParseUint(string(text), 10, 53)
	if err != nil || errLate != nil || !marked || late > uint64(longest.Microseconds()) || number <= a.number || number > a.number+uint64(365*24*time.Hour/Interval) { // #nosec G115 -- constants
		return out, false
	}
	out.Lost, out.Reference = number-a.number-1, time.Duration(late)*time.Microsecond
	base := at.Add(-out.Reference - time.Duration(number)*Interval)
	if drift := time.Duration(rise * float64(at.Sub(a.RequestedAt))); !a.RequestedAt.IsZero() && base.Before(a.RequestedAt.Add(-Interval-drift-time.Millisecond)) {
		return Arrival{}, false // it was not late by that much, because it had not been requested yet
	}
	if a.number == 0 {
		out.Lost, a.base, a.last, a.counts = 0, base, at, number-1
	}
	a.base = a.base.Add(time.Duration(rise * float64(at.Sub(a.last))))
	if base.Before(a.base) {
		a.base = base
	}
	out.Late = base.Sub(a.base)
	a.number, a.last = number, at
	return out, true
}

// Due returns the number of events that have fallen due since the last call.
func (a *Account) Due(now time.Time) uint64 {
	if a.number == 0 {
		return 0
	}
	due := max(uint64(max(now.Sub(a.base)/Interval, 0)), a.number)
	n := due - min(a.counts, due)
	a.counts += n
	return n
}

// Missing returns how many events were due more than a tolerance ago and have not arrived.
func (a *Account) Missing(now time.Time, tolerance time.Duration) uint64 {
	if a.number == 0 {
		return 0
	}
	due := uint64(max((now.Sub(a.base)-tolerance)/Interval, 0))
	return due - min(a.number, due)
}

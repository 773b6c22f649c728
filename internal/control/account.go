package control

import (
	"bytes"
	"strconv"
	"time"
)

// rise is by how much of the time that passes the earliest arrival may be forgotten: clocks of two machines differ by less.
const rise = 1e-3

// longest is the most by which a reference says that it was late: a stream is an hour behind at most.
const longest = time.Hour

// An Account is what one stream owed and brought, by the reader's own clock. The zero value is a stream of which nothing
// has come.
type Account struct {
	// Asked is when the stream was asked for: no reference has begun to count before that. Zero: not known.
	Asked time.Time

	number uint64    // the last that came
	base   time.Time // when event 0 would have come, by the fastest event so far
	last   time.Time // when the last event came
	counts uint64    // events that were counted as owed
}

// An Arrival is one event.
type Arrival struct {
	Lost uint64 // events that were skipped right before it
	// Late is how much later it came than the fastest, beside the delay of the reference itself: by the reader or by the
	// network between.
	Late time.Duration
	// Reference is by how much the reference was late to send it.
	Reference time.Duration
}

// Note counts an event; it is not ok if it is none of a reference, or comes again.
func (a *Account) Note(at time.Time, id, data []byte) (out Arrival, ok bool) {
	number, err := strconv.ParseUint(string(id), 10, 63)
	text, marked := bytes.CutPrefix(data, []byte(mark))
	late, errLate := strconv.ParseUint(string(text), 10, 53)
	if err != nil || errLate != nil || !marked || late > uint64(longest.Microseconds()) || number <= a.number || number > a.number+uint64(365*24*time.Hour/Every) { //nolint:gosec // G115: constants
		return out, false
	}
	out.Lost, out.Reference = number-a.number-1, time.Duration(late)*time.Microsecond
	base := at.Add(-out.Reference - time.Duration(number)*Every)
	if drift := time.Duration(rise * float64(at.Sub(a.Asked))); !a.Asked.IsZero() && base.Before(a.Asked.Add(-Every-drift-time.Millisecond)) {
		return Arrival{}, false // it was not late by so much, as nobody had asked for it yet
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

// Owed is how many events have fallen due since it was last asked.
func (a *Account) Owed(now time.Time) uint64 {
	if a.number == 0 {
		return 0
	}
	due := max(uint64(max(now.Sub(a.base)/Every, 0)), a.number)
	n := due - min(a.counts, due)
	a.counts += n
	return n
}

// Missing is how many events were due more than patience ago and have not come.
func (a *Account) Missing(now time.Time, patience time.Duration) uint64 {
	if a.number == 0 {
		return 0
	}
	due := uint64(max((now.Sub(a.base)-patience)/Every, 0))
	return due - min(a.number, due)
}

package control

import (
	"bytes"
	"strconv"
	"time"
)

// maxDrift is the assumed maximum drift between the clocks of two machines, as a share of the elapsed time. The base
// of an Account rises at this rate.
const maxDrift = 1e-3

// maxReference is the largest delay of the reference that an Account accepts.
const maxReference = time.Hour

// An Account counts the expected and received events of one stream by the clock of the reader. The zero value is an
// Account without events.
type Account struct {
	// RequestedAt is the time of the request, before which the stream cannot have started; zero if unknown.
	RequestedAt time.Time

	number  uint64    // of the last event
	base    time.Time // arrival of a hypothetical event 0, derived from the fastest event so far
	last    time.Time // arrival of the last event
	counted uint64    // events that Due has returned
}

// An Arrival is the arrival of one event.
type Arrival struct {
	Lost uint64 // events missing directly before this one
	// Late is the delay compared with the fastest event, without the delay of the reference. The reader or the network
	// caused it.
	Late time.Duration
	// Reference is the delay with which the reference sent the event.
	Reference time.Duration
}

// Note counts an event. ok is false if the event is a duplicate or cannot be from a reference.
func (a *Account) Note(at time.Time, id, data []byte) (out Arrival, ok bool) {
	number, err := strconv.ParseUint(string(id), 10, 63)
	text, marked := bytes.CutPrefix(data, []byte(mark))
	delay, errDelay := strconv.ParseUint(string(text), 10, 53)
	if err != nil || errDelay != nil || !marked || delay > uint64(maxReference.Microseconds()) || number <= a.number || number > a.number+uint64(365*24*time.Hour/Interval) { // #nosec G115 -- constants
		return out, false
	}
	out.Lost, out.Reference = number-a.number-1, time.Duration(delay)*time.Microsecond
	base := at.Add(-out.Reference - time.Duration(number)*Interval)
	if drift := time.Duration(maxDrift * float64(at.Sub(a.RequestedAt))); !a.RequestedAt.IsZero() && base.Before(a.RequestedAt.Add(-Interval-drift-time.Millisecond)) {
		return Arrival{}, false // with that delay the event would be older than the request
	}
	if a.number == 0 {
		out.Lost, a.base, a.last, a.counted = 0, base, at, number-1
	}
	a.base = a.base.Add(time.Duration(maxDrift * float64(at.Sub(a.last))))
	if base.Before(a.base) {
		a.base = base
	}
	out.Late = base.Sub(a.base)
	a.number, a.last = number, at
	return out, true
}

// Due returns the number of events that have become due since the last call.
func (a *Account) Due(now time.Time) uint64 {
	if a.number == 0 {
		return 0
	}
	due := max(uint64(max(now.Sub(a.base)/Interval, 0)), a.number)
	n := due - min(a.counted, due)
	a.counted += n
	return n
}

// Missing returns the number of events that were due more than a tolerance ago and have not arrived.
func (a *Account) Missing(now time.Time, tolerance time.Duration) uint64 {
	if a.number == 0 {
		return 0
	}
	due := uint64(max((now.Sub(a.base)-tolerance)/Interval, 0))
	return due - min(a.number, due)
}

package control

import (
	"bytes"
	"strconv"
	"time"
)

// maxDrift is the assumed maximum drift between the clocks of two machines, as a share of the elapsed time. The base
// of an Account rises at this rate.
const maxDrift = 1e-3

// Limits of the events that an Account accepts.
const (
	maxReferenceDelay = time.Hour
	maxGap            = uint64(365 * 24 * time.Hour / Interval) // between the numbers of two events
)

// An Account determines which events of one stream are due, late or lost, by the client's clock. The zero value has no
// events.
type Account struct {
	// RequestedAt is the time of the request, before which the stream cannot have started; zero if unknown.
	RequestedAt time.Time

	number    uint64    // number of the last event
	base      time.Time // arrival of a hypothetical event 0, derived from the fastest event so far
	arrivedAt time.Time // arrival of the last event
	dueCount  uint64    // number of events that Due has counted, including events before the first arrival
}

// An Arrival is the arrival of one event.
type Arrival struct {
	Lost uint64 // events missing directly before this one
	// Late is the delay relative to the fastest event, minus the delay of the reference. The client or the network
	// caused this delay.
	Late time.Duration
	// Reference is the delay with which the reference sent the event.
	Reference time.Duration
}

// Note records the arrival of an event. ok is false for a duplicate, an older event, or one that no reference sends.
func (a *Account) Note(at time.Time, id, data []byte) (out Arrival, ok bool) {
	number, delay, ok := parseEvent(id, data)
	if !ok || number <= a.number || number > a.number+maxGap {
		return Arrival{}, false
	}
	base := at.Add(-delay - time.Duration(number)*Interval) // #nosec G115 -- maxGap limits each step
	if drift := time.Duration(maxDrift * float64(at.Sub(a.RequestedAt))); !a.RequestedAt.IsZero() && base.Before(a.RequestedAt.Add(-Interval-drift-time.Millisecond)) {
		return Arrival{}, false // the reference would have opened the stream before the request
	}
	out = Arrival{Lost: number - a.number - 1, Reference: delay}
	if a.number == 0 {
		out.Lost, a.base, a.arrivedAt, a.dueCount = 0, base, at, number-1
	}
	a.base = a.base.Add(time.Duration(maxDrift * float64(at.Sub(a.arrivedAt))))
	if base.Before(a.base) {
		a.base = base
	}
	out.Late = base.Sub(a.base)
	a.number, a.arrivedAt = number, at
	return out, true
}

// parseEvent returns the number of an event and the delay of the reference. ok is false for any other
// format, or a delay above maxReferenceDelay.
func parseEvent(id, data []byte) (number uint64, delay time.Duration, ok bool) {
	number, err := strconv.ParseUint(string(id), 10, 63)
	text, hasMark := bytes.CutPrefix(data, []byte(mark))
	us, errDelay := strconv.ParseUint(string(text), 10, 53)
	delay = time.Duration(us) * time.Microsecond // #nosec G115 -- below 2^53
	return number, delay, err == nil && errDelay == nil && hasMark && delay <= maxReferenceDelay
}

// Due returns the number of events that have become due since the last call. It returns 0 before the first event.
func (a *Account) Due(now time.Time) uint64 {
	if a.number == 0 {
		return 0
	}
	due := max(uint64(max(now.Sub(a.base)/Interval, 0)), a.number)
	n := due - min(a.dueCount, due)
	a.dueCount += n
	return n
}

// Missing returns the number of events after the last arrival that were due more than tolerance ago; 0 without events.
func (a *Account) Missing(now time.Time, tolerance time.Duration) uint64 {
	if a.number == 0 {
		return 0
	}
	due := uint64(max((now.Sub(a.base)-tolerance)/Interval, 0))
	return due - min(a.number, due)
}

package ledger

import (
	"slices"
	"time"
)

// A counter is the common part of the counters of a client: clockCounter, numberCounter and deliveries.
type counter struct {
	stream   *stream
	Received uint64  // see Counts; the only count of most streams
	faults   *faults // nil: no fault so far
	slots    slots
	pace     pace
	lastAt   Instant // arrival of the last message of this stream, or of its headers; the start of the current gap

	maxGap, maxLateness time.Duration
	Undetectable        uint32 // see Counts
	hasMessage          bool   // a message arrived on this stream
}

type faults struct {
	Counts      // without Received and Undetectable
	findings    []Finding
	unlisted    int         // number of findings beyond the limits of find
	earlierPace measurement // the longest measurement that has ended
}

func (c *counter) fault() *faults {
	if c.faults == nil {
		c.faults = new(faults)
	}
	return c.faults
}

func (c *counter) interval() time.Duration { return c.stream.cfg.Interval }

func (c *counter) Arrived() uint64 {
	if c.faults == nil {
		return c.Received
	}
	return c.Received + c.faults.Corrupted
}

func (c *counter) faultCount() uint64 {
	if c.faults == nil {
		return 0
	}
	return c.faults.Missed() + c.faults.Faults()
}

func (c *counter) fill(r *Record) {
	span := c.pace.measured(c.interval())
	r.Counts = Counts{}
	if f := c.faults; f != nil {
		r.Counts = f.Counts
		if span.n < f.earlierPace.n {
			span = f.earlierPace
		}
	}
	r.Received, r.Undetectable = c.Received, uint64(c.Undetectable)
	r.MaxGap, r.MaxLateness, r.LastAt = c.maxGap, c.maxLateness, c.lastAt
	span.fill(r, c.interval())
}

func (c *counter) opened(at Instant) {
	c.hasMessage, c.lastAt = false, at
	c.endMeasurement()
}

// endMeasurement ends the measurement of the pace, and keeps the longest one.
func (c *counter) endMeasurement() {
	if span := c.pace.measured(c.interval()); span.n > 0 && (c.faults == nil || span.n > c.faults.earlierPace.n) {
		c.fault().earlierPace = span
	}
	c.pace = pace{}
}

// measures reports whether the gap before this noop counts toward the pace. It starts the measurement at the first noop
// of the first stream, and on later streams after the replayed noops. A noop that may have waited for the end of a
// pause of the client ends the measurement, and a later noop starts another one.
func (c *counter) measures(at Instant) bool {
	if c.stream.cuts.pauseBetween(at-c.interval(), at) > 0 {
		c.endMeasurement()
		return false
	}
	if c.pace.started {
		return true
	}
	if c.stream.count == 1 || c.hasMessage && !c.inBurst(at) {
		c.pace.start(at)
	}
	return false
}

// checkGap counts a gap as uneven if it differs from a multiple of the interval by more than the share
// jitter+duePrecision of the interval.
func (c *counter) checkGap(gap time.Duration) {
	interval := c.interval()
	if (gap - time.Duration(nearest(gap, interval))*interval).Abs() > share(interval, jitter+duePrecision) {
		c.fault().UnevenGaps++
	}
}

// inBurst reports whether an arrival closely follows the previous one: both were delayed together, or the second one is
// a copy.
func (c *counter) inBurst(at Instant) bool { return c.hasMessage && at-c.lastAt < c.interval()/50 }

// passedSlots returns the number of slots from the last arrival to this one, and moves the anchor. At the first noop of
// a stream, it also counts the empty slots of the outage before the stream.
func (c *counter) passedSlots(at Instant) int64 {
	interval := c.interval()
	if c.hasMessage {
		return c.slots.advance(at, interval)
	}
	if c.stream.count > 1 && c.slots.anchor > 0 { // the noops of the outage are expected and can no longer arrive
		c.addEmptySlots(c.stream.openedAt, c.slots.settle()+c.slots.expected(c.stream.openedAt, interval, 0))
	}
	c.slots.start(at)
	return c.firstSlots(at)
}

// firstSlots returns the number of slots up to the first noop of a stream: 1 if the noop arrived within maxFirstDue,
// otherwise the rounded number of intervals.
func (c *counter) firstSlots(at Instant) int64 {
	if wait := at - c.stream.openedAt; wait > share(c.interval(), maxFirstDue) {
		return nearest(wait, c.interval())
	}
	return 1
}

// anchorAtHeaders counts slots from the headers if no noop has shown their schedule.
func (c *counter) anchorAtHeaders() {
	if c.slots.anchor == 0 {
		c.slots.anchor = c.stream.openedAt
	}
}

func (c *counter) count(n *Noop) {
	if n.Intact {
		c.Received++
		return
	}
	c.countCorrupted(n)
}

//go:noinline
func (c *counter) countCorrupted(n *Noop) {
	c.fault().Corrupted++
	number := n.Number
	if number == 0 {
		number = c.Arrived()
	}
	c.find(Finding{Kind: KindCorrupted, From: number, At: n.At, Note: n.Data, Source: n.source})
}

func (c *counter) recordGap(at Instant, gap time.Duration) {
	c.lastAt = at
	c.maxGap = max(c.maxGap, gap)
}

func (c *counter) addEmptySlots(at Instant, count uint64) {
	if count > 0 {
		c.addUnsent(c.Arrived(), at, count)
	}
}

//go:noinline
func (c *counter) addUnsent(from uint64, at Instant, count uint64) {
	c.fault().Unsent += count
	c.find(Finding{Kind: KindUnsent, From: from, Count: count, At: at})
}

// addLateness counts the lateness of a message. A pause of the client does not count as lateness of a noop. It does
// count for other messages, because MaxLateness bounds their delay in the comparison of clients (package feed).
func (c *counter) addLateness(delta *Delta, number uint64, at Instant, lateness time.Duration) {
	if c.stream.cfg.Counting == Noops {
		lateness -= c.stream.cuts.pauseBetween(at-lateness, at)
	}
	lateness = max(lateness, 0)
	delta.Lateness[delta.LatenessCount] = lateness
	delta.LatenessCount++
	c.maxLateness = max(c.maxLateness, lateness)
	if lateness > c.stream.cfg.LatenessLimit {
		delta.Late++
		c.addLate(number, at, lateness)
	}
}

//go:noinline
func (c *counter) addLate(number uint64, at Instant, lateness time.Duration) {
	c.fault().Late++
	c.find(Finding{Kind: KindLate, From: number, At: at, Lateness: lateness})
}

// delayOf returns the lateness of a noop that filled the first slot in doubt. The caller must call slots.fill first.
func (c *counter) delayOf(at Instant) time.Duration {
	return at - (c.slots.anchor - time.Duration(c.slots.balance)*c.interval())
}

// emptySlots returns how many slots of the stream were due more than tolerance before at, if the schedule is unknown.
func (c *counter) emptySlots(at Instant, tolerance time.Duration) uint64 {
	age := at - c.stream.openedAt - tolerance
	if age < share(c.interval(), maxFirstDue) {
		return 0
	}
	return wholeIntervals(age, c.interval())
}

// endTolerance returns the time before the end of a stream in which the noop of a due slot may still be in transit.
func (c *counter) endTolerance() time.Duration {
	return c.slots.tolerance(c.stream.cfg.tolerance(), c.interval()) + share(c.interval(), duePrecision)
}

// tail returns the number of empty slots at the end of a stream. It counts an undetectable loss if the noop of the next
// slot may have been in transit.
func (c *counter) tail(end Instant) uint64 {
	interval, tolerance := c.interval(), c.endTolerance()
	if c.slots.nextDue(end-tolerance, c.lastAt, interval) <= end+share(interval, duePrecision) {
		c.Undetectable++
	}
	return c.slots.expected(end, interval, tolerance)
}

// tailWithoutSchedule is tail for a stream on which no noop has shown when slots are due.
func (c *counter) tailWithoutSchedule(end Instant) uint64 {
	empty := c.emptySlots(end, c.endTolerance())
	if empty > 0 || c.stream.count == 1 {
		c.Undetectable += 2 // one at each end
	}
	return empty
}

// close ends the count of slots and returns the number of empty slots before the last arrival. The last stream ended at
// end, with tail missed slots. The client was disconnected from end to at, so losses in between are undetectable. close
// may be called again if a client reconnects after the request to end.
func (c *counter) close(end, at Instant, tail uint64) (unsent uint64) {
	interval := c.interval()
	from := end
	if c.hasMessage { // tail has counted noops that were almost due
		from += share(interval, duePrecision)
	}
	if at > from {
		c.Undetectable += uint32(wholeIntervals(at-c.slots.anchor, interval) - wholeIntervals(from-c.slots.anchor, interval)) // #nosec G115 -- intervals of one run
	}
	tolerance := c.stream.cfg.tolerance()
	notDue := c.slots.notDue(end, c.lastAt, interval, tolerance)
	mayBeAnchor := c.stream.count == 1 && c.slots.isOneBurst() && c.slots.anchor > end-tolerance
	unsent = c.slots.settle()
	if !c.stream.openedAfterRequest() {
		unsent -= min(unsent, notDue)
	}
	if unsent > 0 && mayBeAnchor { // the noop of the anchor's slot may still be in transit
		unsent--
		c.Undetectable++
	}
	if tail > 0 {
		c.fault().Tail += tail
		c.find(Finding{Kind: KindTail, From: c.Arrived() + 1, Count: tail, At: end})
		c.slots.anchor += time.Duration(tail) * interval // #nosec G115 -- intervals of one run
	}
	return unsent
}

// find adds a finding, or counts it as unlisted if there are too many in total, or too many late messages.
func (c *counter) find(f Finding) {
	faults := c.fault()
	if f.Kind == KindLate && faults.Late > maxLateFindings {
		faults.unlisted++
		return
	}
	faults.findings, faults.unlisted = appendFinding(faults.findings, faults.unlisted, f)
}

// withdraw removes the newest finding of a kind and time, or one unlisted finding.
func (c *counter) withdraw(kind Kind, at Instant) {
	faults := c.fault()
	for i, f := range slices.Backward(faults.findings) {
		if f.Kind == kind && f.At == at {
			faults.findings = slices.Delete(faults.findings, i, i+1)
			return
		}
	}
	faults.unlisted--
}

// findAt is find without a Finding on the stack of the caller; see Ledger.Noop.
//
//go:noinline
func (c *counter) findAt(kind Kind, from uint64, at Instant) {
	c.find(Finding{Kind: kind, From: from, At: at})
}

func share(interval time.Duration, fraction float64) time.Duration {
	return time.Duration(float64(interval) * fraction)
}

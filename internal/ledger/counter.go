package ledger

import (
	"slices"
	"time"
)

// connection is what is known of it beside its noops.
type connection struct {
	cfg              *Config
	openedAt         Instant // headers of the present stream
	closeRequestedAt Instant // 0: not yet
	streams          uint32  // how many were opened
	streamOpen       bool    // one is open now
	served           bool    // the server ended the last stream after its lifetime, and no attempt to open another has failed since
	dialing          bool    // an attempt is under way
	says             opinion // how this stream is counted in Config.sequences and Config.others
}

// openedAfterRequest says that the present stream was opened after the request to close. No noop is due on
// it, though it may deliver what earlier streams missed.
func (c *connection) openedAfterRequest() bool {
	return c.closeRequestedAt != 0 && c.openedAt >= c.closeRequestedAt
}

// A counter is what the two counters of a connection have in common; see clockCounter and numberCounter.
type counter struct {
	*connection
	Received uint64  // that of Counts; most streams have nothing else to count
	faults   *faults // nil: none yet
	slots    slots
	pace     pace
	lastAt   Instant // the last noop of this stream, or its headers: gaps are measured from here

	maxGap, maxLateness time.Duration
	Hidden              uint32 // that of Counts: at most some for each noop that was not on time
	sawNoop             bool   // on this stream
}

// faults are what was wrong with the noops of a connection.
type faults struct {
	Counts   // but Received and Hidden
	findings []Finding
	unlisted int
	earlier  measured // the pace of an earlier stream
}

// fault are the faults, to be written.
func (c *counter) fault() *faults {
	if c.faults == nil {
		c.faults = new(faults)
	}
	return c.faults
}

// seen are the same, to be read.
func (c *counter) seen() faults {
	if c.faults == nil {
		return faults{}
	}
	return *c.faults
}

// counts are all that was counted.
func (c *counter) counts() (all Counts) {
	if c.faults != nil {
		all = c.faults.Counts
	}
	all.Received, all.Hidden = c.Received, uint64(c.Hidden)
	return all
}

// Arrived is how many distinct noops came.
func (c *counter) Arrived() uint64 {
	if c.faults == nil {
		return c.Received
	}
	return c.Received + c.faults.Corrupted
}

// fill writes the counts into a record.
func (c *counter) fill(r *Record) {
	r.Counts, r.MaxGap, r.MaxLateness, r.LastAt = c.counts(), c.maxGap, c.maxLateness, c.lastAt
	span := c.pace.measured(c.cfg.Interval)
	if c.faults != nil && span.n < c.faults.earlier.n {
		span = c.faults.earlier
	}
	span.fill(r, c.cfg.Interval)
}

func (c *counter) opened(at Instant) {
	c.sawNoop, c.lastAt = false, at
	if span := c.pace.measured(c.cfg.Interval); span.n > 0 && span.n > c.seen().earlier.n {
		c.fault().earlier = span
	}
	c.pace = pace{}
}

// measures says whether the gap before this noop counts for the pace. It starts the measurement if there
// is none: at the first noop of the first stream, and on later streams after the noops that are replayed
// at once.
func (c *counter) measures(at Instant) bool {
	if c.pace.started {
		return true
	}
	if c.streams == 1 || c.sawNoop && !c.inBurst(at) {
		c.pace.start(at)
	}
	return false
}

// checkGap counts the gap as uneven if it differs from a multiple of the interval by more than the assumed jitter.
func (c *counter) checkGap(gap time.Duration) {
	interval := c.cfg.Interval
	if (gap - time.Duration(nearest(gap, interval))*interval).Abs() > share(interval, jitter+aboutDue) {
		c.fault().Uneven++
	}
}

// inBurst says that an arrival is right behind the previous one: held up with it, or a copy of it.
func (c *counter) inBurst(at Instant) bool { return c.sawNoop && at-c.lastAt < c.cfg.Interval/50 }

// passed is how many slots the arrival is past the last one. Before the first noop of a stream the
// phase is unknown: up to 1.5 intervals after the headers it is the noop of the first slot.
func (c *counter) passed(at Instant) int64 {
	interval := c.cfg.Interval
	if c.sawNoop {
		return c.slots.advance(at, interval)
	}
	if c.streams > 1 && c.slots.anchor > 0 { // not resumed by number: noops are owed for the outage, too
		c.silence(c.openedAt, c.slots.settle()+c.slots.owed(c.openedAt, interval, 0)) // nothing is on its way any more
	}
	c.slots.start(at)
	return c.headSlots(at)
}

// headSlots is how many slots have passed at the first noop of a stream. The first slot is due within an
// interval. Later the number is rounded, since a noop may be a moment early.
func (c *counter) headSlots(at Instant) int64 {
	if head := at - c.openedAt; head > share(c.cfg.Interval, latest) {
		return nearest(head, c.cfg.Interval)
	}
	return 1
}

// oweSinceHeaders has slots count from the headers if not one noop has shown their phase.
func (c *counter) oweSinceHeaders() {
	if c.slots.anchor == 0 {
		c.slots.anchor = c.openedAt
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
	c.find(Finding{Kind: KindCorrupted, From: number, At: n.At, Note: n.Data})
}

func (c *counter) gapClock(at Instant, gap time.Duration) {
	c.lastAt = at
	c.maxGap = max(c.maxGap, gap)
}

// silence notes slots that stayed empty before the instant at.
func (c *counter) silence(at Instant, count uint64) {
	if count > 0 {
		c.notSent(c.Arrived(), at, count)
	}
}

//go:noinline
func (c *counter) notSent(from uint64, at Instant, count uint64) {
	c.fault().Unsent += count
	c.find(Finding{Kind: KindUnsent, From: from, Count: count, At: at})
}

// lateBy records how late a noop was.
func (c *counter) lateBy(a *Arrival, number uint64, at Instant, lateness time.Duration) {
	lateness = max(lateness, 0)
	a.Lateness[a.N] = lateness
	a.N++
	c.maxLateness = max(c.maxLateness, lateness)
	if lateness > c.cfg.Late {
		a.Late++
		c.tooLate(number, at, lateness)
	}
}

//go:noinline
func (c *counter) tooLate(number uint64, at Instant, lateness time.Duration) {
	c.fault().Late++
	c.find(Finding{Kind: KindLate, From: number, At: at, Lateness: lateness})
}

// heldUp is how late a noop is that comes before the next slot while earlier slots are in doubt: it was delayed, and
// fills the first of those.
func (c *counter) heldUp(at Instant) time.Duration {
	return at - (c.slots.anchor - time.Duration(c.slots.balance)*c.cfg.Interval)
}

// emptySlots returns the number of empty slots of the present stream at an instant, if no message has shown when they are due.
func (c *counter) emptySlots(at Instant, tolerance time.Duration) uint64 {
	age := at - c.openedAt - tolerance
	if age < share(c.cfg.Interval, latest) {
		return 0
	}
	return whole(age, c.cfg.Interval)
}

// endTolerance returns the time before the end of a stream in which the noop of a due slot may still be on its way.
func (c *counter) endTolerance() time.Duration {
	return c.slots.tolerance(c.cfg.tolerance(), c.cfg.Interval) + share(c.cfg.Interval, aboutDue)
}

// tail returns the number of slots that passed empty at the end of a stream.
func (c *counter) tail(end Instant) uint64 {
	interval, tolerance := c.cfg.Interval, c.endTolerance()
	if c.slots.nextDue(end-tolerance, c.lastAt, interval) <= end+share(interval, aboutDue) {
		c.Hidden++ // its noop may have been on its way
	}
	return c.slots.owed(end, interval, tolerance)
}

// tailOfUnknown is like tail, for a stream on which no message has shown when slots are due.
func (c *counter) tailOfUnknown(end Instant) uint64 {
	empty := c.emptySlots(end, c.endTolerance())
	if empty > 0 || c.streams == 1 {
		c.Hidden += 2 // one at each end
	}
	return empty
}

// close ends the count of slots. The last stream ended at the instant end, with tail empty slots; the client was disconnected until
// the instant at, and losses in between are undetectable. It returns how many slots before the last arrival stayed empty. If a
// client reconnects although the end was requested, close is called again, and counts nothing twice.
func (c *counter) close(end, at Instant, tail uint64) (unsent uint64) {
	interval := c.cfg.Interval
	from := end
	if c.sawNoop { // noops that were about due may have been on their way: see tail
		from += share(interval, aboutDue)
	}
	if at > from {
		c.Hidden += uint32(whole(at-c.slots.anchor, interval) - whole(from-c.slots.anchor, interval)) //nolint:gosec // G115: intervals of one run
	}
	notDue := c.slots.notDue(end, c.lastAt, interval, c.cfg.tolerance())
	unsent = c.slots.settle()
	if !c.openedAfterRequest() {
		unsent -= min(unsent, notDue)
	}
	if tail > 0 {
		c.fault().Tail += tail
		c.find(Finding{Kind: KindTail, From: c.Arrived() + 1, Count: tail, At: end})
		c.slots.anchor += time.Duration(tail) * interval //nolint:gosec // G115: intervals of one run
	}
	return unsent
}

func (c *counter) find(f Finding) {
	faults := c.fault()
	if f.Kind == KindLate && faults.Late > maxLateFindings {
		faults.unlisted++
		return
	}
	faults.findings, faults.unlisted = listed(faults.findings, faults.unlisted, f)
}

// withdraw removes the newest finding of that kind and time.
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

// found is find without room for a Finding on the caller's stack; see Ledger.Noop.
//
//go:noinline
func (c *counter) found(kind Kind, from uint64, at Instant) {
	c.find(Finding{Kind: kind, From: from, At: at})
}

func share(interval time.Duration, of float64) time.Duration {
	return time.Duration(float64(interval) * of)
}

// twice is how many noops came again, and how many of these where the service may do that.
func (c *counter) twice() (n [2]uint64) {
	if c.faults != nil {
		n = [2]uint64{c.faults.Duplicated, c.faults.Repeated}
	}
	return n
}

package ledger

import "time"

// A clockCounter counts noops by interval. It ignores ids, so it works for any service.
type clockCounter struct {
	counter
	early        earlyArrival  // the last arrival, if it may have been a duplicate
	pendingGap   time.Duration // the gap before the last arrival, if its lateness is undecided; otherwise 0
	pendingSlots int64         // the number of slots in that gap
	silent       bool          // no noop has arrived, although one was due on an earlier stream
}

// An earlyArrival is an arrival well before the next slot. Either it is the next noop, and the previous one was late,
// or it is a copy of the previous one. The next arrival decides.
type earlyArrival struct {
	previous Instant // the anchor before it
	time     Instant // 0: there is no early arrival
	intact   bool    // see Noop
}

// isCopyBefore reports whether an arrival fills the slot of the early arrival, which was therefore a copy.
func (e *earlyArrival) isCopyBefore(at Instant, interval time.Duration) bool {
	return e.time > 0 && at-e.previous < interval+(e.time-e.previous)/2
}

// scheduleNoops is the number of noops after which the schedule of a stream is precise. If an early arrival after these
// noops is the last one, it counts as a copy.
const scheduleNoops = 5

func (c *clockCounter) noop(n *Noop) (delta Delta) {
	interval := c.interval()
	if c.early.isCopyBefore(n.At, interval) {
		c.countAsDuplicate()
	}
	c.early = earlyArrival{}
	gap, anchorBefore, first := n.At-c.lastAt, c.slots.anchor, !c.hasMessage
	uncertain, burst := c.slots.balance > 0, c.inBurst(n.At)
	if c.countsForPace(n.At) && c.measures(n.At) {
		c.checkGap(n.At - c.pace.last)
		c.pace.gap(n.At, interval)
	}
	ordinal := c.Arrived() + 1
	passed, duplicate := c.place(n.At, gap)
	if duplicate {
		c.fault().Duplicated++
		c.findAt(KindDuplicated, ordinal-1, n.At)
		return delta
	}
	if uncertain {
		c.decideLateness(&delta, ordinal-1, passed)
	}
	c.addEmptySlots(c.lastAt, c.slots.fill(n.At, passed, 1, 0, burst, true))
	switch {
	case passed > 1:
		c.pendingGap, c.pendingSlots = gap, passed
	case passed == 0: // the noop may be a copy of the previous one, in place of a lost one
		c.fault().PossibleCopies++
		c.Undetectable++
		c.addLateness(&delta, ordinal, n.At, c.delayOf(n.At))
	default:
		c.addLateness(&delta, ordinal, n.At, gap-interval)
	}
	if since := n.At - anchorBefore; !first && !uncertain && since >= interval/4 && since < share(interval, 1-jitter) {
		c.early = earlyArrival{previous: anchorBefore, time: n.At, intact: n.Intact}
	}
	if first {
		c.countFirst(n.At, passed)
	}
	c.recordGap(n.At, gap)
	delta.Counted, c.hasMessage = true, true
	c.count(n)
	return delta
}

// place assigns an arrival to a slot. It returns the number of slots from the last arrival to this one, or 0 if this
// one fills a slot in doubt. An arrival without a slot is a duplicate.
func (c *clockCounter) place(at Instant, gap time.Duration) (passed int64, duplicate bool) {
	interval := c.interval()
	uncertain, scheduleKnown := c.slots.balance > 0, c.slots.scheduleKnown
	lastWasLate := uncertain && !c.slots.isOnSlot(c.lastAt, interval) // the last arrival belonged to an earlier slot
	regular := (gap - interval).Abs() < share(interval, earlyShare)
	if c.slots.longGap && regular {
		c.Undetectable++ // the previous noop was on time, so one before it may have been lost
	}
	longGap := c.hasMessage && !scheduleKnown && !uncertain && gap > interval+share(interval, jitter)
	passed = c.passedSlots(at)
	c.slots.longGap = longGap && passed == 1
	switch {
	case lastWasLate && !scheduleKnown && regular: // the last arrival was on time after all, so both show the schedule
		c.slots.anchor, passed = at, 1
	case lastWasLate && passed > 0: // this arrival fills the slot of the last one
		c.slots.balance--
		passed++
	}
	switch {
	case passed > 0:
	case uncertain:
		duplicate = c.slots.isTooEarly(at, interval)
	case c.isScheduleUnknown(at, gap):
		c.slots.anchor, passed = at, 1
	default:
		duplicate = true
	}
	return passed, duplicate
}

// decideLateness records the lateness of the previous noop, now that the present one shows which noops were lost.
func (c *clockCounter) decideLateness(delta *Delta, ordinal uint64, passed int64) {
	if c.pendingGap <= 0 {
		return
	}
	slots := c.pendingSlots
	if passed == 0 {
		slots = 1
	}
	c.addLateness(delta, ordinal, c.lastAt, c.pendingGap-time.Duration(slots)*c.interval())
	c.pendingGap = 0
}

// countsForPace reports whether a noop counts toward the measured interval. A noop that closely follows another may be
// a copy, and one after the request to end may be a response to that request.
func (c *clockCounter) countsForPace(at Instant) bool {
	return c.stream.closeRequestedAt == 0 && (!c.hasMessage || at-c.pace.last >= c.interval()/4)
}

// countFirst counts the undetectable losses at the first noop of a stream, and sets slots.firstLate. A noop that was
// due between the headers and the first noop may have been lost. The number expected in an outage is an estimate.
func (c *clockCounter) countFirst(at Instant, slotsPassed int64) {
	c.slots.firstLate = at-c.stream.openedAt > c.interval()*3/2
	if slotsPassed > 1 || at-c.stream.openedAt >= share(c.interval(), immediateStart) {
		c.Undetectable++
	}
	if c.stream.count > 1 {
		c.Undetectable++
	}
}

func (c *clockCounter) countAsDuplicate() {
	if c.early.intact {
		c.Received--
	} else {
		c.fault().Corrupted--
		c.withdraw(KindCorrupted, c.early.time)
	}
	c.fault().Duplicated++
	c.findAt(KindDuplicated, c.Arrived(), c.early.time)
	c.slots.anchor, c.early = c.early.previous, earlyArrival{}
}

// isScheduleUnknown reports whether an arrival before the next slot may be on time, because the first noop may have
// been late.
func (c *clockCounter) isScheduleUnknown(at Instant, gap time.Duration) bool {
	if c.slots.scheduleKnown {
		return false
	}
	distinct := gap >= c.interval()/4 || c.slots.firstLate // not a copy of the previous noop
	return distinct && c.Arrived() <= wholeIntervals(at-c.stream.openedAt+share(at-c.stream.openedAt, duePrecision), c.interval())
}

// streamLost prepares the count for a reconnect. No noop was expected on the stream if none was due yet.
func (c *clockCounter) streamLost(at Instant) {
	c.anchorAtHeaders()
	switch {
	case c.Arrived() > 0:
	case c.emptySlots(at, c.stream.cfg.tolerance()) > 0:
		c.silent = true
	case !c.silent:
		c.slots.anchor = at
	}
}

// close ends the count. The last stream ended at end, and the client was disconnected until last.
func (c *clockCounter) close(end, last Instant) {
	if c.early.time > 0 && c.Arrived() > scheduleNoops {
		c.countAsDuplicate()
	}
	at, undetectable := c.lastAt, c.Undetectable
	few := c.Arrived() == 1 || c.Arrived() == 2
	late := c.slots.balance > 0 && !c.slots.isOnSlot(at, c.interval()) && at >= c.slots.anchor-share(c.interval(), jitter+.1)
	var tail uint64
	c.anchorAtHeaders()
	switch {
	case c.hasMessage:
		tail = c.tail(end)
	case c.stream.count > 1: // slots due before the headers are counted as if a noop had arrived right after them
		missed := c.slots.expected(min(c.stream.openedAt, end-c.endTolerance()), c.interval(), 0)
		c.addEmptySlots(c.stream.openedAt, missed)
		c.slots.anchor += time.Duration(missed) * c.interval() // #nosec G115 -- intervals of one run
		fallthrough
	default:
		tail = c.tailWithoutSchedule(end)
	}
	c.addEmptySlots(at, c.counter.close(end, last, tail))
	if c.Undetectable == undetectable && (few || late) {
		c.Undetectable++ // it is unknown whether the last noop was late
	}
}

package ledger

import "time"

// A clockCounter counts noops by the clock alone: one is owed per interval. It ignores ids, so it works
// for any service.
type clockCounter struct {
	counter
	doubts *doubts // nil: there were none yet
}

// doubts are about the last arrivals; the next one decides them.
type doubts struct {
	early       earlyArrival // the last arrival, if it may have been a duplicate
	pendingGap  time.Duration
	pendingSlot int64
	silent      bool // an earlier stream ended without a message that was due; nothing has arrived since
}

// inDoubt are the doubts, to be written.
func (c *clockCounter) inDoubt() *doubts {
	if c.doubts == nil {
		c.doubts = new(doubts)
	}
	return c.doubts
}

// early is the last arrival, if it may have been a duplicate.
func (c *clockCounter) early() earlyArrival {
	if c.doubts == nil {
		return earlyArrival{}
	}
	return c.doubts.early
}

// An earlyArrival came well before its slot. It is the next noop, and the one before was late, or it is a
// copy of the one before. The arrival after it decides.
type earlyArrival struct {
	before  Instant // the anchor before it
	at      Instant // 0: there is none
	ordinal uint64
	intact  bool
}

// doubledBy says that the arrival at the instant at shows the early one to be a copy: it fills the slot that
// the early one would have filled.
func (e *earlyArrival) doubledBy(at Instant, interval time.Duration) bool {
	return e.at > 0 && at-e.before < interval+(e.at-e.before)/2
}

// knownPhase is the number of noops after which the phase is known well enough to take an early
// arrival that nothing follows for a copy.
const knownPhase = 5

func (c *clockCounter) noop(n *Noop) (a Arrival) {
	interval := c.cfg.Interval
	if c.doubts != nil {
		if c.doubts.early.doubledBy(n.At, interval) {
			c.takeForDuplicate()
		}
		c.doubts.early = earlyArrival{}
	}
	gap, before, first := n.At-c.lastAt, c.slots.anchor, !c.sawNoop
	doubt, burst := c.slots.balance > 0, c.inBurst(n.At)
	if c.tellsPace(n.At) && c.measures(n.At) {
		c.checkGap(n.At - c.pace.last)
		c.pace.gap(n.At, interval)
	}
	ordinal := c.Arrived() + 1
	passed, again := c.place(n.At, gap)
	if again {
		c.fault().Duplicated++
		c.found(KindDuplicated, ordinal-1, n.At)
		return a
	}
	if doubt {
		c.settleLateness(&a, ordinal-1, passed)
	}
	c.silence(c.lastAt, c.slots.fill(n.At, passed, 1, 0, burst, true))
	switch {
	case passed > 1:
		doubts := c.inDoubt()
		doubts.pendingGap, doubts.pendingSlot = gap, passed
	case passed == 0: // or it is a copy of the one before, and the noop of the slot is lost
		c.fault().Filled++
		c.Hidden++
		c.lateBy(&a, ordinal, n.At, c.heldUp(n.At))
	default:
		c.lateBy(&a, ordinal, n.At, gap-interval)
	}
	if since := n.At - before; !first && !doubt && since >= interval/4 && since < share(interval, 1-jitter) {
		c.inDoubt().early = earlyArrival{before: before, at: n.At, intact: n.Intact, ordinal: ordinal}
	}
	if first {
		c.begin(n.At, passed)
	}
	c.gapClock(n.At, gap)
	a.Counted, c.sawNoop = true, true
	c.count(n)
	return a
}

// place puts an arrival on its slot and says how many slots that is past the last one, 0 for one that was
// in doubt. again says that there is no slot for it: it is a copy.
func (c *clockCounter) place(at Instant, gap time.Duration) (passed int64, again bool) {
	interval := c.cfg.Interval
	doubt, steady := c.slots.balance > 0, c.slots.steady
	ahead := doubt && !c.slots.stands(c.lastAt, interval)
	regular := (gap - interval).Abs() < share(interval, early)
	if c.slots.loose && regular {
		c.Hidden++ // the previous noop was on time: the one before it may have been late, and one between them lost
	}
	loose := c.sawNoop && !steady && !doubt && gap > interval+share(interval, jitter)
	passed = c.passed(at)
	c.slots.loose = loose && passed == 1
	switch {
	case ahead && !steady && regular: // the last arrival was on a slot of its own after all: these two tell the phase
		c.slots.anchor, passed = at, 1
	case ahead && passed > 0: // the last arrival was late, and its slot not due yet: that is to be filled now
		c.slots.balance--
		passed++
	}
	switch {
	case passed > 0:
	case doubt:
		again = c.slots.tooEarly(at, interval)
	case c.phaseUnknown(at, gap):
		c.slots.anchor, passed = at, 1
	default:
		again = true
	}
	return passed, again
}

// settleLateness decides how late the noop before was: what came next tells whether the slots before it
// were lost or late with it.
func (c *clockCounter) settleLateness(a *Arrival, ordinal uint64, passed int64) {
	d := c.doubts
	if d == nil || d.pendingGap <= 0 {
		return
	}
	was := d.pendingGap - time.Duration(d.pendingSlot)*c.cfg.Interval
	if passed == 0 {
		was = d.pendingGap - c.cfg.Interval
	}
	c.lateBy(a, ordinal, c.lastAt, was)
	d.pendingGap = 0
}

// tellsPace says that a noop counts for the interval that is measured: what comes soon after another may
// be a copy of it, and what comes after the request for the end is sent because of that.
func (c *clockCounter) tellsPace(at Instant) bool {
	return c.closeRequestedAt == 0 && (!c.sawNoop || at-c.pace.last >= c.cfg.Interval/4)
}

// begin counts what stays undecided at the first noop of a stream. If one more noop would have been due
// between headers and this one, it may have been lost. After an outage, the number of noops owed in it is
// only an estimate.
func (c *clockCounter) begin(at Instant, slotsPassed int64) {
	c.slots.headLate = at-c.openedAt > c.cfg.Interval*3/2
	if slotsPassed > 1 || at-c.openedAt >= share(c.cfg.Interval, startsAtOnce) {
		c.Hidden++
	}
	if c.streams > 1 {
		c.Hidden++
	}
}

// takeForDuplicate turns the early arrival from a noop into a duplicate.
func (c *clockCounter) takeForDuplicate() {
	early := c.early()
	if early.intact {
		c.Received--
	} else {
		c.fault().Corrupted--
		c.withdraw(KindCorrupted, early.at)
	}
	c.fault().Duplicated++
	c.found(KindDuplicated, early.ordinal-1, early.at)
	c.slots.anchor = early.before
	c.doubts.early = earlyArrival{}
}

// phaseUnknown says that an arrival before the next slot may still be a noop on time: the first noop of
// the stream may have been late, and then the anchor is late too.
func (c *clockCounter) phaseUnknown(at Instant, gap time.Duration) bool {
	if c.slots.steady {
		return false
	}
	behind := gap >= c.cfg.Interval/4 || c.slots.headLate
	return behind && c.Arrived() <= whole(at-c.openedAt+share(at-c.openedAt, aboutDue), c.cfg.Interval)
}

// lose records that the stream was lost and the client reconnects. If no noop ever arrived, and none was due yet, none was
// expected on it.
func (c *clockCounter) lose(at Instant) {
	c.oweSinceHeaders()
	switch {
	case c.Arrived() > 0:
	case c.emptySlots(at, c.cfg.tolerance()) > 0:
		c.inDoubt().silent = true
	case c.doubts == nil || !c.doubts.silent:
		c.slots.anchor = at
	}
}

// close ends the count. The last stream ended at the instant end; the client was disconnected until the instant last.
func (c *clockCounter) close(end, last Instant) {
	if early := c.early(); early.at > 0 && early.ordinal > knownPhase {
		c.takeForDuplicate()
	}
	at, hidden := c.lastAt, c.Hidden
	few := c.Arrived() == 1 || c.Arrived() == 2
	late := c.slots.balance > 0 && !c.slots.stands(at, c.cfg.Interval) && at >= c.slots.anchor-share(c.cfg.Interval, jitter+.1)
	var tail uint64
	c.oweSinceHeaders()
	switch {
	case c.sawNoop:
		tail = c.tail(end)
	case c.streams > 1: // slots due before the headers are counted as if a noop had arrived right after them
		missed := c.slots.owed(min(c.openedAt, end-c.endTolerance()), c.cfg.Interval, 0)
		c.silence(c.openedAt, missed)
		c.slots.anchor += time.Duration(missed) * c.cfg.Interval //nolint:gosec // G115: intervals of one run
		fallthrough
	default:
		tail = c.tailOfUnknown(end)
	}
	c.silence(at, c.counter.close(end, last, tail))
	if c.Hidden == hidden && (few || late) {
		c.Hidden++ // two noops show little of the phase; and the last one may be late, or the next one
	}
}

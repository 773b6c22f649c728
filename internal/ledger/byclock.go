package ledger

import "time"

// A clockBook counts noops by the clock alone: one is owed per interval. It ignores ids, so it works
// for any service.
type clockBook struct {
	book
	early       earlyArrival // the last arrival, if it may have been a duplicate
	pendingGap  time.Duration
	pendingSlot int64
	headLate    bool // the first noop of the stream came after its first slot
	loose       bool // the last gap was longer than jitter makes it, while the phase was unknown
}

// An earlyArrival came well before its slot. It is the next noop, and the one before was late, or it is a
// copy of the one before. The arrival after it decides.
type earlyArrival struct {
	before  Instant // the anchor before it
	at      Instant // 0: there is none
	intact  bool
	ordinal uint64
}

// doubledBy says that the arrival at the instant at shows the early one to be a copy: it fills the slot that
// the early one would have filled.
func (e *earlyArrival) doubledBy(at Instant, interval time.Duration) bool {
	return e.at > 0 && at-e.before < interval+(e.at-e.before)/2
}

// knownPhase is the number of noops after which the phase is known well enough to take an early
// arrival that nothing follows for a copy.
const knownPhase = 5

func (b *clockBook) noop(n *Noop) (a Arrival) {
	interval := b.cfg.Interval
	if b.early.doubledBy(n.At, interval) {
		b.takeForDuplicate()
	}
	b.early = earlyArrival{}
	gap, before, first := n.At-b.lastAt, b.slots.anchor, !b.sawNoop
	doubt, burst := b.slots.balance > 0, b.inBurst(n.At)
	if b.tellsPace(n.At) && b.measures(n.At) {
		b.pace.gap(n.At, interval)
	}
	ordinal := b.Arrived() + 1
	passed, again := b.place(n.At, gap)
	if again {
		b.Duplicated++
		b.found(KindDuplicated, ordinal-1, n.At)
		return a
	}
	if doubt {
		b.settleLateness(&a, ordinal-1, passed)
	}
	b.silence(b.lastAt, b.slots.book(n.At, passed, 1, 0, burst, true))
	switch {
	case passed > 1:
		b.pendingGap, b.pendingSlot = gap, passed
	case passed == 0: // or it is a copy of the one before, and the noop of the slot is lost
		b.Filled++
		b.Hidden++
		b.lateBy(&a, ordinal, n.At, b.heldUp(n.At))
	default:
		b.lateBy(&a, ordinal, n.At, gap-interval)
	}
	if since := n.At - before; !first && !doubt && since >= interval/4 && since < share(interval, 1-jitter) {
		b.early = earlyArrival{before: before, at: n.At, intact: n.Intact, ordinal: ordinal}
	}
	if first {
		b.begin(n.At, passed)
	}
	b.gapClock(n.At, gap)
	a.Counted, b.sawNoop = true, true
	b.count(n)
	return a
}

// place puts an arrival on its slot and says how many slots that is past the last one, 0 for one that was
// in doubt. again says that there is no slot for it: it is a copy.
func (b *clockBook) place(at Instant, gap time.Duration) (passed int64, again bool) {
	interval := b.cfg.Interval
	doubt, steady := b.slots.balance > 0, b.slots.steady
	ahead := doubt && !b.slots.stands(b.lastAt, interval)
	regular := (gap - interval).Abs() < share(interval, early)
	if b.loose && regular {
		b.Hidden++ // the previous noop was on time: the one before it may have been late, and one between them lost
	}
	loose := b.sawNoop && !steady && !doubt && gap > interval+share(interval, jitter)
	passed = b.passed(at)
	b.loose = loose && passed == 1
	switch {
	case ahead && !steady && regular: // the last arrival was on a slot of its own after all: these two tell the phase
		b.slots.anchor, passed = at, 1
	case ahead && passed > 0: // the last arrival was late, and its slot not due yet: that is to be filled now
		b.slots.balance--
		passed++
	}
	switch {
	case passed > 0:
	case doubt:
		again = b.slots.tooEarly(at, interval)
	case b.phaseUnknown(at, gap):
		b.slots.anchor, passed = at, 1
	default:
		again = true
	}
	return passed, again
}

// settleLateness decides how late the noop before was: what came next tells whether the slots before it
// were lost or late with it.
func (b *clockBook) settleLateness(a *Arrival, ordinal uint64, passed int64) {
	if b.pendingGap <= 0 {
		return
	}
	was := b.pendingGap - time.Duration(b.pendingSlot)*b.cfg.Interval
	if passed == 0 {
		was = b.pendingGap - b.cfg.Interval
	}
	b.lateBy(a, ordinal, b.lastAt, was)
	b.pendingGap = 0
}

// tellsPace says that a noop counts for the interval that is measured: what comes soon after another may
// be a copy of it, and what comes after the request for the end is sent because of that.
func (b *clockBook) tellsPace(at Instant) bool {
	return b.endAskedAt == 0 && (!b.sawNoop || at-b.pace.last >= b.cfg.Interval/4)
}

// begin counts what stays undecided at the first noop of a stream. If one more noop would have been due
// between headers and this one, it may have been lost. After an outage, the number of noops owed in it is
// only an estimate.
func (b *clockBook) begin(at Instant, slotsPassed int64) {
	b.headLate = at-b.openedAt > b.cfg.Interval*3/2
	if slotsPassed > 1 || at-b.openedAt >= share(b.cfg.Interval, startsAtOnce) {
		b.Hidden++
	}
	if b.streams > 1 {
		b.Hidden++
	}
}

// takeForDuplicate turns the early arrival from a noop into a duplicate.
func (b *clockBook) takeForDuplicate() {
	if b.early.intact {
		b.Received--
	} else {
		b.Corrupted--
		b.withdraw(KindCorrupted, b.early.at)
	}
	b.Duplicated++
	b.found(KindDuplicated, b.early.ordinal-1, b.early.at)
	b.slots.anchor = b.early.before
	b.early = earlyArrival{}
}

// phaseUnknown says that an arrival before the next slot may still be a noop on time: the first noop of
// the stream may have been late, and then the anchor is late too.
func (b *clockBook) phaseUnknown(at Instant, gap time.Duration) bool {
	if b.slots.steady {
		return false
	}
	behind := gap >= b.cfg.Interval/4 || b.headLate
	return behind && b.Arrived() <= whole(at-b.openedAt+share(at-b.openedAt, aboutDue), b.cfg.Interval)
}

func (b *clockBook) lose() { b.oweSinceHeaders() }

func (b *clockBook) close(end Instant) {
	if b.early.at > 0 && b.early.ordinal > knownPhase {
		b.takeForDuplicate()
	}
	at, hidden := b.lastAt, b.Hidden
	few := b.Arrived() == 1 || b.Arrived() == 2
	late := b.slots.balance > 0 && !b.slots.stands(at, b.cfg.Interval) && at >= b.slots.anchor-share(b.cfg.Interval, jitter+.1)
	b.silence(at, b.book.close(end))
	if b.Hidden == hidden && (few || late) {
		b.Hidden++ // two noops show little of the phase; and the last one may be late, or the next one
	}
}

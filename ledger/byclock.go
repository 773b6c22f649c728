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
	gap := n.At - b.lastAt
	if b.early.doubledBy(n.At, interval) {
		b.takeForDuplicate()
	}
	b.early = earlyArrival{}
	before := b.slots.anchor
	doubt := b.slots.balance > 0
	first := !b.sawNoop
	burst := b.inBurst(n.At)
	if b.tellsPace(n.At) && b.measures(n.At) {
		b.pace.gap(n.At, interval)
	}
	ahead := doubt && !b.slots.stands(b.lastAt, interval)
	inStep := ahead && !b.slots.steady && (gap-interval).Abs() < share(interval, early)
	if b.loose && (gap-interval).Abs() < share(interval, early) {
		b.hidden++ // the previous noop was on time: the one before it may have been late, and one between them lost
	}
	b.loose = !first && !b.slots.steady && !doubt && gap > interval+share(interval, jitter)
	slotsPassed := b.passed(n.At)
	b.loose = b.loose && slotsPassed == 1
	switch {
	case inStep: // the last arrival was on a slot of its own after all: these two tell the phase
		b.slots.anchor, slotsPassed = n.At, 1
	case ahead && slotsPassed > 0: // the last arrival was late, and its slot not due yet: that is to be filled now
		b.slots.balance--
		slotsPassed++
	}
	ordinal := b.noops() + 1
	if slotsPassed == 0 && (!doubt || b.slots.tooEarly(n.At, interval)) {
		if doubt || !b.phaseUnknown(n.At, gap) {
			b.duplicated++
			b.found(KindDuplicated, ordinal-1, n.At)
			return a
		}
		b.slots.anchor, slotsPassed = n.At, 1
	}
	if doubt && b.pendingGap > 0 { // it is now decided how late the previous noop was
		was := b.pendingGap - time.Duration(b.pendingSlot)*interval
		if slotsPassed == 0 {
			was = b.pendingGap - interval
		}
		b.lateBy(&a, ordinal-1, b.lastAt, was)
		b.pendingGap = 0
	}
	b.silence(b.lastAt, b.slots.book(n.At, slotsPassed, 1, 0, burst, true))
	switch {
	case slotsPassed > 1:
		b.pendingGap, b.pendingSlot = gap, slotsPassed
	case slotsPassed == 0: // or it is a copy of the one before, and the noop of the slot is lost
		b.hidden++
		b.lateBy(&a, ordinal, n.At, b.heldUp(n.At))
	default:
		b.lateBy(&a, ordinal, n.At, gap-interval)
	}
	if since := n.At - before; !first && !doubt && since >= interval/4 && since < share(interval, 1-jitter) {
		b.early = earlyArrival{before: before, at: n.At, intact: n.Intact, ordinal: ordinal}
	}
	if first {
		b.begin(n.At, slotsPassed)
	}
	b.gapClock(n.At, gap)
	a.Counted, b.sawNoop = true, true
	b.count(n)
	return a
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
		b.hidden++
	}
	if b.streams > 1 {
		b.hidden++
	}
}

// takeForDuplicate turns the early arrival from a noop into a duplicate.
func (b *clockBook) takeForDuplicate() {
	if b.early.intact {
		b.received--
	} else {
		b.corrupted--
		b.withdraw(KindCorrupted, b.early.at)
	}
	b.duplicated++
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
	return behind && b.noops() <= whole(at-b.openedAt+share(at-b.openedAt, aboutDue), b.cfg.Interval)
}

func (b *clockBook) lose() { b.oweSinceHeaders() }

func (b *clockBook) close(end Instant) {
	if b.early.at > 0 && b.early.ordinal > knownPhase {
		b.takeForDuplicate()
	}
	at, hidden := b.lastAt, b.hidden
	few := b.noops() == 1 || b.noops() == 2
	late := b.slots.balance > 0 && !b.slots.stands(at, b.cfg.Interval) && at >= b.slots.anchor-share(b.cfg.Interval, jitter+.1)
	b.silence(at, b.book.close(end))
	if b.hidden == hidden && (few || late) {
		b.hidden++ // two noops show little of the phase; and the last one may be late, or the next one
	}
}

func (b *clockBook) fill(r *Record) {
	b.book.fill(r)
	r.Last, r.Lost, r.Numberings = 0, 0, 0
}

package ledger

import "time"

// A Noop is what the wire said of one noop.
type Noop struct {
	At     Instant
	Number uint64 // of its `id:`, 0 where it has none
	Intact bool   // its data was exactly `0`
	Data   string // what it was otherwise, for the finding; may be cut short
}

// An Arrival says what the ledger made of a noop, for those who keep sums over connections.
type Arrival struct {
	Counted bool // a distinct noop: received, or corrupted
	// Lateness is gap − interval, at least 0, of up to two noops: where noops have no numbers,
	// only the next arrival tells whether a long gap was lateness or a loss.
	Lateness [2]time.Duration
	N        int // how many of Lateness are set
	Late     int // how many of them were over the limit
}

// Noop books one noop.
func (l *Ledger) Noop(n Noop) Arrival {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rec.Received+l.rec.Corrupted == 0 {
		l.rec.Numbered = l.plausible(n)
	}
	var a Arrival
	if l.rec.Numbered {
		a = l.numbered(n)
	} else {
		a = l.unnumbered(n)
	}
	l.sawNoop = l.sawNoop || a.Counted
	return a
}

// Message books a numbered event that is no noop: it takes a number, but no slot.
func (l *Ledger) Message(at Instant, number uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.rec.Numbered || number == 0 {
		return
	}
	switch s, grew := l.numbers.see(number, at); s {
	case inOrder:
		l.skipped += grew - 1
	case filled:
		l.rec.Reordered++
		l.rec.find(Finding{Kind: KindReordered, From: number, At: at})
	case repeated:
		l.rec.Duplicated++
		l.rec.find(Finding{Kind: KindDuplicated, From: number, At: at})
	}
}

// plausible says whether the first number can be one of a numbering per device that began at
// 1. A server with ids of another kind (global, random) is judged by the clock alone.
func (l *Ledger) plausible(n Noop) bool {
	return n.Number > 0 && n.Number <= 2+whole(n.At-l.openedAt, l.cfg.Interval)
}

func (l *Ledger) numbered(n Noop) (a Arrival) {
	if n.Number == 0 { // it has to have one: give it the one it should have had
		n.Number, n.Intact, n.Data = l.numbers.highest+1, false, "a noop without number"
	}
	if !l.sawNoop && l.rec.Streams > 1 && n.Number == 1 && l.numbers.highest > 1 {
		l.restart(n.At)
	}
	sight, grew := l.numbers.see(n.Number, n.At)
	if sight == repeated {
		l.rec.Duplicated++
		l.rec.find(Finding{Kind: KindDuplicated, From: n.Number, At: n.At})
		return a
	}
	if sight == inOrder {
		grew, l.skipped = grew+l.skipped, 0
	}
	gap := n.At - l.lastAt
	l.bookNumbered(n.At, int64(grew))
	l.gapClock(n.At, gap)
	a.Counted = true
	l.count(n)
	if sight == filled {
		l.rec.Reordered++
		l.rec.find(Finding{Kind: KindReordered, From: n.Number, At: n.At})
		return a
	}
	a.late(l, n.Number, n.At, gap-time.Duration(grew)*l.cfg.Interval)
	return a
}

// bookNumbered enters an arrival that makes grew more numbers known into the clock's book.
func (l *Ledger) bookNumbered(at Instant, grew int64) {
	resumed := l.rec.Streams > 1 && !l.sawNoop && l.numbers.known
	l.numbers.known = true
	if resumed { // the numbers cover the outage, whatever the clock says of it
		l.slots.start(at)
		return
	}
	passed := l.passed(at)
	if !l.sawNoop {
		passed = max(passed, grew) // the phase is unknown yet: the numbers know better
	}
	l.unsent(at, l.slots.book(passed, grew))
}

func (l *Ledger) unnumbered(n Noop) (a Arrival) {
	gap := n.At - l.lastAt
	slotsPassed := l.passed(n.At)
	doubt := l.slots.balance > 0
	ordinal := l.rec.Received + l.rec.Corrupted + 1
	if slotsPassed == 0 && !doubt {
		if !l.phaseUnknown(n.At, gap) {
			l.rec.Duplicated++
			l.rec.find(Finding{Kind: KindDuplicated, From: ordinal - 1, At: n.At})
			return a
		}
		l.slots.anchor, slotsPassed = n.At, 1
	}
	if doubt { // the gap before this one is decided now
		was := l.pendingGap - time.Duration(l.pendingSlot)*l.cfg.Interval
		if slotsPassed == 0 {
			was = l.pendingGap - l.cfg.Interval
		}
		if l.pendingGap > 0 {
			a.late(l, ordinal-1, l.lastAt, was)
		}
		l.pendingGap = 0
	}
	l.unsent(l.lastAt, l.slots.book(slotsPassed, 1))
	if slotsPassed > 1 {
		l.pendingGap, l.pendingSlot = gap, slotsPassed
	} else {
		a.late(l, ordinal, n.At, gap-l.cfg.Interval)
	}
	l.gapClock(n.At, gap)
	a.Counted = true
	l.count(n)
	return a
}

// passed is how many slots the arrival is past the last one. The first noop of a stream has
// no phase yet: up to 1.5 intervals after the headers it is the first slot.
func (l *Ledger) passed(at Instant) int64 {
	interval := l.cfg.Interval
	if l.sawNoop {
		return l.slots.advance(at, interval)
	}
	if l.rec.Streams > 1 && l.slots.anchor > 0 { // not resumed by number: the outage counts too
		l.rec.Unsent += l.slots.settle() + l.slots.owed(l.openedAt, interval, l.cfg.tolerance())
	}
	l.slots.start(at)
	if head := at - l.openedAt; head > interval*3/2 {
		return int64(head / interval)
	}
	return 1
}

// phaseUnknown says that an arrival before the next slot may still be right: the first noop
// of the stream was late, so that the anchor is late too.
func (l *Ledger) phaseUnknown(at Instant, gap time.Duration) bool {
	if l.slots.steady {
		return false
	}
	behind := gap >= l.cfg.Interval/4 || l.slots.anchor-l.openedAt > l.cfg.Interval*3/2
	return behind && l.rec.Received+l.rec.Corrupted <= whole(at-l.openedAt, l.cfg.Interval)
}

func (l *Ledger) restart(at Instant) {
	if l.rec.Numberings == 0 {
		l.rec.Numberings = 1
	}
	l.rec.Numberings++
	l.rec.find(Finding{Kind: KindRestarted, From: l.numbers.highest, At: at})
	for _, h := range l.numbers.restart() {
		l.rec.find(Finding{Kind: KindLost, From: h.from, To: h.to, Count: h.to - h.from + 1, At: h.at})
	}
	l.skipped = 0
}

func (l *Ledger) count(n Noop) {
	if n.Intact {
		l.rec.Received++
		return
	}
	l.rec.Corrupted++
	number := n.Number
	if number == 0 {
		number = l.rec.Received + l.rec.Corrupted
	}
	l.rec.find(Finding{Kind: KindCorrupted, From: number, At: n.At, Note: n.Data})
}

func (l *Ledger) gapClock(at Instant, gap time.Duration) {
	l.lastAt = at
	l.rec.MaxGap = max(l.rec.MaxGap, gap)
}

// unsent books slots that stayed empty before the instant at.
func (l *Ledger) unsent(at Instant, count uint64) {
	if count == 0 {
		return
	}
	l.rec.Unsent += count
	l.rec.find(Finding{Kind: KindUnsent, From: l.rec.Received + l.rec.Corrupted, Count: count, At: at})
}

func (a *Arrival) late(l *Ledger, number uint64, at Instant, lateness time.Duration) {
	lateness = max(lateness, 0)
	a.Lateness[a.N] = lateness
	a.N++
	l.rec.MaxLateness = max(l.rec.MaxLateness, lateness)
	if lateness > l.cfg.Late {
		a.Late++
		l.rec.Late++
		l.rec.find(Finding{Kind: KindLate, From: number, At: at, Lateness: lateness})
	}
}

// closeSlots settles the clock's book at the end of the last stream.
func (l *Ledger) closeSlots(end Instant) {
	interval, tolerance := l.cfg.Interval, l.cfg.tolerance()
	if !l.sawNoop && l.rec.Streams <= 1 {
		l.tail(end, whole(end-l.openedAt-tolerance, interval))
		return
	}
	l.unsent(l.lastAt, l.slots.settle())
	l.tail(end, l.slots.owed(end, interval, tolerance))
}

func (l *Ledger) tail(end Instant, count uint64) {
	if count == 0 {
		return
	}
	l.rec.Tail += count
	l.rec.find(Finding{Kind: KindTail, From: l.rec.Received + l.rec.Corrupted + 1, Count: count, At: end})
}

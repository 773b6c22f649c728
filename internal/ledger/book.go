package ledger

import "time"

// life is what both counts know of the connection.
type life struct {
	cfg        *Config
	streams    int     // how many were opened
	openedAt   Instant // headers of the present one
	endAskedAt Instant // when the end was asked for; 0: not yet
}

// openedAtEnd says that the present stream was opened after the end was requested. No noop is due on
// it, though it may deliver what earlier streams missed.
func (l *life) openedAtEnd() bool { return l.endAskedAt != 0 && l.openedAt >= l.endAskedAt }

// A book is what the two counts of a connection have in common; see clockBook and numberBook.
type book struct {
	*life
	sum
	slots   slots
	pace    pace
	sawNoop bool    // on this stream
	lastAt  Instant // the last noop of this stream, or its headers: gaps are measured from here
}

// fill writes the counts into a record.
func (b *book) fill(r *Record) {
	b.sum.fill(r)
	b.pace.fill(r, b.cfg.Interval)
	r.LastAt = b.lastAt
}

func (b *book) opened(at Instant) {
	b.sawNoop, b.lastAt = false, at
	b.pace.opened(b.cfg.Interval)
}

// measures says whether the gap before this noop counts for the pace. It starts the measurement if there
// is none: at the first noop of the first stream, and on later streams after the noops that are replayed
// at once.
func (b *book) measures(at Instant) bool {
	if b.pace.started {
		return true
	}
	if b.streams == 1 || b.sawNoop && !b.inBurst(at) {
		b.pace.start(at)
	}
	return false
}

// inBurst says that an arrival is right behind the previous one: held up with it, or a copy of it.
func (b *book) inBurst(at Instant) bool { return b.sawNoop && at-b.lastAt < b.cfg.Interval/50 }

// passed is how many slots the arrival is past the last one. Before the first noop of a stream the
// phase is unknown: up to 1.5 intervals after the headers it is the noop of the first slot.
func (b *book) passed(at Instant) int64 {
	interval := b.cfg.Interval
	if b.sawNoop {
		return b.slots.advance(at, interval)
	}
	if b.streams > 1 && b.slots.anchor > 0 { // not resumed by number: noops are owed for the outage, too
		b.silence(b.openedAt, b.slots.settle()+b.slots.owed(b.openedAt, interval, 0)) // nothing is on its way any more
	}
	b.slots.start(at)
	return b.headSlots(at)
}

// headSlots is how many slots have passed at the first noop of a stream. The first slot is due within an
// interval. Later the number is rounded, since a noop may be a moment early.
func (b *book) headSlots(at Instant) int64 {
	if head := at - b.openedAt; head > b.cfg.Interval*3/2 {
		return nearest(head, b.cfg.Interval)
	}
	return 1
}

// oweSinceHeaders has slots count from the headers if not one noop has shown their phase.
func (b *book) oweSinceHeaders() {
	if b.slots.anchor == 0 {
		b.slots.anchor = b.openedAt
	}
}

func (b *book) count(n *Noop) {
	if n.Intact {
		b.Received++
		return
	}
	b.countCorrupted(n)
}

//go:noinline
func (b *book) countCorrupted(n *Noop) {
	b.Corrupted++
	number := n.Number
	if number == 0 {
		number = b.Arrived()
	}
	b.find(Finding{Kind: KindCorrupted, From: number, At: n.At, Note: n.Data})
}

func (b *book) gapClock(at Instant, gap time.Duration) {
	b.lastAt = at
	b.maxGap = max(b.maxGap, gap)
}

// silence notes slots that stayed empty before the instant at.
func (b *book) silence(at Instant, count uint64) {
	if count > 0 {
		b.notSent(b.Arrived(), at, count)
	}
}

//go:noinline
func (b *book) notSent(from uint64, at Instant, count uint64) {
	b.Unsent += count
	b.find(Finding{Kind: KindUnsent, From: from, Count: count, At: at})
}

// lateBy records how late a noop was.
func (b *book) lateBy(a *Arrival, number uint64, at Instant, lateness time.Duration) {
	lateness = max(lateness, 0)
	a.Lateness[a.N] = lateness
	a.N++
	b.maxLateness = max(b.maxLateness, lateness)
	if lateness > b.cfg.Late {
		a.Late++
		b.tooLate(number, at, lateness)
	}
}

//go:noinline
func (b *book) tooLate(number uint64, at Instant, lateness time.Duration) {
	b.Late++
	b.find(Finding{Kind: KindLate, From: number, At: at, Lateness: lateness})
}

// heldUp is how late a noop is that comes before the next slot while slots are in doubt: it was held up,
// and fills the first of them.
func (b *book) heldUp(at Instant) time.Duration {
	return at - (b.slots.anchor - time.Duration(b.slots.balance)*b.cfg.Interval)
}

// close ends the count of slots with the last stream, and returns how many slots before the last arrival
// stayed empty. If a client reconnects though the end was requested, close is called again, and counts
// nothing twice.
func (b *book) close(end Instant) (unsent uint64) {
	interval := b.cfg.Interval
	tolerance := b.slots.tolerance(b.cfg.tolerance(), interval)
	b.oweSinceHeaders()
	about := share(interval, aboutDue)
	tail := b.slots.owed(end, interval, tolerance+about)
	notDue := b.slots.notDue(end, b.lastAt, interval, b.cfg.tolerance())
	switch {
	case !b.sawNoop:
		b.Hidden += 2 // one at each end: nothing tells the phase
	case b.slots.nextDue(end-tolerance-about, b.lastAt, interval) <= end+about:
		b.Hidden++ // it may have been on its way
	}
	unsent = b.slots.settle()
	if !b.openedAtEnd() {
		unsent -= min(unsent, notDue)
	}
	if tail > 0 {
		b.Tail += tail
		b.find(Finding{Kind: KindTail, From: b.Arrived() + 1, Count: tail, At: end})
		b.slots.anchor += time.Duration(tail) * interval
	}
	return unsent
}

func share(interval time.Duration, of float64) time.Duration {
	return time.Duration(float64(interval) * of)
}

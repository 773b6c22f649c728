package ledger

import (
	"fmt"
	"time"
)

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
//
// It is called at the bottom of the stack of each reading goroutine, of which there are many
// thousand: what is rare here stands in functions that are not inlined, so that the common way
// fits into the 2 KB that a goroutine begins with.
func (l *Ledger) Noop(n Noop) Arrival {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.anyNoop() {
		if l.rec.Numbered = l.plausible(n.At, n.Number); !l.rec.Numbered {
			l.numbers, l.skipped = numbers{}, 0 // of messages before it
		}
	}
	var a Arrival
	if l.rec.Numbered {
		a = l.numbered(&n)
	} else {
		a = l.unnumbered(&n)
	}
	if a.Counted {
		l.sawNoop, l.silent = true, 0
	}
	return a
}

// Message books a numbered event that is no noop: it takes a number, but no slot.
func (l *Ledger) Message(at Instant, number uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if number == 0 || !l.rec.Numbered && (l.anyNoop() || !l.plausible(at, number)) {
		return
	}
	if number > l.numbers.highest+maxJump {
		return
	}
	switch s, grew := l.numbers.see(number, at); s {
	case inOrder:
		l.rec.Messages++
		l.skipped += grew - 1
	case filled:
		l.rec.Messages++
		l.rec.Reordered++
		l.rec.found(KindReordered, number, at)
	case repeated:
		l.rec.Duplicated++
		l.rec.found(KindDuplicated, number, at)
	}
}

func (l *Ledger) anyNoop() bool { return l.rec.Received+l.rec.Corrupted > 0 }

// plausible says whether the first number can be one of a numbering per device that began at
// 1. A server with ids of another kind (global, random) is judged by the clock alone.
func (l *Ledger) plausible(at Instant, number uint64) bool {
	return number > 0 && number <= l.numbers.highest+2+whole(at-l.openedAt, l.cfg.Interval)
}

// maxJump is how far numbers may skip at once. What lies beyond is no number of this
// numbering, and would drown every sum it is added to.
const maxJump = 1 << 32

func (l *Ledger) numbered(n *Noop) (a Arrival) {
	if n.Number == 0 || n.Number > l.numbers.highest+1+maxJump {
		l.renumber(n)
	}
	if !l.sawNoop && l.rec.Streams > 1 && n.Number == 1 && l.numbers.highest > 1 {
		l.restart(n.At)
	}
	sight, grew := l.numbers.see(n.Number, n.At)
	if sight == repeated {
		l.rec.Duplicated++
		l.rec.found(KindDuplicated, n.Number, n.At)
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
		l.rec.found(KindReordered, n.Number, n.At)
		return a
	}
	a.late(l, n.Number, n.At, gap-time.Duration(grew)*l.cfg.Interval)
	return a
}

// doubt notes that slots before this arrival of a numbered stream stayed empty so far.
func (l *Ledger) doubt(at Instant) { l.doubtAt, l.doubtful = at, l.rec.Received+l.rec.Corrupted+1 }

// renumber gives a noop that has to have a number, and has none that can be, the one it should
// have had.
//
//go:noinline
func (l *Ledger) renumber(n *Noop) {
	next := l.numbers.highest + 1
	if n.Number == 0 {
		n.Data = "a noop without number"
	} else {
		n.Data = fmt.Sprintf("a noop with the number %d after %d", n.Number, l.numbers.highest)
	}
	n.Number, n.Intact = next, false
}

// due is passed, or nothing on a stream that was opened after the end was asked for: that owes
// no noop, but may bring what the streams before it owed.
func (l *Ledger) due(passed int64) int64 {
	if l.openedAtEnd() {
		return 0
	}
	return passed
}

func (l *Ledger) openedAtEnd() bool { return l.endAskedAt != 0 && l.openedAt >= l.endAskedAt }

// bookNumbered enters an arrival that makes grew more numbers known into the clock's book.
func (l *Ledger) bookNumbered(at Instant, grew int64) {
	resumed := l.rec.Streams > 1 && !l.sawNoop && l.numbers.known
	l.numbers.known = true
	if resumed { // the numbers cover the outage, whatever the clock says of it, but no silence before it
		passed := l.due(l.resumedSlots(at)) + l.silent
		if passed > grew {
			l.doubt(at)
		}
		l.slots.resume(at, passed, grew)
		return
	}
	passed := l.due(l.passed(at))
	switch {
	case !l.sawNoop && grew > passed: // the phase is unknown yet: the numbers know better
		l.headStart = grew - passed
		passed = grew
	case grew == 0 && l.headStart > 0: // one of them is here after all
		l.headStart--
		grew = 1
	}
	if passed > grew {
		l.doubt(at)
	}
	l.slots.book(at, passed, grew, false)
}

func (l *Ledger) unnumbered(n *Noop) (a Arrival) {
	gap := n.At - l.lastAt
	if before := l.early.before; l.early.at > 0 && n.At-before < l.cfg.Interval+(l.early.at-before)/2 {
		l.convict() // the slot that the early one took is that of this one
	}
	l.early = early{}
	before := l.slots.anchor
	doubt := l.slots.balance > 0
	slotsPassed := l.passed(n.At)
	ordinal := l.rec.Received + l.rec.Corrupted + 1
	if slotsPassed == 0 && !doubt {
		if !l.phaseUnknown(n.At, gap) {
			l.rec.Duplicated++
			l.rec.found(KindDuplicated, ordinal-1, n.At)
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
	l.unsent(l.lastAt, l.slots.book(n.At, slotsPassed, 1, true))
	if slotsPassed > 1 {
		l.pendingGap, l.pendingSlot = gap, slotsPassed
	} else {
		a.late(l, ordinal, n.At, gap-l.cfg.Interval)
	}
	if since := n.At - before; l.sawNoop && !doubt && since >= l.cfg.Interval/4 && since < l.cfg.Interval*3/4 {
		l.early = early{before: before, at: n.At, intact: n.Intact, ordinal: ordinal}
	}
	l.gapClock(n.At, gap)
	a.Counted = true
	l.count(n)
	return a
}

// An early arrival of a noop without number is the next one, if the one before was late, or
// the same again. What comes after it tells.
type early struct {
	before  Instant // the anchor before it
	at      Instant // 0: there is none
	intact  bool
	ordinal uint64
}

// convict finds that the early arrival was a noop that came again.
func (l *Ledger) convict() {
	if l.early.intact {
		l.rec.Received--
	} else {
		l.rec.Corrupted--
		l.rec.withdraw(KindCorrupted, l.early.at)
	}
	l.rec.Duplicated++
	l.rec.found(KindDuplicated, l.early.ordinal-1, l.early.at)
	l.slots.anchor = l.early.before
	l.early = early{}
}

// knownPhase is after how many noops an early arrival that nothing follows is taken for one
// that came again.
const knownPhase = 8

// passed is how many slots the arrival is past the last one. The first noop of a stream has
// no phase yet: up to 1.5 intervals after the headers it is the first slot.
func (l *Ledger) passed(at Instant) int64 {
	interval := l.cfg.Interval
	if l.sawNoop {
		return l.slots.advance(at, interval)
	}
	if l.rec.Streams > 1 && l.slots.anchor > 0 { // not resumed by number: the outage counts too
		l.unsent(l.openedAt, l.slots.settle()+l.slots.owed(l.openedAt, interval, 0)) // nothing is on its way any more
	}
	l.slots.start(at)
	return l.headSlots(at)
}

// headSlots is how many slots the first noop of a stream closes. The first is due within an
// interval; rounding tells a noop that comes in place of a lost one, also a moment early.
func (l *Ledger) headSlots(at Instant) int64 {
	if head := at - l.openedAt; head > l.cfg.Interval*3/2 {
		return int64((head + l.cfg.Interval/2) / l.cfg.Interval)
	}
	return 1
}

// resumedSlots is headSlots of a stream that may begin with replays, which take no slot.
func (l *Ledger) resumedSlots(at Instant) int64 {
	if at-l.openedAt < l.cfg.Interval/4 {
		return 0
	}
	return l.headSlots(at)
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
	l.rec.found(KindRestarted, l.numbers.highest, at)
	for _, h := range l.numbers.restart() {
		l.rec.find(Finding{Kind: KindLost, From: h.from, To: h.to, Count: h.to - h.from + 1, At: h.at})
	}
	l.skipped = 0
}

func (l *Ledger) count(n *Noop) {
	if n.Intact {
		l.rec.Received++
		return
	}
	l.corrupted(n)
}

//go:noinline
func (l *Ledger) corrupted(n *Noop) {
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
	if count > 0 {
		l.silence(at, count)
	}
}

//go:noinline
func (l *Ledger) silence(at Instant, count uint64) {
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
		l.tooLate(number, at, lateness)
	}
}

//go:noinline
func (l *Ledger) tooLate(number uint64, at Instant, lateness time.Duration) {
	l.rec.Late++
	l.rec.find(Finding{Kind: KindLate, From: number, At: at, Lateness: lateness})
}

// closeSlots settles the clock's book at the end of a stream that none should follow. One may: a
// client that reconnects though the end was asked for. What was booked is not booked again then.
func (l *Ledger) closeSlots(end Instant) {
	interval, tolerance := l.cfg.Interval, l.cfg.tolerance()
	l.oweSinceHeaders()
	if l.early.at > 0 && l.early.ordinal > knownPhase {
		l.convict()
	}
	unsent, tail := l.slots.settle(), l.slots.owed(end, interval, tolerance)
	if !l.openedAtEnd() {
		unsent -= min(unsent, l.slots.notDue(end, interval, tolerance))
	}
	if l.rec.Numbered && unsent > 0 {
		l.rec.Unsent += unsent
		l.rec.find(Finding{Kind: KindUnsent, From: l.doubtful, Count: unsent, At: l.doubtAt})
	} else {
		l.unsent(l.lastAt, unsent)
	}
	l.tail(end, tail)
	l.slots.anchor += time.Duration(tail) * interval
}

// oweSinceHeaders lets the clock begin where not one noop has told its phase.
func (l *Ledger) oweSinceHeaders() {
	if l.slots.anchor == 0 {
		l.slots.anchor = l.openedAt
	}
}

func (l *Ledger) tail(end Instant, count uint64) {
	if count == 0 {
		return
	}
	l.rec.Tail += count
	l.rec.find(Finding{Kind: KindTail, From: l.rec.Received + l.rec.Corrupted + 1, Count: count, At: end})
}

package ledger

import (
	"fmt"
	"time"
)

// A numberBook counts noops by the numbers that they carry: 1, 2, 3 … per device. A hole is a noop
// that was sent and lost, a number seen twice is a duplicate, one that fills a hole is reordered.
// Slots for which the service made no number are found by the clock.
type numberBook struct {
	book
	ids        ids
	numbers    numbers
	from       uint64  // how many numbers the first noop of this numbering allows
	since      Instant // when it came
	numberings int
	skipped    uint64  // numbers that a message, not a noop, skipped since the last noop
	headStart  int64   // numbers before the first noop for which the clock had no slot
	doubtAt    Instant // when slots last came into doubt
	doubtful   uint64  // and before which noop
	silent     int64   // slots that stayed empty on lost streams since the last noop
}

// maxJump is how far numbers may skip at once. A number beyond it belongs to no sequence, and would
// make every sum meaningless.
const maxJump = 1 << 32

// sequence says whether the ids so far are a sequence: at least one followed another, or there is only
// the first.
func (b *numberBook) sequence() bool {
	return (b.ids.next > 0 || b.ids.gap || b.numbers.highest <= 1) && b.ids.sequence(b.keepsUp())
}

// keepsUp says that the numbers grew about as fast as slots passed: a service that sends a noop again in
// place of the next one does that, and one that always sends the same number does not.
func (b *numberBook) keepsUp() bool {
	slots := b.from + uint64(nearest(b.lastAt-b.since, b.cfg.Interval))
	return slots >= 6 && 4*b.numbers.highest >= 3*slots
}

// plausible says whether the first number of a stream fits a device whose numbers began at 1.
func (b *numberBook) plausible(at Instant, number uint64) bool {
	return number > 0 && number <= b.numbers.highest+2+whole(at-b.openedAt, b.cfg.Interval)
}

func (b *numberBook) message(at Instant, number uint64) {
	if number == 0 || number > b.numbers.highest+maxJump {
		return
	}
	switch s, grew := b.numbers.see(number, at); s {
	case inOrder:
		b.Messages++
		b.skipped += grew - 1
	case filled:
		b.Messages++
		b.Reordered++
		b.found(KindReordered, number, at)
	case repeated:
		b.Duplicated++
		b.found(KindDuplicated, number, at)
	}
}

func (b *numberBook) noop(n *Noop) (a Arrival) {
	if n.Number == 0 || n.Number > b.numbers.highest+1+maxJump {
		b.renumber(n)
	}
	if !b.sawNoop && b.streams > 1 && n.Number == 1 && b.numbers.highest > 1 {
		b.restart(n.At)
	}
	known := b.numbers.known
	sight, grew := b.numbers.see(n.Number, n.At)
	if sight == repeated {
		if b.sawNoop && n.At-b.slots.anchor >= b.cfg.Interval/2 {
			b.ids.stale++
		}
		b.Duplicated++
		b.found(KindDuplicated, n.Number, n.At)
		return a
	}
	gap, doubt := n.At-b.lastAt, b.slots.balance > 0
	if !known {
		b.from, b.since = max(n.Number, uint64(b.headSlots(n.At))), n.At
	}
	leapt := sight == inOrder && grew > 1 && b.aheadOfClock(n)
	next := sight == inOrder && grew == 1
	if sight == inOrder {
		grew, b.skipped = grew+b.skipped, 0
	}
	passed, measured := b.enter(n.At, int64(grew)), b.measures(n.At)
	b.gapClock(n.At, gap)
	a.Counted, b.sawNoop, b.silent = true, true, 0
	b.count(n)
	if sight == filled {
		b.ids.filled(n.At-b.numbers.skippedAt >= 2*b.cfg.Interval)
		b.Reordered++
		b.found(KindReordered, n.Number, n.At)
		return a
	}
	if measured && b.endAskedAt == 0 {
		b.pace.step(n.At, int64(grew), b.cfg.Interval)
	}
	switch {
	case leapt:
		b.ids.leap++
	case next && known:
		b.ids.sawNext()
	case known:
		b.ids.gap = true
	}
	if doubt && passed == 0 && grew == 1 {
		b.lateBy(&a, n.Number, n.At, b.heldUp(n.At))
	} else {
		b.lateBy(&a, n.Number, n.At, gap-time.Duration(grew)*b.cfg.Interval)
	}
	return a
}

// aheadOfClock says that the numbers have grown faster than one per interval since the first noop of this
// numbering. Messages use up numbers, too.
func (b *numberBook) aheadOfClock(n *Noop) bool {
	slots := uint64(nearest(n.At-b.since, b.cfg.Interval))
	return n.Number > b.from+slots+b.Messages
}

// renumber counts a noop whose id is missing or impossible as a corrupted one with the next number.
//
//go:noinline
func (b *numberBook) renumber(n *Noop) {
	if n.OtherID {
		b.ids.words++
	} else {
		b.ids.bare++
	}
	next := b.numbers.highest + 1
	if n.Number == 0 {
		n.Data = "a noop without number"
	} else {
		n.Data = fmt.Sprintf("a noop with the number %d after %d", n.Number, b.numbers.highest)
	}
	n.Number, n.Intact = next, false
}

// due returns the slots that passed. A stream opened after the end was asked for owes nothing,
// though it may deliver what earlier streams missed.
func (b *numberBook) due(passed int64) int64 {
	if b.openedAtEnd() {
		return 0
	}
	return passed
}

// enter counts the slots of an arrival by which the highest number grew by grew, and returns how many
// slots passed.
func (b *numberBook) enter(at Instant, grew int64) int64 {
	resumed := b.streams > 1 && !b.sawNoop && b.numbers.known
	b.numbers.known = true
	if resumed { // the numbers show what was lost in the outage, but not a silence before it
		passed := b.due(b.resumedSlots(at)) + b.silent
		if passed > grew {
			b.doubt(at)
		}
		b.slots.resume(at, passed, grew)
		return passed
	}
	passed := b.due(b.passed(at))
	switch {
	case !b.sawNoop && grew > passed: // the phase is unknown yet: the numbers tell how many slots passed
		b.headStart = grew - passed
		passed = grew
	case grew == 0 && b.headStart > 0: // a number from before the first noop came after all
		b.headStart--
		grew = 1
	}
	if passed > grew {
		b.doubt(at)
	}
	if passed > 1 && grew == passed && b.sawNoop {
		b.slots.anchor = min(b.slots.anchor, at) // the numbers say that it is the noop of this slot
	}
	ahead := min(b.numbers.missing(), maxJump)
	b.slots.book(at, passed, grew, int64(ahead), b.inBurst(at), false)
	return passed
}

// doubt notes that slots before this arrival are empty so far.
func (b *numberBook) doubt(at Instant) { b.doubtAt, b.doubtful = at, b.Arrived()+1 }

// resumedSlots is headSlots for a stream that may begin with replayed noops, which fill no slot.
func (b *numberBook) resumedSlots(at Instant) int64 {
	if at-b.openedAt < b.cfg.Interval/4 {
		return 0
	}
	return b.headSlots(at)
}

func (b *numberBook) restart(at Instant) {
	b.numberings = max(b.numberings, 1) + 1
	b.found(KindRestarted, b.numbers.highest, at)
	for _, h := range b.numbers.restart() {
		b.find(Finding{Kind: KindLost, From: h.from, To: h.to, Count: h.to - h.from + 1, At: h.at})
	}
	b.skipped = 0
}

// lose notes that the stream is lost, and another follows.
func (b *numberBook) lose(at Instant) {
	since := b.openedAt
	if b.sawNoop {
		since = b.slots.anchor
	}
	b.oweSinceHeaders()
	b.silent += int64(whole(at-since-b.cfg.tolerance(), b.cfg.Interval))
}

func (b *numberBook) close(end Instant) {
	if unsent := b.book.close(end); unsent > 0 {
		b.notSent(b.doubtful, b.doubtAt, unsent)
	}
}

func (b *numberBook) fill(r *Record) {
	b.book.fill(r)
	r.Last, r.Lost, r.Numberings = b.numbers.highest, b.numbers.lost(), b.numberings
}

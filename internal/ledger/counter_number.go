package ledger

import (
	"fmt"
	"math"
	"time"
)

// A numberCounter counts noops by the numbers that they carry: 1, 2, 3 … per device. A hole is a noop
// that was sent and lost, a number seen twice is a duplicate, one that fills a hole is reordered.
// Slots for which the service made no number are found by the clock.
type numberCounter struct {
	counter
	ids     ids
	numbers numbers
	from    uint64  // how many numbers the first noop of this numbering allows
	since   Instant // when it came
	odd     *oddities
}

// oddities are what few streams have.
type oddities struct {
	against
	headStart  int64 // numbers before the first noop for which the clock had no slot
	numberings int
	skipped    uint64  // numbers that a message, not a noop, skipped since the last noop
	doubtAt    Instant // when slots last came into doubt
	doubtful   uint64  // and before which noop
	silent     int64   // slots that stayed empty on lost streams since the last noop
}

// oddly are the oddities, to be written.
func (c *numberCounter) oddly() *oddities {
	if c.odd == nil {
		c.odd = new(oddities)
	}
	return c.odd
}

var noOddities oddities

// oddities are the same, to be read.
func (c *numberCounter) oddities() *oddities {
	if c.odd == nil {
		return &noOddities
	}
	return c.odd
}

// messages is how many distinct numbered events came that are no noops.
func (c *numberCounter) messages() uint64 {
	if c.faults == nil {
		return 0
	}
	return c.faults.Messages
}

// maxJump is how far numbers may skip at once. A number beyond it belongs to no sequence, and would
// make every sum meaningless.
const maxJump = 1 << 32

// sequence says whether the ids so far are a sequence: at least one followed another, or there is only
// the first.
func (c *numberCounter) sequence() bool {
	return (c.ids.next > 0 || c.ids.gap || c.numbers.highest <= 1) && c.ids.sequence(&c.oddities().against, c.keepsUp())
}

// keepsUp says that the numbers grew about as fast as slots passed: a service that sends a noop again in
// place of the next one does that, and one that always sends the same number does not.
func (c *numberCounter) keepsUp() bool {
	slots := c.from + uint64(nearest(c.lastAt-c.since, c.cfg.Interval)) //nolint:gosec // G115: lastAt is not before since
	return slots >= 6 && 4*c.numbers.highest >= 3*slots
}

// plausible says whether the first number of a stream fits a device whose numbers began at 1.
func (c *numberCounter) plausible(at Instant, number uint64) bool {
	return number > 0 && number <= c.numbers.highest+2+whole(at-c.openedAt, c.cfg.Interval)
}

func (c *numberCounter) message(at Instant, number uint64) {
	if number == 0 || number > c.numbers.highest+maxJump {
		return
	}
	switch s, grew := c.numbers.see(number, at); s {
	case inOrder:
		c.fault().Messages++
		if grew > 1 {
			c.oddly().skipped += grew - 1
		}
	case filled:
		c.fault().Messages++
		c.fault().Reordered++
		c.found(KindReordered, number, at)
	case repeated:
		c.fault().Duplicated++
		c.found(KindDuplicated, number, at)
	}
}

func (c *numberCounter) noop(n *Noop) (a Arrival) {
	if n.Number == 0 || n.Number > c.numbers.highest+1+maxJump {
		c.renumber(n)
	}
	if !c.sawNoop && c.streams > 1 && n.Number == 1 && c.numbers.highest > 1 {
		c.restart(n.At)
	}
	known := c.numbers.known
	sight, grew := c.numbers.see(n.Number, n.At)
	if sight == repeated {
		if c.sawNoop && n.At-c.slots.anchor >= c.cfg.Interval/2 {
			c.oddly().stale++
		}
		c.fault().Duplicated++
		c.found(KindDuplicated, n.Number, n.At)
		return a
	}
	gap, doubt := n.At-c.lastAt, c.slots.balance > 0
	if !known {
		c.from, c.since = max(n.Number, uint64(c.headSlots(n.At))), n.At //nolint:gosec // G115: headSlots is not negative
	}
	leapt := sight == inOrder && grew > 1 && c.aheadOfClock(n)
	next := sight == inOrder && grew == 1
	if sight == inOrder && c.odd != nil {
		grew, c.odd.skipped = grew+c.odd.skipped, 0
	}
	passed, measured := c.fillSlots(n.At, int64(grew)), c.measures(n.At) //nolint:gosec // G115: numbers grow by less than 1<<63
	c.gapClock(n.At, gap)
	a.Counted, c.sawNoop = true, true
	if c.odd != nil {
		c.odd.silent = 0
	}
	c.count(n)
	if sight == filled {
		c.oddly().filled(n.At-c.numbers.gaps.skippedAt >= 2*c.cfg.Interval)
		c.fault().Reordered++
		c.found(KindReordered, n.Number, n.At)
		return a
	}
	if measured && c.closeRequestedAt == 0 {
		c.checkGap(n.At - c.pace.last)
		c.pace.step(n.At, int64(grew), c.cfg.Interval) //nolint:gosec // G115: numbers grow by less than 1<<63
	}
	switch {
	case leapt:
		c.oddly().leap++
	case next && known:
		c.ids.sawNext(&c.oddities().against)
	case known:
		c.ids.gap = true
	}
	if doubt && passed == 0 && grew == 1 {
		c.lateBy(&a, n.Number, n.At, c.heldUp(n.At))
	} else {
		c.lateBy(&a, n.Number, n.At, gap-time.Duration(grew)*c.cfg.Interval) //nolint:gosec // G115: numbers grow by less than 1<<63
	}
	return a
}

// aheadOfClock says that the numbers have grown faster than one per interval since the first noop of this
// numbering. Messages use up numbers, too.
func (c *numberCounter) aheadOfClock(n *Noop) bool {
	slots := uint64(nearest(n.At-c.since, c.cfg.Interval)) //nolint:gosec // G115: a message is not before since
	return n.Number > c.from+slots+c.messages()
}

// renumber counts a noop whose id is missing or impossible as a corrupted one with the next number.
//
//go:noinline
func (c *numberCounter) renumber(n *Noop) {
	if n.OtherID {
		c.oddly().words++
	} else {
		c.oddly().bare++
	}
	next := c.numbers.highest + 1
	if n.Number == 0 {
		n.Data = "a noop without number"
	} else {
		n.Data = fmt.Sprintf("a noop with the number %d after %d", n.Number, c.numbers.highest)
	}
	n.Number, n.Intact = next, false
}

// due returns the slots that passed. A stream opened after the request to close owes nothing,
// though it may deliver what earlier streams missed.
func (c *numberCounter) due(passed int64) int64 {
	if c.openedAfterRequest() {
		return 0
	}
	return passed
}

// fillSlots counts the slots of an arrival by which the highest number grew by grew, and returns how many
// slots passed.
func (c *numberCounter) fillSlots(at Instant, grew int64) int64 {
	resumed := c.streams > 1 && !c.sawNoop && (c.numbers.known || c.Arrived() == 0) // otherwise the service restarted its numbers at 1
	c.numbers.known = true
	if resumed { // the numbers show what was lost in the outage, but not a silence before it
		passed := c.due(c.resumedSlots(at)) + c.oddities().silent
		if passed > grew {
			c.doubt(at)
		}
		c.slots.resume(at, passed, grew)
		return passed
	}
	passed := c.due(c.passed(at))
	switch {
	case !c.sawNoop && grew > passed: // the phase is unknown yet: the numbers tell how many slots passed
		c.oddly().headStart = grew - passed
		passed = grew
	case grew == 0 && c.oddities().headStart > 0: // a number from before the first noop came after all
		c.odd.headStart--
		grew = 1
	}
	if passed > grew {
		c.doubt(at)
	}
	if passed > 1 && grew == passed && c.sawNoop {
		c.slots.anchor = min(c.slots.anchor, at) // the numbers say that it is the noop of this slot
	}
	ahead := min(c.numbers.missing(), maxJump)
	c.slots.fill(at, passed, grew, int64(ahead), c.inBurst(at), false)
	return passed
}

// doubt notes that slots before this arrival are empty so far.
func (c *numberCounter) doubt(at Instant) {
	odd := c.oddly()
	odd.doubtAt, odd.doubtful = at, c.Arrived()+1
}

// resumedSlots is headSlots for a stream that may begin with replayed noops, which fill no slot.
func (c *numberCounter) resumedSlots(at Instant) int64 {
	if at-c.openedAt < c.cfg.Interval/4 {
		return 0
	}
	return c.headSlots(at)
}

// missedSlots is how many slots have passed since the last noop, when the next stream opens.
func (c *numberCounter) missedSlots(at Instant) uint64 {
	return whole(at-c.slots.anchor+share(c.cfg.Interval, aboutDue), c.cfg.Interval)
}

func (c *numberCounter) restart(at Instant) {
	odd := c.oddly()
	odd.numberings, odd.skipped = max(odd.numberings, 1)+1, 0
	c.found(KindRestarted, c.numbers.highest, at)
	for _, h := range c.numbers.restart() {
		c.find(h.finding())
	}
}

// settled reports whether a noop has shown when slots of the present stream are due. Noops replayed right after the headers do
// not show it.
func (c *numberCounter) settled() bool {
	return c.sawNoop && (c.streams == 1 || c.lastAt-c.openedAt >= c.cfg.Interval/4)
}

// lose notes that the stream is lost, and another follows.
func (c *numberCounter) lose(at Instant) {
	c.oweSinceHeaders()
	silent := c.emptySlots(at, c.cfg.tolerance())
	if c.settled() {
		silent = whole(at-c.slots.anchor-c.cfg.tolerance(), c.cfg.Interval)
	}
	c.oddly().silent += int64(silent) //nolint:gosec // G115: intervals of one run
}

// close ends the count, as counter.close does. kept is the number of slots of the last outage for which no noop arrived. unknown
// reports whether no later noop shows if these were lost.
func (c *numberCounter) close(end, at Instant, kept uint64) (unknown bool) {
	c.oweSinceHeaders()
	var tail uint64
	hidden := c.Hidden
	if c.settled() {
		tail = c.tail(end)
	} else {
		silent, empty := uint64(c.oddities().silent), c.tailOfUnknown(end) //nolint:gosec // G115: a count
		if tail = silent; at == end {                                      // otherwise lose has counted the empty slots
			tail += empty
		}
		if !c.openedAfterRequest() {
			c.Hidden += uint32(min(kept-min(kept, silent), math.MaxInt32))
			if c.sawNoop && empty == 0 && c.slots.owed(end, c.cfg.Interval, 0) > 0 || at > end {
				c.Hidden++ // one may have been due after the replayed ones
			}
		}
		unknown = c.Hidden > hidden
	}
	if unsent := c.counter.close(end, at, tail); unsent > 0 {
		c.notSent(c.oddities().doubtful, c.oddities().doubtAt, unsent)
	}
	if c.odd != nil {
		c.odd.silent = 0
	}
	return unknown
}

func (c *numberCounter) fill(r *Record) {
	c.counter.fill(r)
	r.Last, r.Lost, r.Numberings = c.numbers.highest, c.numbers.lost(), c.oddities().numberings
}

package ledger

import (
	"fmt"
	"math"
	"time"
)

// A numberCounter counts noops by the numbers that they carry: 1, 2, 3 … per device. A hole is a noop that was sent and lost, a
// number that repeats is a duplicate, one that fills a hole is reordered. The clock finds slots for which the service made no
// number.
type numberCounter struct {
	counter
	ids         ids
	numberings  uint32
	numbers     numbers
	firstNumber uint64  // numbers that the first noop of this numbering allows
	startedAt   Instant // when it arrived

	headStart     int64   // numbers before the first noop for which the clock had no slot
	skipped       uint64  // numbers that a message, not a noop, skipped since the last noop
	uncertainAt   Instant // when slots last came into doubt
	uncertainFrom uint64  // the noop after these slots
	silentSlots   int64   // slots that stayed empty on lost streams since the last noop
}

// maxJump is the largest step between two numbers. A number beyond it is not part of a sequence, and would make every sum
// meaningless.
const maxJump = 1 << 32

// sequence reports whether the ids so far are a sequence: at least one followed another, or there is only the first.
func (c *numberCounter) sequence() bool {
	return (c.ids.next > 0 || c.ids.gap || c.numbers.highest <= 1) && c.ids.sequence(c.keepsUp())
}

// keepsUp reports whether the numbers grew about as fast as slots passed. They do if a service repeats a noop in place of the next
// one, and do not if it always sends the same number.
func (c *numberCounter) keepsUp() bool {
	slots := c.firstNumber + uint64(nearest(c.lastAt-c.startedAt, c.interval())) // #nosec G115 -- lastAt is not before since
	return slots >= 6 && 4*c.numbers.highest >= 3*slots
}

// plausible reports whether the first number of a stream fits a client whose numbers began at 1.
func (c *numberCounter) plausible(at Instant, number uint64) bool {
	return number > 0 && number <= c.numbers.highest+2+wholeIntervals(at-c.stream.openedAt, c.interval())
}

func (c *numberCounter) message(at Instant, number uint64) {
	if number == 0 || number > c.numbers.highest+maxJump {
		return
	}
	switch s := c.numbers.record(number, at); s.sighting {
	case inOrder:
		c.fault().Messages++
		c.skipped += s.advance - 1
	case filled:
		c.fault().Messages++
		c.fault().Reordered++
		c.findAt(KindReordered, number, at)
	case repeated:
		c.fault().Duplicated++
		c.findAt(KindDuplicated, number, at)
	}
}

func (c *numberCounter) noop(n *Noop) (a Arrival) {
	if n.Number == 0 || n.Number > c.numbers.highest+1+maxJump {
		c.assumeNext(n)
	}
	if !c.sawNoop && c.stream.count > 1 && n.Number == 1 && c.numbers.highest > 1 {
		c.restart(n.At)
	}
	known, sight := c.numbers.known, c.numbers.record(n.Number, n.At)
	grew := sight.advance
	if sight.sighting == repeated {
		if c.sawNoop && n.At-c.slots.anchor >= c.interval()/2 {
			c.ids.stale++
		}
		c.fault().Duplicated++
		c.findAt(KindDuplicated, n.Number, n.At)
		return a
	}
	gap, uncertain := n.At-c.lastAt, c.slots.balance > 0
	if !known {
		c.firstNumber, c.startedAt = max(n.Number, uint64(c.firstSlots(n.At))), n.At // #nosec G115 -- headSlots is not negative
	}
	next := sight.sighting == inOrder && grew == 1
	leapt := sight.sighting == inOrder && grew > 1 && c.aheadOfClock(n)
	if sight.sighting == inOrder {
		grew, c.skipped = grew+c.skipped, 0
	}
	passed, measured := c.fillSlots(n.At, int64(grew)), c.measures(n.At) // #nosec G115 -- numbers grow by less than 1<<63
	c.recordGap(n.At, gap)
	a.Counted, c.sawNoop, c.silentSlots = true, true, 0
	c.count(n)
	if sight.sighting == filled {
		c.ids.fill(n.At-sight.skippedAt >= 2*c.interval())
		c.fault().Reordered++
		c.findAt(KindReordered, n.Number, n.At)
		return a
	}
	if measured && c.stream.closeRequestedAt == 0 {
		c.checkGap(n.At - c.pace.last)
		c.pace.step(n.At, int64(grew), c.interval()) // #nosec G115 -- numbers grow by less than 1<<63
	}
	switch {
	case leapt:
		c.ids.leaps++
	case next && known:
		c.ids.addNext()
	case known:
		c.ids.gap = true
	}
	if uncertain && passed == 0 && grew == 1 {
		c.addLateness(&a, n.Number, n.At, c.delayOf(n.At))
	} else {
		c.addLateness(&a, n.Number, n.At, gap-time.Duration(grew)*c.interval()) // #nosec G115 -- numbers grow by less than 1<<63
	}
	return a
}

// aheadOfClock reports whether the numbers have grown faster than one per interval since the first noop of this numbering.
// Messages use numbers, too.
func (c *numberCounter) aheadOfClock(n *Noop) bool {
	slots := uint64(nearest(n.At-c.startedAt, c.interval())) // #nosec G115 -- a message is not before since
	messages := uint64(0)
	if c.faults != nil {
		messages = c.faults.Messages
	}
	return n.Number > c.firstNumber+slots+messages
}

// assumeNext turns a noop whose id is missing or impossible into a corrupted one with the next number.
//
//go:noinline
func (c *numberCounter) assumeNext(n *Noop) {
	if n.OtherID {
		c.ids.nonDigit++
	} else {
		c.ids.missing++
	}
	next := c.numbers.highest + 1
	if n.Number == 0 {
		n.Data = "a noop without number"
	} else {
		n.Data = fmt.Sprintf("a noop with the number %d after %d", n.Number, c.numbers.highest)
	}
	n.Number, n.Intact = next, false
}

// due returns the slots that passed. No noop is expected on a stream that was opened after the request to close, though it may
// deliver noops that earlier streams missed.
func (c *numberCounter) due(passed int64) int64 {
	if c.stream.openedAfterRequest() {
		return 0
	}
	return passed
}

// fillSlots counts the slots of an arrival that raised the highest number by grew. It returns the number of slots that passed.
func (c *numberCounter) fillSlots(at Instant, grew int64) int64 {
	resumed := c.stream.count > 1 && !c.sawNoop && (c.numbers.known || c.Arrived() == 0) // otherwise the service restarted its numbers at 1
	c.numbers.known = true
	if resumed { // the numbers show the losses of the outage, but not empty slots before it
		passed := c.due(c.resumedSlots(at)) + c.silentSlots
		if passed > grew {
			c.markUncertain(at)
		}
		c.slots.resume(at, passed, grew)
		return passed
	}
	passed := c.due(c.passed(at))
	switch {
	case !c.sawNoop && grew > passed: // the phase is still unknown: the numbers show how many slots passed
		c.headStart = grew - passed
		passed = grew
	case grew == 0 && c.headStart > 0: // a number from before the first noop arrived after all
		c.headStart--
		grew = 1
	}
	if passed > grew {
		c.markUncertain(at)
	}
	if passed > 1 && grew == passed && c.sawNoop {
		c.slots.anchor = min(c.slots.anchor, at) // the numbers show that it is the noop of this slot
	}
	ahead := min(c.numbers.missing(), maxJump)
	c.slots.fill(at, passed, grew, int64(ahead), c.inBurst(at), false)
	return passed
}

// markUncertain records that slots before this arrival are still empty.
func (c *numberCounter) markUncertain(at Instant) {
	c.uncertainAt, c.uncertainFrom = at, c.Arrived()+1
}

// resumedSlots is like firstSlots, for a stream that may begin with replayed noops, which fill no slot.
func (c *numberCounter) resumedSlots(at Instant) int64 {
	if at-c.stream.openedAt < c.interval()/4 {
		return 0
	}
	return c.firstSlots(at)
}

// missedSlots returns the number of slots between the last noop and the headers of the next stream.
func (c *numberCounter) missedSlots(at Instant) uint64 {
	return wholeIntervals(at-c.slots.anchor+share(c.interval(), aboutDue), c.interval())
}

func (c *numberCounter) restart(at Instant) {
	c.numberings, c.skipped = max(c.numberings, 1)+1, 0
	c.findAt(KindRestarted, c.numbers.highest, at)
	for _, h := range c.numbers.restart() {
		c.find(h.finding())
	}
}

// settled reports whether a noop has shown when slots of the present stream are due. Noops replayed right after the headers do
// not show it.
func (c *numberCounter) settled() bool {
	return c.sawNoop && (c.stream.count == 1 || c.lastAt-c.stream.openedAt >= c.interval()/4)
}

// streamLost records that the stream was lost and the client reconnects.
func (c *numberCounter) streamLost(at Instant) {
	c.anchorAtHeaders()
	silent := c.emptySlots(at, c.stream.cfg.tolerance())
	if c.settled() {
		silent = wholeIntervals(at-c.slots.anchor-c.stream.cfg.tolerance(), c.interval())
	}
	c.silentSlots += int64(silent) // #nosec G115 -- intervals of one run
}

// close ends the count, as counter.close does. kept is the number of slots of the last outage for which no noop arrived. unknown
// reports whether no later noop shows if these were lost.
func (c *numberCounter) close(end, at Instant, kept uint64) (unknown bool) {
	c.anchorAtHeaders()
	var tail uint64
	hidden := c.Hidden
	if c.settled() {
		tail = c.tail(end)
	} else {
		silent, empty := uint64(c.silentSlots), c.tailWithoutPhase(end) // #nosec G115 -- a count
		if tail = silent; at == end {                                   // otherwise lose has counted the empty slots
			tail += empty
		}
		if !c.stream.openedAfterRequest() {
			c.Hidden += uint32(min(kept-min(kept, silent), math.MaxInt32))
			if c.sawNoop && empty == 0 && c.slots.expected(end, c.interval(), 0) > 0 || at > end {
				c.Hidden++ // one may have been due after the replayed ones
			}
		}
		unknown = c.Hidden > hidden
	}
	if unsent := c.counter.close(end, at, tail); unsent > 0 {
		c.addUnsent(c.uncertainFrom, c.uncertainAt, unsent)
	}
	c.silentSlots = 0
	return unknown
}

func (c *numberCounter) fill(r *Record) {
	c.counter.fill(r)
	r.Last, r.Lost, r.Numberings = c.numbers.highest, c.numbers.lostCount(), int(c.numberings)
}

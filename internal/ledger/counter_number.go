package ledger

import (
	"fmt"
	"math"
	"time"
)

// A numberCounter counts noops by their numbers: 1, 2, 3 … per client. A repeated number is a duplicate, and a number
// that fills a hole is reordered. Slots show noops that the service did not send.
type numberCounter struct {
	counter
	ids        idEvidence
	numberings uint32 // number of sequences that started at 1, or 0 before the first restart
	numbers    numbers
	// firstNumber is the number of the first noop of this numbering, or the number of slots up to it if that is higher.
	firstNumber uint64
	startedAt   Instant // arrival of that noop

	headStart     int64   // numbers by which the first noop of a stream exceeded the passed slots
	skipped       uint64  // numbers skipped by numbered messages other than noops since the last noop
	uncertainAt   Instant // arrival of the last noop before which slots were in doubt
	uncertainFrom uint64  // ordinal of that noop
	silentSlots   int64   // empty slots of lost streams since the last noop
}

// maxJump is the maximum step between two numbers. A number beyond it is not part of a sequence.
const maxJump = 1 << 32

func (c *numberCounter) isSequence() bool {
	return (c.ids.next > 0 || c.ids.gap || c.numbers.highest <= 1) && c.ids.isSequence(c.keepsUp())
}

// keepsUp reports whether at least six slots passed, and the highest number is at least three quarters of their count.
// A service that sometimes repeats a noop keeps up. A service that always sends the same number does not.
func (c *numberCounter) keepsUp() bool {
	slots := c.firstNumber + uint64(nearest(c.lastAt-c.startedAt, c.interval())) // #nosec G115 -- lastAt is not before startedAt
	return slots >= 6 && 4*c.numbers.highest >= 3*slots
}

// isPlausible reports whether the first number of a stream fits a client whose numbers start at 1.
func (c *numberCounter) isPlausible(at Instant, number uint64) bool {
	return number > 0 && number <= c.numbers.highest+2+wholeIntervals(at-c.stream.openedAt, c.interval())
}

func (c *numberCounter) numberedEvent(at Instant, number uint64) {
	if number == 0 || number > c.numbers.highest+maxJump {
		return
	}
	switch s := c.numbers.record(number, at); s.placement {
	case inOrder:
		c.fault().Messages++
		c.skipped += s.growth - 1
	case filled:
		c.fault().Messages++
		c.fault().Reordered++
		c.findAt(KindReordered, number, at)
	case repeated:
		c.fault().Duplicated++
		c.findAt(KindDuplicated, number, at)
	}
}

func (c *numberCounter) noop(n *Noop) (delta Delta) {
	if n.Number == 0 || n.Number > c.numbers.highest+1+maxJump {
		c.assumeNext(n)
	}
	if !c.hasMessage && c.stream.count > 1 && n.Number == 1 && c.numbers.highest > 1 {
		c.restart(n.At)
	}
	known, result := c.numbers.known, c.numbers.record(n.Number, n.At)
	growth := result.growth
	if result.placement == repeated {
		if c.hasMessage && n.At-c.slots.anchor >= c.interval()/2 {
			c.ids.stale++
		}
		c.fault().Duplicated++
		c.findAt(KindDuplicated, n.Number, n.At)
		delta.duplicated = true
		return delta
	}
	gap, uncertain := n.At-c.lastAt, c.slots.balance > 0
	if !known {
		c.firstNumber, c.startedAt = max(n.Number, uint64(c.firstSlots(n.At))), n.At // #nosec G115 -- firstSlots is not negative
	}
	next := result.placement == inOrder && growth == 1
	leap := result.placement == inOrder && growth > 1 && c.aheadOfClock(n)
	if result.placement == inOrder {
		growth, c.skipped = growth+c.skipped, 0
	}
	passed, measured := c.fillSlots(n.At, int64(growth)), c.measures(n.At) // #nosec G115 -- numbers grow by less than 1<<63
	c.recordGap(n.At, gap)
	delta.Counted, c.hasMessage, c.silentSlots = true, true, 0
	c.count(n)
	if result.placement == filled {
		delta.filled = true
		if n.At-result.skippedAt >= 2*c.interval() {
			c.ids.stale++ // a number that arrives so late is as suspicious as a repeated one
		} else {
			c.ids.removeLeap()
		}
		c.fault().Reordered++
		c.findAt(KindReordered, n.Number, n.At)
		return delta
	}
	if measured && c.stream.closeRequestedAt == 0 {
		c.checkGap(n.At - c.pace.last)
		c.pace.step(n.At, c.intervalsUpTo(n.At, int64(growth)), c.interval()) // #nosec G115 -- numbers grow by less than 1<<63
	}
	switch {
	case leap:
		c.ids.leaps++
	case next && known:
		c.ids.addNext()
	case known:
		c.ids.gap = true
	}
	if uncertain && passed == 0 && growth == 1 {
		c.addLateness(&delta, n.Number, n.At, c.delayOf(n.At))
	} else {
		c.addLateness(&delta, n.Number, n.At, gap-time.Duration(growth)*c.interval()) // #nosec G115 -- numbers grow by less than 1<<63
	}
	return delta
}

// intervalsUpTo returns how many intervals passed since the last noop according to the growth of the numbers. If other
// messages share the numbers, a skipped number may belong to one of them. intervalsUpTo then returns at most the number
// of intervals in the gap.
func (c *numberCounter) intervalsUpTo(at Instant, growth int64) int64 {
	if c.faults == nil || c.faults.Messages == 0 {
		return growth
	}
	return min(growth, max(nearest(at-c.pace.last, c.interval()), 1))
}

// aheadOfClock reports whether the numbers since firstNumber exceed the passed slots plus Counts.Messages.
func (c *numberCounter) aheadOfClock(n *Noop) bool {
	slots := uint64(nearest(n.At-c.startedAt, c.interval())) // #nosec G115 -- a message is not before startedAt
	messages := uint64(0)
	if c.faults != nil {
		messages = c.faults.Messages
	}
	return n.Number > c.firstNumber+slots+messages
}

// assumeNext assigns the next number to a noop without a valid number. The noop counts as corrupted, and as evidence
// against the ids.
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
		n.Data = "it has no number"
	} else {
		n.Data = fmt.Sprintf("its number is %d, but the highest number before it was %d", n.Number, c.numbers.highest)
	}
	n.Number, n.Intact, n.source = next, false, SourceNumber
}

// due returns the number of passed slots in which a noop was expected: 0 on a stream that opened after the request to
// end.
func (c *numberCounter) due(passed int64) int64 {
	if c.stream.openedAfterRequest() {
		return 0
	}
	return passed
}

// fillSlots counts the slots of an arrival that increased the highest number by growth, and returns how many passed.
func (c *numberCounter) fillSlots(at Instant, growth int64) int64 {
	// If numbers are unknown after an arrival, the service restarted them at 1.
	resumed := c.stream.count > 1 && !c.hasMessage && (c.numbers.known || c.Arrived() == 0)
	c.numbers.known = true
	if resumed { // the numbers show the losses of the outage, but not empty slots before the outage
		passed := c.due(c.resumedSlots(at)) + c.silentSlots
		if passed > growth {
			c.markUncertain(at)
		}
		c.slots.resume(at, passed, growth)
		return passed
	}
	passed := c.due(c.passedSlots(at))
	switch {
	case !c.hasMessage && growth > passed: // the schedule is still unknown: the numbers show how many slots passed
		c.headStart = growth - passed
		passed = growth
	case growth == 0 && c.headStart > 0: // a noop with a lower number than the first noop arrived after it
		c.headStart--
		growth = 1
	}
	if passed > growth {
		c.markUncertain(at)
	}
	if passed > 1 && growth == passed && c.hasMessage {
		c.slots.anchor = min(c.slots.anchor, at) // the numbers show that this is the noop of the slot
	}
	ahead := min(c.numbers.missing(), maxJump)
	c.slots.fill(at, passed, growth, int64(ahead), c.inBurst(at), false)
	return passed
}

func (c *numberCounter) markUncertain(at Instant) {
	c.uncertainAt, c.uncertainFrom = at, c.Arrived()+1
}

// resumedSlots is firstSlots for a stream that may start with replayed noops, which have no slot.
func (c *numberCounter) resumedSlots(at Instant) int64 {
	if at-c.stream.openedAt < c.interval()/4 {
		return 0
	}
	return c.firstSlots(at)
}

// missedSlots returns the number of slots between the last noop and the headers of the next stream.
func (c *numberCounter) missedSlots(at Instant) uint64 {
	return wholeIntervals(at-c.slots.anchor+share(c.interval(), duePrecision), c.interval())
}

// restart records that the server restarted its numbers at 1. The holes so far become findings.
func (c *numberCounter) restart(at Instant) {
	c.numberings, c.skipped = max(c.numberings, 1)+1, 0
	c.findAt(KindRestarted, c.numbers.highest, at)
	for _, h := range c.numbers.restart() {
		c.find(h.finding())
	}
}

// knowsSchedule reports whether a noop that was not replayed has shown when slots of the present stream are due.
func (c *numberCounter) knowsSchedule() bool {
	return c.hasMessage && (c.stream.count == 1 || c.lastAt-c.stream.openedAt >= c.interval()/4)
}

// streamLost counts the slots of the lost stream that stayed empty since the last noop.
func (c *numberCounter) streamLost(at Instant) {
	c.anchorAtHeaders()
	silent := c.emptySlots(at, c.stream.cfg.tolerance())
	if c.knowsSchedule() {
		silent = wholeIntervals(at-c.slots.anchor-c.stream.cfg.tolerance(), c.interval())
	}
	c.silentSlots += int64(silent) // #nosec G115 -- intervals of one run
}

// close ends the count like counter.close. replayable is the number of noops of the last outage that the service may
// still replay. unknown reports whether losses are undetectable because no noop has shown the schedule.
func (c *numberCounter) close(end, at Instant, replayable uint64) (unknown bool) {
	c.anchorAtHeaders()
	var tail uint64
	undetectable := c.Undetectable
	if c.knowsSchedule() {
		tail = c.tail(end)
	} else {
		silent, empty := uint64(c.silentSlots), c.tailWithoutSchedule(end) // #nosec G115 -- a count
		if tail = silent; at == end {                                      // otherwise streamLost has counted these slots
			tail += empty
		}
		if !c.stream.openedAfterRequest() {
			c.Undetectable += uint32(min(replayable-min(replayable, silent), math.MaxInt32))
			if c.hasMessage && empty == 0 && c.slots.expected(end, c.interval(), 0) > 0 || at > end {
				c.Undetectable++ // a noop may have been due after the replayed ones
			}
		}
		unknown = c.Undetectable > undetectable
	}
	if unsent := c.counter.close(end, at, tail); unsent > 0 {
		c.addUnsent(c.uncertainFrom, c.uncertainAt, unsent)
	}
	c.silentSlots = 0
	return unknown
}

func (c *numberCounter) faultCount() uint64 { return c.counter.faultCount() + c.numbers.lostCount() }

func (c *numberCounter) fill(r *Record) {
	c.counter.fill(r)
	r.Last, r.Lost, r.Numberings = c.numbers.highest, c.numbers.lostCount(), int(c.numberings)
}

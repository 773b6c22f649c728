package ledger

import "time"

// A Noop is one received noop.
type Noop struct {
	At      Instant
	Number  uint64 // number at message.seq, or 0 if there is none
	OtherID bool   // the value at message.seq is not a valid number
	Intact  bool   // the data matches the description
	Data    string // data of a corrupted noop, for the finding; may be truncated
	source  Source // source of the finding; if it is SourceNumber, Data is the reason
}

// A Delta is the change that one message makes to the counts, for sums over all clients.
type Delta struct {
	Counted bool // the message is counted as received or as corrupted, not as a copy
	// duplicated and repeated report whether the message is counted as a copy, and of which kind; see Counts.
	duplicated, repeated bool
	filled               bool // the message arrived after one with a higher number
	// Faults is the number of missing, duplicated, reordered and corrupted messages that this arrival shows. A message
	// that was counted as missing is not counted again if it arrives out of order.
	Faults uint64
	// Lateness lists the lateness of up to two messages. Without numbers, only the next arrival shows whether a long gap
	// was lateness or a loss.
	Lateness      [2]time.Duration
	LatenessCount int // number of elements of Lateness that are set
	Late          int // number of these elements above Config.LatenessLimit
}

// Noop counts one noop, by interval and by number. It returns the Delta of the count that the record uses; see
// numbersDecide.
//
// On systems without epoll, thousands of reading goroutines call Noop deep in their stacks. Rare cases are in functions
// that are not inlined, so that the common case fits into the initial stack of a goroutine.
func (l *Ledger) Noop(n Noop) Delta {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.clock.Arrived() == 0 {
		l.checkFirst(&n)
	}
	faultsBefore := l.clock.faultCount()
	delta := l.clock.noop(&n)
	delta.Faults = l.clock.faultCount() - faultsBefore
	c := l.byNumber
	if c == nil {
		l.cutMessage(n.At, 0, &delta)
		return delta
	}
	if n.OtherID {
		n.Number = 0
	}
	faultsBefore = c.faultCount()
	byNumber := c.noop(&n)
	byNumber.Faults = c.faultCount() - faultsBefore
	l.cutMessage(n.At, n.Number, &byNumber)
	if c.ids.isDisproved() {
		l.byNumber = nil
		l.classify(otherIDs)
	} else {
		l.classify(l.presentClass())
	}
	if l.extra != nil && l.extra.replayable > 0 {
		l.replayed(n.At, byNumber.Counted)
	}
	if l.numbersDecide() {
		return byNumber
	}
	return delta
}

// NumberedEvent counts a numbered event that is not a noop. Such an event uses a number, but no slot. NumberedEvent
// ignores an event without a number, and an event with an implausible number before the first noop.
func (l *Ledger) NumberedEvent(at Instant, number uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.byNumber; c != nil && number > 0 && (l.clock.Arrived() > 0 || c.isPlausible(at, number)) {
		c.numberedEvent(at, number)
	}
}

package ledger

import "time"

// A Noop is what the wire said of one noop.
type Noop struct {
	At      Instant
	Number  uint64 // of its `id:`, 0 where it has none that is a number
	OtherID bool   // it has an id that is no number
	Intact  bool   // its data was exactly `0`
	Data    string // what it was otherwise, for the finding; may be cut short
}

// An Arrival is what the ledger made of a noop, for sums over all connections.
type Arrival struct {
	Counted bool // a distinct noop: received, or corrupted
	// Lateness is how late up to two noops were, at least 0. There may be two because, without numbers,
	// only the next arrival shows whether a long gap was lateness or a loss.
	Lateness [2]time.Duration
	N        int // how many of Lateness are set
	Late     int // how many of them were over the limit
}

// Noop counts one noop, by the clock and by number.
//
// It is called deep in the stack of each reading goroutine, of which there may be many thousand. What
// is rare is in functions that are not inlined, so that the common case fits into the few KB of stack
// that a goroutine begins with.
func (l *Ledger) Noop(n Noop) Arrival {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.clock.Arrived() == 0 {
		l.believe(&n)
	}
	a := l.clock.noop(&n)
	c := l.byNumber
	if c == nil {
		l.cutBrought(n.At, 0, false, false)
		return a
	}
	if n.OtherID {
		n.Number = 0
	}
	before := c.twice()
	byNumber := c.noop(&n)
	l.cutBrought(n.At, n.Number, c.twice()[0] > before[0], false)
	if c.ids.hopeless(&c.oddities().against) {
		l.byNumber = nil
		l.say(another)
	} else {
		l.say(l.opinion())
	}
	if l.rec.rare != nil && l.rec.rare.kept > 0 {
		l.replayed(n.At, byNumber.Counted)
	}
	if l.numbersDecide() {
		return byNumber
	}
	return a
}

// Message counts a numbered event that is no noop: it uses a number, but no slot.
func (l *Ledger) Message(at Instant, number uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.byNumber; c != nil && number > 0 && (l.clock.Arrived() > 0 || c.plausible(at, number)) {
		c.message(at, number)
	}
}

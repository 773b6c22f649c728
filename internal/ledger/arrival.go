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
	b := l.byNumber
	if b == nil {
		return a
	}
	if n.OtherID {
		n.Number = 0
	}
	byNumber := b.noop(&n)
	if b.ids.hopeless() {
		l.byNumber, l.foreignIDs = nil, true
	}
	l.say()
	if _, ok := l.decides(); ok {
		return byNumber
	}
	return a
}

// believe decides by the first noop whether the ids can number the noops of this connection.
func (l *Ledger) believe(n *Noop) {
	if b := l.byNumber; b != nil && (n.OtherID || !b.plausible(n.At, n.Number)) {
		l.byNumber, l.foreignIDs = nil, n.OtherID || n.Number > 0
		l.say()
	}
}

// Message counts a numbered event that is no noop: it uses a number, but no slot.
func (l *Ledger) Message(at Instant, number uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.byNumber; b != nil && number > 0 && (l.clock.Arrived() > 0 || b.plausible(at, number)) {
		b.message(at, number)
	}
}

// decides is the count that the record shows: by number, if the whole stream looks like a sequence and
// most streams of the runner do not say otherwise; else by the clock. The other streams have a say because
// random ids look like a sequence on a stream or two of many.
func (l *Ledger) decides() (b *numberBook, byNumber bool) {
	b = l.byNumber
	return b, b != nil && l.clock.Arrived() > 0 && b.sequence() && l.cfg.sequences.Load() >= l.cfg.others.Load()
}

// An opinion is what a stream takes the service's ids for.
type opinion int8

const (
	unknown opinion = iota // it has no ids yet, or too few
	sequence
	another
)

// say tells the other streams of the runner what this one takes the ids for.
func (l *Ledger) say() {
	is := unknown
	switch b := l.byNumber; {
	case b != nil && b.sequence():
		is = sequence
	case b != nil && l.clock.Arrived() > 0 || l.foreignIDs:
		is = another
	}
	if is == l.says {
		return
	}
	l.count(l.says, -1)
	l.count(is, +1)
	l.says = is
}

func (l *Ledger) count(o opinion, n int64) {
	switch o {
	case sequence:
		l.cfg.sequences.Add(n)
	case another:
		l.cfg.others.Add(n)
	case unknown:
	}
}

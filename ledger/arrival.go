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

// An Arrival says what the ledger made of a noop, for those who keep sums over connections.
type Arrival struct {
	Counted bool // a distinct noop: received, or corrupted
	// Lateness is how long after its time a noop came, at least 0, of up to two noops: where they
	// have no numbers, only the next arrival tells whether a long gap was lateness or a loss.
	Lateness [2]time.Duration
	N        int // how many of Lateness are set
	Late     int // how many of them were over the limit
}

// Noop enters one noop into both books.
//
// It is called at the bottom of the stack of each reading goroutine, of which there may be many
// thousand: what is rare here stands in functions that are not inlined, so that the common way
// fits into the few KB that a goroutine begins with.
func (l *Ledger) Noop(n Noop) Arrival {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.clock.noops() == 0 {
		l.believe(&n)
	}
	byClock := n
	a := l.clock.noop(&byClock)
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

// believe decides by the first noop whether ids can be numbers of this connection.
func (l *Ledger) believe(n *Noop) {
	if b := l.numbers(); b != nil && (n.OtherID || !b.plausible(n.At, n.Number)) {
		l.byNumber, l.foreignIDs = nil, n.OtherID || n.Number > 0
		l.say()
	}
}

// Message enters a numbered event that is no noop: it takes a number, but no slot.
func (l *Ledger) Message(at Instant, number uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if number == 0 || l.byNumber == nil && l.clock.noops() > 0 {
		return
	}
	if b := l.numbers(); b != nil && (l.clock.noops() > 0 || b.plausible(at, number)) {
		b.message(at, number)
	}
}

// numbers is the book of the numbers, nil where ids are known to be none.
func (l *Ledger) numbers() *numberBook {
	if l.byNumber == nil && !l.foreignIDs {
		l.byNumber = &numberBook{book: book{life: &l.life}}
		l.byNumber.opened(l.openedAt)
	}
	return l.byNumber
}

// decides is the book that the account rests on: the numbers, where the whole stream agrees that
// they are a sequence, and the other streams of the run do not disagree; else the clock. What ids are
// is a matter of the service: random ones look like a sequence on a stream or two of many.
func (l *Ledger) decides() (b *numberBook, byNumber bool) {
	b = l.byNumber
	return b, b != nil && l.clock.noops() > 0 && b.sequence() && l.cfg.sequences.Load() >= l.cfg.others.Load()
}

// An opinion is what a stream says of the service's ids.
type opinion int8

const (
	unknown opinion = iota // it has none, or too few
	sequence
	another
)

// say tells the other streams what this one takes the ids for.
func (l *Ledger) say() {
	is := unknown
	switch b := l.byNumber; {
	case b != nil && b.sequence():
		is = sequence
	case b != nil || l.foreignIDs:
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

package ledger

// believe stops counting by number if the first noop shows that the ids do not number the noops of this connection.
func (l *Ledger) believe(n *Noop) {
	if c := l.byNumber; c != nil && (n.OtherID || !c.plausible(n.At, n.Number)) {
		if l.byNumber = nil; n.OtherID || n.Number > 0 {
			l.say(another)
		}
	}
}

// numbersDecide says which counter the record shows: by number, if the whole stream looks like a sequence and
// most streams of the runner do not say otherwise; else by the clock. The other streams have a say because
// random ids look like a sequence on a stream or two of many.
func (l *Ledger) numbersDecide() bool {
	c := l.byNumber
	return c != nil && l.clock.Arrived() > 0 && c.sequence() && l.cfg.sequences.Load() >= l.cfg.others.Load()
}

func (l *Ledger) counterOf(byNumber bool) *counter {
	if byNumber {
		return &l.byNumber.counter
	}
	return &l.clock.counter
}

// An opinion is what a stream takes the service's ids for.
type opinion int8

const (
	unknown opinion = iota // it has no ids yet, or too few
	sequence
	another
)

// opinion is that of a stream which is counted by number.
func (l *Ledger) opinion() opinion {
	switch {
	case l.byNumber.sequence():
		return sequence
	case l.clock.Arrived() > 0:
		return another
	default:
		return unknown
	}
}

// say updates the runner's totals of streams that take the ids for a sequence, and of those that do not.
func (l *Ledger) say(is opinion) {
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

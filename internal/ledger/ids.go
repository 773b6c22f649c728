package ledger

// ids is the evidence on whether the ids of this connection are a sequence: 1, 2, 3 …, one per interval. Other ids look like a
// sequence for a while: a counter over all devices in its first values, a constant once. So every noop and the clock are evidence,
// not only the first noop.
type ids struct {
	next    uint32 // noops whose number is one more than the highest before
	gap     bool   // numbers were skipped while the clock saw slots pass for them
	decided bool   // there are enough of next that repeated numbers cannot change the decision

	// Evidence against a sequence:
	leaps    uint32 // numbers skipped, though the clock saw no slot pass for them
	stale    uint32 // numbers that repeat or are overdue, in a new slot
	missing  uint32 // noops without an id, though others have one
	nonDigit uint32 // ids that are not numbers
}

// decidingNoops is the number of noops in sequence, in addition to those that repeat a number, from which ids are a
// sequence. Only leaps can still change that: a counter that other devices use, too, begins like a sequence.
const decidingNoops = 5

func (i *ids) addNext() {
	i.next++
	i.decided = i.decided || i.next >= decidingNoops+i.stale
}

// fill removes the leap over a number that arrived after all, since noops may be swapped. A number that arrives long after it was
// skipped is as suspicious as one that repeats.
func (i *ids) fill(longAfter bool) {
	if longAfter {
		i.stale++
		return
	}
	i.leaps -= min(i.leaps, 1)
}

// sequence reports whether the ids are a sequence. One noop in five may contradict: that happens when messages that use numbers
// are lost. Ids that are not numbers weigh more, because hexadecimal ids begin with nine in sequence.
func (i *ids) sequence(keepsUp bool) bool {
	return i.next >= 4*(i.leaps+i.missing)+16*i.nonDigit && (i.decided || i.stale < max(i.next, 1) || keepsUp && i.leaps == 0)
}

// hopeless reports whether these ids can no longer become a sequence.
func (i *ids) hopeless() bool {
	contradictions := i.leaps + i.missing + i.nonDigit
	return contradictions >= 16 && i.next < contradictions
}

// An idClass is how a stream counts in the runner's totals of ids.
type idClass int8

const (
	unknownIDs  idClass = iota // no ids yet, or too few
	sequenceIDs                // the ids are a sequence
	otherIDs                   // they are not
)

// checkFirst stops counting by number if the first noop shows that the ids do not number the noops of this connection.
func (l *Ledger) checkFirst(n *Noop) {
	if c := l.byNumber; c != nil && (n.OtherID || !c.plausible(n.At, n.Number)) {
		if l.byNumber = nil; n.OtherID || n.Number > 0 {
			l.classify(otherIDs)
		}
	}
}

// numbersDecide reports whether the record shows the count by number. It does if the whole stream looks like a sequence, and most
// streams of the runner do not contradict: random ids look like a sequence on a stream or two of many. Otherwise it shows the count
// by interval.
func (l *Ledger) numbersDecide() bool {
	c, cfg := l.byNumber, l.stream.cfg
	return c != nil && l.clock.Arrived() > 0 && c.sequence() && cfg.sequences.Load() >= cfg.otherStreams.Load()
}

func (l *Ledger) counterOf(byNumber bool) *counter {
	if byNumber {
		return &l.byNumber.counter
	}
	return &l.clock.counter
}

// presentClass returns the class of a stream that is counted by number.
func (l *Ledger) presentClass() idClass {
	switch {
	case l.byNumber.sequence():
		return sequenceIDs
	case l.clock.Arrived() > 0:
		return otherIDs
	default:
		return unknownIDs
	}
}

// classify updates the runner's totals of streams by class.
func (l *Ledger) classify(class idClass) {
	if class == l.stream.idClass {
		return
	}
	l.stream.cfg.countClass(l.stream.idClass, -1)
	l.stream.cfg.countClass(class, +1)
	l.stream.idClass = class
}

func (c *Config) countClass(class idClass, n int64) {
	switch class {
	case sequenceIDs:
		c.sequences.Add(n)
	case otherIDs:
		c.otherStreams.Add(n)
	case unknownIDs:
	}
}

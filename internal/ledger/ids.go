package ledger

// idEvidence counts the evidence for and against a sequence of ids: 1, 2, 3 …, one per interval. Other ids, such as a
// counter over all clients, may look like a sequence at first.
type idEvidence struct {
	next    uint32 // noops whose number is the previous highest number plus one
	gap     bool   // numbers were skipped while as many slots passed
	decided bool   // next is so high that stale numbers cannot change the decision

	// The following fields are evidence against a sequence.
	leaps    uint32 // steps to a number that is too high for the slots that passed
	stale    uint32 // numbers that repeat or are overdue, in a new slot
	missing  uint32 // noops without an id or with a number beyond maxJump, although other noops have a valid one
	nonDigit uint32 // ids that are not numbers
}

// decidingNoops is the excess of noops in sequence over stale ones at which stale numbers no longer change the
// decision. Other contradictions still do, because a counter over all clients starts like a sequence.
const decidingNoops = 5

func (i *idEvidence) addNext() {
	i.next++
	i.decided = i.decided || i.next >= decidingNoops+i.stale
}

// removeLeap removes the leap over a number that arrived later, because noops may be swapped.
func (i *idEvidence) removeLeap() { i.leaps -= min(i.leaps, 1) }

// isSequence reports whether the ids are a sequence. One noop in five may contradict, because lost numbered messages
// cause leaps. Ids that are not numbers weigh more: hexadecimal ids start with nine numbers in sequence.
func (i *idEvidence) isSequence(keepsUp bool) bool {
	return i.next >= 4*(i.leaps+i.missing)+16*i.nonDigit && (i.decided || i.stale < max(i.next, 1) || keepsUp && i.leaps == 0)
}

func (i *idEvidence) isDisproved() bool {
	contradictions := i.leaps + i.missing + i.nonDigit
	return contradictions >= 16 && i.next < contradictions
}

type idClass int8

const (
	unknownIDs idClass = iota // too few ids so far
	sequenceIDs
	otherIDs
)

// checkFirst stops the count by number if the first noop shows that the ids do not number the noops of this client.
func (l *Ledger) checkFirst(n *Noop) {
	if c := l.byNumber; c != nil && (n.OtherID || !c.isPlausible(n.At, n.Number)) {
		if l.byNumber = nil; n.OtherID || n.Number > 0 {
			l.classify(otherIDs)
		}
	}
}

// numbersDecide reports whether the record uses the count by number. At least half of the runner's classified
// clients must also have a sequence. The random ids of a few clients may look like one.
func (l *Ledger) numbersDecide() bool {
	c, cfg := l.byNumber, l.stream.cfg
	return c != nil && l.clock.Arrived() > 0 && c.isSequence() && cfg.sequences.Load() >= cfg.nonSequences.Load()
}

func (l *Ledger) counterOf(byNumber bool) *counter {
	if byNumber {
		return &l.byNumber.counter
	}
	return &l.clock.counter
}

func (l *Ledger) presentClass() idClass {
	switch {
	case l.byNumber.isSequence():
		return sequenceIDs
	case l.clock.Arrived() > 0:
		return otherIDs
	default:
		return unknownIDs
	}
}

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
		c.nonSequences.Add(n)
	case unknownIDs:
	}
}

package ledger

// ids is the evidence on whether the ids of this connection are a sequence: 1, 2, 3 …, one per interval.
// Other ids look like a sequence for a while: a counter over all devices in its first values, a constant
// once. So every noop and the clock are evidence, not only the first noop.
type ids struct {
	next  uint32 // one more than the highest before
	gap   bool   // numbers were skipped while the clock saw slots pass for them
	known bool   // so many in sequence that repeated numbers cannot undo it
}

// against is what speaks against a sequence. Few streams have any.
type against struct {
	leap  uint32 // numbers skipped, though the clock saw no slot pass for them
	stale uint32 // a number that was there before, or should have been, came in a new slot
	bare  uint32 // no id, though others have one
	words uint32 // an id that is no number
}

// enough noops in sequence, beyond those that repeat a number, settle that ids are a sequence. Only leaps
// can still undo it: a counter that other devices use, too, begins like a sequence.
const enough = 5

func (i *ids) sawNext(a *against) {
	i.next++
	i.known = i.known || i.next >= enough+a.stale
}

// filled takes back the leap over a number that came after all, since noops may be swapped. A number that
// comes long after it was skipped is as suspicious as one that comes again.
func (a *against) filled(longAfter bool) {
	if longAfter {
		a.stale++
		return
	}
	a.leap -= min(a.leap, 1)
}

// sequence says whether the ids are a sequence. One noop in five may contradict: that happens when messages
// that use up numbers are lost. Ids that are no numbers weigh more, because hexadecimal ids begin with nine
// in sequence.
func (i *ids) sequence(a *against, keepsUp bool) bool {
	return i.next >= 4*(a.leap+a.bare)+16*a.words && (i.known || a.stale < max(i.next, 1) || keepsUp && a.leap == 0)
}

// hopeless says that nothing can make these ids a sequence any more.
func (i *ids) hopeless(a *against) bool {
	against := a.leap + a.bare + a.words
	return against >= 16 && i.next < against
}

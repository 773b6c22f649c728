package ledger

// ids is the evidence on whether the ids of this connection are a sequence: 1, 2, 3 …, one per interval.
// Other ids look like a sequence for a while: a counter over all devices in its first values, a constant
// once. So every noop and the clock are evidence, not only the first noop.
type ids struct {
	next  uint32 // one more than the highest before
	leap  uint32 // numbers skipped, though the clock saw no slot pass for them
	stale uint32 // a number that was there before, or should have been, came in a new slot
	bare  uint32 // no id, though others have one
	words uint32 // an id that is no number
	gap   bool   // numbers were skipped while the clock saw slots pass for them
	known bool   // so many in sequence that repeated numbers cannot undo it
}

// enough noops in sequence, beyond those that repeat a number, settle that ids are a sequence. Only leaps
// can still undo it: a counter that other devices use, too, begins like a sequence.
const enough = 5

func (i *ids) sawNext() {
	i.next++
	i.known = i.known || i.next >= enough+i.stale
}

// filled takes back the leap over a number that came after all, since noops may be swapped. A number that
// comes long after it was skipped is as suspicious as one that comes again.
func (i *ids) filled(longAfter bool) {
	if longAfter {
		i.stale++
		return
	}
	i.leap -= min(i.leap, 1)
}

// sequence says whether the ids are a sequence. One noop in five may contradict: that happens when messages
// that use up numbers are lost. Ids that are no numbers weigh more, because hexadecimal ids begin with nine
// in sequence.
func (i *ids) sequence(keepsUp bool) bool {
	return i.next >= 4*(i.leap+i.bare)+16*i.words && (i.known || i.stale < max(i.next, 1) || keepsUp && i.leap == 0)
}

// hopeless says that nothing can make these ids a sequence any more.
func (i *ids) hopeless() bool {
	against := i.leap + i.bare + i.words
	return against >= 16 && i.next < against
}

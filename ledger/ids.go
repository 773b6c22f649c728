package ledger

// ids is the evidence for ids that are a sequence of this connection: 1, 2, 3 … one for each
// interval. Ids of other kinds look like one for a while: a counter over all devices does in its
// first values, a constant does once. So the guess that the first noop allows is held against
// every later one, and against the clock.
type ids struct {
	next  uint64 // one more than the highest before
	gap   bool   // numbers were skipped while the clock saw slots pass for them
	leap  uint64 // numbers skipped, though the clock saw no slot pass for them
	stale uint64 // a number that was there before, or should have been, came in a new slot
	bare  uint64 // no id, though others have one
	words uint64 // an id that is no number
	known bool   // so many in sequence that a server which repeats itself cannot undo it
}

// enough is how many more noops in sequence than against it make ids a sequence for good, but
// for leaps: only a counter that others use as well begins like a sequence.
const enough = 5

func (i *ids) sawNext() {
	i.next++
	i.known = i.known || i.next >= enough+i.stale
}

// filled takes back the leap over a hole that was no hole. Noops may be swapped; one that comes
// long after the hole was made is as odd as one that comes again.
func (i *ids) filled(longAfter bool) {
	i.leap -= min(i.leap, 1)
	if longAfter {
		i.stale++
	}
}

// sequence says whether the numbers decide. One noop in five may contradict: a server that loses
// messages which take a number looks like that. Ids that are no numbers weigh more: hexadecimal ones
// begin with nine in sequence.
func (i *ids) sequence() bool {
	return i.next >= 4*(i.leap+i.bare)+16*i.words && (i.known || i.stale == 0 || i.stale < i.next)
}

// hopeless says that nothing will make these ids a sequence again.
func (i *ids) hopeless() bool {
	against := i.leap + i.bare + i.words
	return against >= 16 && i.next < against
}

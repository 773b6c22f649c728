package feed

import (
	"slices"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

// A Correction is the record of one client in the numbers of the feed.
type Correction struct {
	Record *ledger.Record
	// CertainFrom has, for each stream, the time from which its place is known and messages are expected. 0 means the
	// start of the stream.
	CertainFrom []ledger.Instant
	// Uncertain is set if it is unknown which messages the client received, because content repeats.
	Uncertain bool
}

// Correct returns the record of a client with numbers of the feed and corrected faults. log is the index of the client's
// log.
func (f *Feed) Correct(log int, r *ledger.Record) Correction {
	certainFrom, raw := make([]ledger.Instant, len(r.Spans)), r
	r = repairRecord(f.logs[log], r, f.Repeats)
	if !f.certifies() && f.sameNumbers[log] && r.Deviations == nil {
		f.delay(log, certainFrom, r.Spans)
		return Correction{Record: r, CertainFrom: certainFrom}
	}
	c := correction{Feed: f, log: log, raw: raw, source: r, record: *r, certainFrom: certainFrom}
	c.record.Findings, c.record.Cuts = slices.Clone(r.Findings), r.Cuts.Clone()
	c.countRepeats()
	c.countCopies()
	c.permitCopies()
	c.countDisorder()
	c.renumber()
	uncertain := f.certifies() && !c.certify()
	f.delay(log, certainFrom, r.Spans)
	return Correction{Record: &c.record, CertainFrom: certainFrom, Uncertain: uncertain}
}

type correction struct {
	*Feed
	log             int
	raw             *ledger.Record // by the numbers of the log
	source          *ledger.Record // raw with the simplest explanation of its deviations
	record          ledger.Record
	certainFrom     []ledger.Instant // see Correction
	receivedNumbers []uint64         // feed numbers of received messages that are extras of the log, or changed
	findings        []ledger.Finding // with feed numbers
}

// numberOf returns the feed number of an entry of the log, or 0 for a copy, a changed message or an unknown entry.
func (c *correction) numberOf(local uint64) uint64 {
	if local == 0 || local > uint64(len(c.ids[c.log])) {
		return 0
	}
	return uint64(c.nodes[c.ids[c.log][local-1]].number)
}

// countRepeats counts repeats as received instead of as copies if they are messages of the feed. It counts the unlisted
// deviations as undetectable losses.
func (c *correction) countRepeats() {
	d := c.source.Deviations
	if d == nil {
		return
	}
	for _, a := range d.Repeats {
		number := uint64(c.nodes[c.extras[c.log][a.Extra]].number)
		if number == 0 || slices.Contains(c.receivedNumbers, number) {
			continue
		}
		c.receivedNumbers = append(c.receivedNumbers, number)
		countAsReceived(&c.record, a, c.Repeats)
	}
	c.record.Undetectable += d.Unlisted
}

// countCopies counts received entries that are copies or changed messages as such, instead of as received.
func (c *correction) countCopies() {
	for _, n := range c.unnumbered[c.log] {
		if !c.source.HasReceived(n) {
			continue
		}
		c.record.Received--
		e := &c.logs[c.log].Entries[n-1]
		other, changed := c.originals[c.ids[c.log][n-1]]
		if c.Repeats && !changed || changed && c.isUncertain(e.At) {
			c.record.Repeated++
			continue
		}
		if changed {
			c.change(uint64(c.nodes[other].number), n)
			continue
		}
		c.record.Duplicated++
		c.record.Cuts.CountCopies(e.At, 1)
		c.record.AddFinding(ledger.Finding{Kind: ledger.KindDuplicated, From: c.original(e.Print, n), At: e.At})
	}
}

// permitCopies counts copies right after the start of a stream as repeated if content repeats.
func (c *correction) permitCopies() {
	c.record.Findings = slices.DeleteFunc(c.record.Findings, func(f ledger.Finding) bool {
		if f.Kind != ledger.KindDuplicated || !c.isUncertain(f.At) {
			return false
		}
		c.record.Duplicated--
		c.record.Repeated++
		return true
	})
}

// change counts entry n of the log as corrupted, because it arrived in place of the message with the given feed number.
func (c *correction) change(number, n uint64) {
	c.record.Corrupted++
	c.receivedNumbers = append(c.receivedNumbers, number)
	c.findings = append(c.findings, ledger.Finding{Kind: ledger.KindCorrupted, From: number, At: c.logs[c.log].Entries[n-1].At, Note: changedNote})
}

const changedNote = "other clients received different content"

// original returns the last entry of the log before n with the same content that is a message of the feed, or 0.
func (c *correction) original(print, n uint64) uint64 {
	for n--; n > 0; n-- {
		if c.logs[c.log].Entries[n-1].Print == print && c.numberOf(n) > 0 {
			return n
		}
	}
	return 0
}

// countDisorder counts the messages that arrived after a message with a higher number. It omits messages whose place is
// uncertain. If messages may arrive in any order, it counts none.
func (c *correction) countDisorder() {
	if c.AnyOrder {
		return
	}
	for w := range c.disorders {
		highest := uint64(0)
		sequence := c.sequence(w, c.log, c.source)
		for i, number := range c.numbersOf(sequence) {
			n := sequence[i]
			if number == 0 {
				continue
			}
			if number < highest && !c.isUncertain(c.arrival(n)) {
				c.record.Reordered++
				c.record.AddFinding(ledger.Finding{Kind: ledger.KindReordered, From: n, At: c.arrival(n)})
			}
			highest = max(highest, number)
		}
	}
}

// numbersOf returns feed numbers in the order of arrival. The numbers of messages with the same content ascend.
func (c *correction) numbersOf(sequence []uint64) []uint64 {
	numbers := make([]uint64, len(sequence))
	placesOf := map[uint64][]int{} // by content
	for i, n := range sequence {
		if numbers[i] = c.numberOf(n); numbers[i] > 0 && c.HasRepeatedContent() {
			print := c.logs[c.log].Entries[n-1].Print
			placesOf[print] = append(placesOf[print], i)
		}
	}
	for _, places := range placesOf {
		sorted := make([]uint64, len(places))
		for i, at := range places {
			sorted[i] = numbers[at]
		}
		slices.Sort(sorted)
		for i, at := range places {
			numbers[at] = sorted[i]
		}
	}
	return numbers
}

// isUncertain reports whether the place of a message that arrived at an instant is uncertain. This is the case if
// content repeats, and a stream that did not resume had just started.
func (c *correction) isUncertain(at ledger.Instant) bool {
	if !c.HasRepeatedContent() {
		return false
	}
	for i, s := range c.source.Spans {
		if !s.Resumed && at >= s.From && at < max(s.From+c.JoinTime, c.certainFrom[i])+c.source.MaxLateness {
			return true
		}
	}
	return false
}

// HasRepeatedContent reports whether any message has the content of an earlier one.
func (f *Feed) HasRepeatedContent() bool { return f.repeated }

// arrival returns the arrival time of entry n: at the client if the entry was overtaken, otherwise its first
// arrival at the runner.
func (c *correction) arrival(n uint64) ledger.Instant {
	if d := c.source.Deviations; d != nil {
		if i := slices.IndexFunc(d.Overtakes, func(o ledger.Overtake) bool { return o.Number == n }); i >= 0 {
			return d.Overtakes[i].At
		}
	}
	return c.logs[c.log].Entries[n-1].At
}

// renumber replaces the numbers of the log in the record with numbers of the feed.
func (c *correction) renumber() {
	r := &c.record
	for i, f := range r.Findings {
		if n := c.numberOf(f.From); n > 0 {
			r.Findings[i].From = n
		}
	}
	for _, f := range c.findings {
		c.record.AddFinding(f)
	}
	r.First, r.Last = c.ends(c.source.First, c.source.Last)
	for _, n := range c.receivedNumbers {
		if r.First == 0 || n < r.First {
			r.First = n
		}
		r.Last = max(r.Last, n)
	}
	r.Holes = c.holes()
	c.renumberCuts()
	r.Spans = slices.Clone(r.Spans)
	for i := range r.Spans {
		s := &r.Spans[i]
		s.First, s.Last = c.ends(s.First, s.Last)
	}
}

// renumberCuts renumbers the messages before and after each cut. If the message after a cut is a copy or a changed
// message, it gets the number of the message before the cut.
func (c *correction) renumberCuts() {
	if c.record.Cuts == nil {
		return
	}
	for i := range c.record.Cuts.List {
		cut := &c.record.Cuts.List[i]
		_, cut.LastNumber = c.ends(c.source.First, cut.LastNumber)
		if n := c.numberOf(cut.Next); n > 0 || cut.Next == 0 {
			cut.Next = n
		} else {
			cut.Next = cut.LastNumber
		}
	}
}

// ends returns the lowest and the highest feed number of the received entries from first to last of the log. It returns
// 0 if none of them is a message of the feed.
func (c *correction) ends(first, last uint64) (low, high uint64) {
	if first == 0 {
		return 0, 0
	}
	visit := func(n uint64) (done bool) {
		if !c.source.HasReceived(n) {
			return false
		}
		number := c.numberOf(n)
		if number == 0 {
			return false
		}
		if low == 0 || number < low {
			low = number
		}
		high = max(high, number)
		_, isDisordered := c.disorderOf[c.ids[c.log][n-1]]
		return !isDisordered
	}
	for n := first; n <= last && !visit(n); n++ {
	}
	for n := last; n >= first && !visit(n); n-- {
	}
	return low, high
}

// holes returns the numbers that did not arrive, between the first and the last number that did.
func (c *correction) holes() (holes []ledger.Range) {
	r := &c.record
	var missing []uint64
	add := func(n uint64) {
		if n > r.First && n < r.Last && !slices.Contains(c.receivedNumbers, n) {
			missing = append(missing, n)
		}
	}
	for _, h := range c.source.Holes {
		for n := h[0]; n <= h[1]; n++ {
			add(c.numberOf(n))
		}
	}
	for _, a := range c.missing[c.log] {
		for n := max(a[0], r.First+1); n <= a[1] && n < r.Last; n++ {
			add(n)
		}
	}
	for _, w := range c.disorders { // entries before the first and after the last received one
		for _, n := range w.locals[c.log] {
			if !c.source.HasReceived(n) && (n < c.source.First || n > c.source.Last) {
				add(c.numberOf(n))
			}
		}
	}
	slices.Sort(missing)
	for _, n := range slices.Compact(missing) {
		holes = ledger.AppendNumber(holes, n)
	}
	return holes
}

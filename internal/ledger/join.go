package ledger

import "slices"

// A pendingPrint is a message that may be part of a history, or that no other stream has received yet.
type pendingPrint struct {
	print uint64
	at    Instant
}

// isJoining reports whether the place of the current stream in the log is still uncertain, because the stream did not
// resume. A message with known content may then be part of the history that some services send to each new stream.
func (c *deliveries) isJoining() bool {
	span := c.openSpan()
	return c.cursor.joinedStream != c.stream.count && (span == nil || !span.Resumed)
}

// join counts a message of a stream whose place in the log is uncertain. If the log has an entry with the same content,
// the number of the message may be uncertain. In that case, the message is pending until the pending messages fit
// in only one place in the log.
func (c *deliveries) join(p *Fingerprint, delta *Delta) {
	f := c.cursor
	first, known := f.log.index[p.Sum]
	if !known {
		c.claim(f.log.last() + 1)
		c.addEntry(p, delta)
		return
	}
	number, live := c.anchor(p)
	switch {
	case live && c.hasMessage && len(f.pending) == 0:
		c.place(p, delta)
		return
	case number > f.log.last(), c.receivesFirst(p):
		c.claim(f.log.last() + 1)
		c.addEntry(p, delta)
		return
	case number > 0:
		c.claim(number)
		c.receive(number, p.At, delta)
		return
	case !live && c.has(uint64(first)) && !f.log.at(uint64(first)).repeatedLater && (!f.log.hasRepeat || p.At-c.openedAt() < joinTime):
		// The message is part of a history.
		delta.repeated = true
		c.fault().Repeated++
		return
	}
	c.Received++
	delta.Counted = true
	c.recordGap(p.At, p.At-c.lastAt)
	if len(f.pending) == maxRanges {
		c.forgetPending(1)
	}
	f.pending = append(f.pending, pendingPrint{p.Sum, p.At})
}

// anchor returns the number of a message with known content: the number of an entry that was added since the stream
// opened, or the number after the last entry if the message is new. anchor returns 0 if there is no such entry, or the
// place is uncertain. live reports whether an entry that was added since the stream opened has this content.
func (c *deliveries) anchor(p *Fingerprint) (number uint64, live bool) {
	log := c.cursor.log
	pending := len(c.cursor.pending)
	opened := c.openedAt()
	from := opened - skew
	if pending == 0 && p.At > opened+skew { // messages sent before the stream opened arrive immediately
		from = opened
	}
	best, places := -1, 0 // highest result of pendingBefore, and the number of entries that have it
	for n := log.last(); n > 0 && log.at(n).At >= from && log.last()-n < maxAnchors; n-- {
		if log.at(n).Print != p.Sum {
			continue
		}
		live = true
		if c.has(n) {
			continue
		}
		switch same := c.pendingBefore(n, from); {
		case same > best:
			number, best, places = n, same, 1
		case same == best:
			if places++; log.at(n).At >= opened+skew { // the stream was certainly open, so it received the earliest entry
				number = n
			}
		}
	}
	if number == 0 || !log.isAmbiguous(number) {
		return number, live
	}
	ahead := c.pendingBefore(log.last()+1, from) == pending // possibly no other stream has received the message yet
	certain := places == 1 && best == pending && !ahead
	switch {
	case certain:
	case p.At-opened < joinTime && pending < maxPending:
		return 0, live
	case ahead && best < pending:
		return log.last() + 1, live
	}
	return number, live
}

// receivesFirst reports whether a message with known content is new: it may be a repeat of another message, and arrives
// too late to be part of a history. Also, no other stream has received a new message since the current stream opened.
func (c *deliveries) receivesFirst(p *Fingerprint) bool {
	log, opened := c.cursor.log, c.openedAt()
	return p.At-opened >= 2*joinTime && log.at(log.last()).At <= opened && log.isAmbiguous(uint64(log.index[p.Sum]))
}

const (
	// maxPending is the number of pending messages at which the place of a stream is certain enough.
	maxPending = 64
	// maxAnchors limits the entries that are searched for the place of a stream.
	maxAnchors = 8192
)

// pendingBefore returns how many of the last pending messages equal the entries directly before a number, in order. It
// counts only entries that arrived at or after from, and that this client has not received.
func (c *deliveries) pendingBefore(number uint64, from Instant) (count int) {
	f := c.cursor
	for count < len(f.pending) {
		n := number - 1 - uint64(count)
		if n == 0 || f.log.at(n).At < from || f.log.at(n).Print != f.pending[len(f.pending)-1-count].print || c.has(n) {
			break
		}
		count++
	}
	return count
}

// openedAt returns the time from which messages are expected on the current stream.
func (c *deliveries) openedAt() Instant {
	if span := c.openSpan(); span != nil {
		return span.From
	}
	return c.stream.openedAt
}

// claim gives the pending messages the numbers directly before next. If next is new, the last pending messages may be
// new as well. Pending messages that do not fit stay without a number.
func (c *deliveries) claim(next uint64) {
	f := c.cursor
	if len(f.pending) == 0 {
		return
	}
	known := c.pendingBefore(next, 0)
	start := next - uint64(known) // #nosec G115 -- at most maxRanges
	if overlap := c.overlap(); known < len(f.pending) && next > f.log.last() && overlap > 0 {
		known, start = len(f.pending), next-uint64(overlap)
	}
	c.forgetPending(len(f.pending) - known)
	same := c.neighborsBefore(start)
	for i, w := range f.pending {
		number := start + uint64(i)
		if w.print == f.pending[0].print && same > 0 {
			number -= same
		} else {
			same = 0
		}
		if number > f.log.last() {
			number = f.log.add(w.print, w.at)
		}
		c.Received-- // receive counts the message again
		var delta Delta
		c.receive(number, w.at, &delta)
	}
	f.pending = nil
}

// overlap returns how many of the first pending messages equal the last entries of the log. It counts only entries that
// were added since the stream opened, and that this client has not received.
func (c *deliveries) overlap() int {
	f := c.cursor
	for count := min(len(f.pending), len(f.log.entries)); count > 0; count-- {
		first := f.log.last() - uint64(count) + 1
		if f.log.at(first).At < c.openedAt()-skew {
			continue
		}
		fits := true
		for i := 0; i < count && fits; i++ {
			n := first + uint64(i)
			fits = f.log.at(n).Print == f.pending[i].print && !c.has(n)
		}
		if fits {
			return count
		}
	}
	return 0
}

// neighborsBefore counts the entries directly before a number that have the same content as the entry with this number,
// are newer than the stream, and have not arrived at this client.
func (c *deliveries) neighborsBefore(number uint64) (count uint64) {
	log := c.cursor.log
	if number > log.last() {
		return 0
	}
	for n := number - 1; n > 0 && log.at(n).Print == log.at(number).Print && log.at(n).At >= c.openedAt()+skew && !c.has(n); n-- {
		count++
	}
	return count
}

// forgetPending adds the arrival times of the first pending messages to UnknownAt, because their numbers stay unknown.
func (c *deliveries) forgetPending(count int) {
	f := c.cursor
	for _, w := range f.pending[:count] {
		addDeviation(f.ensureDeviations(), &f.ensureDeviations().UnknownAt, w.at)
	}
	f.pending = slices.Delete(f.pending, 0, count)
}

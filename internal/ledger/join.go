package ledger

import "slices"

// A waiting message may be part of a history, or a message that no other stream has received yet.
type waiting struct {
	print uint64
	at    Instant
}

// joins reports whether the stream has just opened, so a known message may be part of a history.
func (c *deliveries) joins() bool {
	span := c.openSpan()
	return c.cursor.joined != c.stream.count && (span == nil || !span.Resumed)
}

// join counts a message of a stream that has just opened. If its content is known, its number is not: it waits until
// the messages so far fit at one place of the log only.
func (c *deliveries) join(p *Print, a *Arrival) {
	f := c.cursor
	first, known := f.log.index[p.Sum]
	if !known {
		c.claim(f.log.last() + 1)
		c.addEntry(p, a)
		return
	}
	number, live := c.anchor(p)
	switch {
	case live && c.hasNoop && len(f.waiting) == 0:
		c.place(p, a)
		return
	case number > f.log.last(), c.alone(p):
		c.claim(f.log.last() + 1)
		c.addEntry(p, a)
		return
	case number > 0:
		c.claim(number)
		c.receive(number, p.At, a)
		return
	case !live && c.has(uint64(first)) && !f.log.at(uint64(first)).repeatedLater && (!f.log.similar || p.At-c.openedAt() < joining): // the history repeats it
		c.fault().Repeated++
		return
	}
	c.Received++
	a.Counted = true
	c.recordGap(p.At, p.At-c.lastAt)
	if len(f.waiting) == maxRanges {
		c.forgetWaiting(1)
	}
	f.waiting = append(f.waiting, waiting{p.Sum, p.At})
}

// anchor returns the number of the entry that a message with known content is: one since its stream opened, or the next
// one for a new message. It returns 0 if the place is not certain. live reports whether entries since then have this
// content.
func (c *deliveries) anchor(p *Print) (number uint64, live bool) {
	log := c.cursor.log
	waiting := len(c.cursor.waiting)
	opened := c.openedAt()
	from := opened - skew
	if waiting == 0 && p.At > opened+skew { // a message that was sent before arrives at once
		from = opened
	}
	best, places := -1, 0 // messages in the same order, and the number of places with as many
	for n := log.last(); n > 0 && log.at(n).At >= from && log.last()-n < maxAnchors; n-- {
		if log.at(n).Print != p.Sum {
			continue
		}
		live = true
		if c.has(n) {
			continue
		}
		switch same := c.waitingBefore(n, from); {
		case same > best:
			number, best, places = n, same, 1
		case same == best:
			if places++; log.at(n).At >= opened+skew { // the stream was open for certain, so it received the first one
				number = n
			}
		}
	}
	if number == 0 || !log.repeated(number) {
		return number, live
	}
	ahead := c.waitingBefore(log.last()+1, from) == waiting // no other stream may have received the message yet
	certain := places == 1 && best == waiting && !ahead
	switch {
	case certain:
	case p.At-opened < joining && waiting < maxWaiting:
		return 0, live
	case ahead && best < waiting:
		return log.last() + 1, live
	}
	return number, live
}

// alone reports whether no other stream has received anything since this one opened, and what arrives is no history: it
// is too late for that, and the content repeats.
func (c *deliveries) alone(p *Print) bool {
	log, opened := c.cursor.log, c.openedAt()
	return p.At-opened >= 2*joining && log.at(log.last()).At <= opened && log.repeated(uint64(log.index[p.Sum]))
}

const (
	// maxWaiting is the number of messages after which the place of a stream is certain enough.
	maxWaiting = 64
	// maxAnchors limits the messages among which the place of a stream is looked for.
	maxAnchors = 8192
)

// waitingBefore returns how many of the waiting messages the log has before a number, in the same order, if they
// arrived from an instant on.
func (c *deliveries) waitingBefore(number uint64, from Instant) (count int) {
	f := c.cursor
	for count < len(f.waiting) {
		n := number - 1 - uint64(count)
		if n == 0 || f.log.at(n).At < from || f.log.at(n).Print != f.waiting[len(f.waiting)-1-count].print || c.has(n) {
			break
		}
		count++
	}
	return count
}

// openedAt returns when the present stream opened.
func (c *deliveries) openedAt() Instant {
	if span := c.openSpan(); span != nil {
		return span.From
	}
	return c.stream.openedAt
}

// claim numbers the waiting messages as those right before the message with the given number. If that is a new one, the
// last of them may be new as well.
func (c *deliveries) claim(before uint64) {
	f := c.cursor
	if len(f.waiting) == 0 {
		return
	}
	known := c.waitingBefore(before, 0)
	start := before - uint64(known) // #nosec G115 -- at most maxRanges
	if overlap := c.overlap(); known < len(f.waiting) && before > f.log.last() && overlap > 0 {
		known, start = len(f.waiting), before-uint64(overlap)
	}
	c.forgetWaiting(len(f.waiting) - known)
	same := c.neighboursBefore(start)
	for i, w := range f.waiting {
		number := start + uint64(i)
		if w.print == f.waiting[0].print && same > 0 {
			number -= same
		} else {
			same = 0
		}
		if number > f.log.last() {
			number = f.log.add(w.print, w.at)
		}
		c.Received-- // receive counts it
		var a Arrival
		c.receive(number, w.at, &a)
	}
	f.waiting = nil
}

// overlap returns how many of the waiting messages, from the first on, are the last ones of the log.
func (c *deliveries) overlap() int {
	f := c.cursor
	for count := min(len(f.waiting), len(f.log.entries)); count > 0; count-- {
		first := f.log.last() - uint64(count) + 1
		if f.log.at(first).At < c.openedAt()-skew {
			continue
		}
		fits := true
		for i := 0; i < count && fits; i++ {
			n := first + uint64(i)
			fits = f.log.at(n).Print == f.waiting[i].print && !c.has(n)
		}
		if fits {
			return count
		}
	}
	return 0
}

// neighboursBefore counts the entries directly before a number that have its content and arrived after the stream
// opened.
func (c *deliveries) neighboursBefore(number uint64) (count uint64) {
	log := c.cursor.log
	if number > log.last() {
		return 0
	}
	for n := number - 1; n > 0 && log.at(n).Print == log.at(number).Print && log.at(n).At >= c.openedAt()+skew && !c.has(n); n-- {
		count++
	}
	return count
}

// forgetWaiting lists the first waiting messages as unknown.
func (c *deliveries) forgetWaiting(count int) {
	f := c.cursor
	for _, w := range f.waiting[:count] {
		list(f.deviate(), &f.deviate().UnknownAt, w.at)
	}
	f.waiting = slices.Delete(f.waiting, 0, count)
}

package ledger

import "slices"

// maxDeviations limits the deviations of each kind that one client lists.
const maxDeviations = 4096

// A cursor is the place of one client in the Log of its topic.
type cursor struct {
	log           *Log
	last          uint64 // number of the message that arrived last, or 0
	joinedStream  uint32 // ordinal of the last stream whose place in the log is certain
	greetedStream uint32 // ordinal of the last stream that had a greeting
	deviations    *Deviations
	pending       []pendingPrint // messages of a stream that has just opened, whose numbers are not known yet
}

// Deviations are the differences between the messages of a client and the Log, apart from missing messages.
type Deviations struct {
	Overtakes []Overtake `json:"overtakes,omitempty"`
	Repeats   []Repeat   `json:"repeats,omitempty"`
	// UnknownAt lists the arrival times of messages whose numbers are unknown.
	UnknownAt []Instant `json:"unknown_at_ns,omitempty"`
	// Unlisted counts the deviations beyond maxDeviations.
	Unlisted uint64 `json:"unlisted,omitempty"`
}

// An Overtake is a message that arrived after the message By, which has a higher number.
type Overtake struct {
	Number uint64  `json:"number"`
	By     uint64  `json:"by"`
	At     Instant `json:"at_ns"`
}

// A Repeat is a message that arrived again. Extra is the index of its Extra in the Log. Number is the number of the
// first message with its content.
type Repeat struct {
	Extra  int     `json:"extra"`
	Number uint64  `json:"number"`
	At     Instant `json:"at_ns"`
}

// A Fingerprint identifies a message without a number by its content.
type Fingerprint struct {
	At  Instant // arrival
	Sum uint64  // hash of the content
}

// UseLog makes a ledger of Numbered messages count by the log of its topic. It must be called before the first stream.
func (l *Ledger) UseLog(log *Log) { l.messages.cursor = &cursor{log: log} }

// DeliveredUnnumbered counts a message without a number. The log of its topic determines the number.
func (l *Ledger) DeliveredUnnumbered(p Fingerprint) Delta {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endSilence(p.At)
	c := l.messages
	faultsBefore := c.faultCount()
	delta, isGreeting := c.follow(&p)
	delta.Faults = c.faultCount() - faultsBefore
	if !isGreeting {
		l.cutMessage(p.At, c.cursor.last, &delta)
	}
	return delta
}

// follow counts a message. A greeting does not show that the stream resumed.
func (c *deliveries) follow(p *Fingerprint) (delta Delta, isGreeting bool) {
	f := c.cursor
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	if span := c.openSpan(); span != nil {
		if c.isGreeting(span, p) {
			f.greetedStream = c.stream.count
			delta.repeated = true
			c.fault().Repeated++
			return delta, true
		}
		span.addFingerprint(p)
	}
	switch next := f.last + 1; {
	case f.joinedStream == c.stream.count && next > c.numbers.highest && next <= f.log.last() && f.log.at(next).Print == p.Sum:
		c.receive(next, p.At, &delta)
	case c.isJoining():
		c.join(p, &delta)
	default:
		c.place(p, &delta)
	}
	return delta, false
}

// isGreeting reports whether a message is a greeting, which the service sends at the start of each stream, on a stream
// that has just resumed. Such a message was the first one of the client, or is older than its first stream. It is not
// the message before the outage, which a resume may duplicate.
func (c *deliveries) isGreeting(span *Span, p *Fingerprint) bool {
	f := c.cursor
	first, known := f.log.index[p.Sum]
	number := uint64(first)
	if !known || number == f.last || !span.Resumed || c.hasMessage || f.greetedStream == c.stream.count || p.At-span.From >= joinTime {
		return false
	}
	e := f.log.at(number)
	return !e.Live && !e.repeatedLater && (number == c.first || e.At < c.spans[0].From-skew)
}

func (f *cursor) ensureDeviations() *Deviations {
	if f.deviations == nil {
		f.deviations = new(Deviations)
	}
	return f.deviations
}

func addDeviation[T any](d *Deviations, to *[]T, item T) {
	if len(*to) >= maxDeviations {
		d.Unlisted++
		return
	}
	*to = append(*to, item)
}

// place counts a message that is not the next one of the log. The message may be new, skipped before, or a copy.
func (c *deliveries) place(p *Fingerprint, delta *Delta) {
	f := c.cursor
	first, known := f.log.index[p.Sum]
	if !known {
		c.addEntry(p, delta)
		return
	}
	if number := c.candidate(uint64(first), p); number > 0 {
		c.receive(number, p.At, delta)
		return
	}
	span := c.openSpan()
	resumed := span != nil && span.Resumed && (p.At-span.From < joinTime || !c.hasMessage) && c.has(uint64(first))
	last := c.atEnd(p.At) || c.numbers.highest == f.log.last() && !f.log.hasNearby(f.last, p.Sum)
	if last && (f.log.hasRepeat || !resumed) {
		c.addEntry(p, delta) // no stream shows whether the message is a copy or a new message: see Entry.Repeat
		return
	}
	if f.log.hasSharedRepeat && span != nil && !span.Resumed && p.At-span.From < joinTime {
		delta.repeated = true
		c.fault().Repeated++ // the place of a message whose content repeats is uncertain at the start of a stream
		return
	}
	addDeviation(f.ensureDeviations(), &f.ensureDeviations().Repeats, Repeat{Extra: f.log.extra(f.last, p, resumed), Number: uint64(first), At: p.At})
	c.recordGap(p.At, p.At-c.lastAt)
	if c.stream.cfg.Repeats {
		delta.repeated = true
		c.fault().Repeated++
		return
	}
	delta.duplicated = true
	c.fault().Duplicated++
	c.findAt(KindDuplicated, uint64(first), p.At)
}

// atEnd reports whether no message follows the last one of the client, apart from greetings of other streams. A greeting
// is a message that only one stream received, right after its start or as its first message, and more than skew ago. If
// more than lookahead+1 messages follow, atEnd returns false.
func (c *deliveries) atEnd(at Instant) bool {
	log := c.cursor.log
	for n := log.last(); n > c.cursor.last; n-- {
		if e := log.at(n); e.Live || e.At > at-skew || e.Count > 1 || n+lookahead < log.last() {
			return false
		}
	}
	return true
}

// candidate returns the number of the message with this content that the client has just received: a message after its
// last one, or a message that it has skipped. It returns 0 if there is no such message. first is the first number with
// this content.
func (c *deliveries) candidate(first uint64, p *Fingerprint) uint64 {
	f := c.cursor
	log, highest := f.log, max(c.numbers.highest, f.last)
	if !log.at(first).repeatedLater {
		near := !log.hasSharedRepeat || first+lookback >= f.last || c.leads()
		if first > highest || near && c.isSkipped(first, p.At) {
			return first
		}
		return 0
	}
	fits := func(n uint64) bool {
		return n > 0 && n <= log.last() && log.at(n).Print == p.Sum && (n > highest || c.isSkipped(n, p.At))
	}
	for distance := uint64(1); distance <= lookback || distance <= lookahead && f.last+distance <= log.last(); distance++ {
		if fits(f.last + distance) {
			return f.last + distance
		}
		if distance <= lookback && distance < f.last && fits(f.last-distance) {
			return f.last - distance
		}
	}
	return 0
}

// leads reports whether only this client received its messages, which span at most lookahead numbers. A leading client
// joined before the others, and may receive messages later than they do.
func (c *deliveries) leads() bool {
	if !c.hasNumber || c.numbers.highest-c.first > lookahead {
		return false
	}
	for n := c.first; n <= c.numbers.highest; n++ {
		if c.cursor.log.at(n).Count > 1 {
			return false
		}
	}
	return true
}

// isSkipped reports whether a message below the highest number has not arrived at this client and may still arrive.
func (c *deliveries) isSkipped(number uint64, at Instant) bool {
	sent := c.cursor.log.at(number).At
	earliest := c.openedAt() // the stream receives messages that are sent from this instant on
	switch {
	case c.cursor.log.isAmbiguous(number):
		earliest += skew
	case number+lookback >= c.cursor.last:
		earliest -= skew
	}
	subscribed := number >= c.first || sent >= earliest || c.leads()
	return subscribed && !c.has(number) && (sent >= at-maxSkipAge || number == c.cursor.last+1)
}

func (c *deliveries) has(number uint64) bool {
	if !c.hasNumber || number < c.first || number > c.numbers.highest {
		return false
	}
	return !slices.ContainsFunc(c.numbers.holes, func(h hole) bool { return number >= h.from && number <= h.to })
}

// addEntry adds a message to the log, and counts it. If the log is full, addEntry only counts the message as dropped.
func (c *deliveries) addEntry(p *Fingerprint, delta *Delta) {
	log := c.cursor.log
	if log.last() >= MaxEntries {
		log.dropped++
		return
	}
	last := c.cursor.last
	lags := last > 0 && last+2*lookback < log.last()
	c.receive(log.add(p.Sum, p.At), p.At, delta)
	if lags { // the place stays the same, because other clients lost this message
		c.cursor.last = last
	}
}

func (c *deliveries) receive(number uint64, at Instant, delta *Delta) {
	f := c.cursor
	e := f.log.at(number)
	if e.Count++; e.Count > 1 && e.Repeat {
		f.log.hasSharedRepeat = true
	}
	opened, span := c.openedAt(), c.openSpan()
	e.Live = e.Live || at-opened > joinTime && c.hasMessage || e.Count > 1 && span != nil && span.Resumed
	if at-opened > joinTime || e.Count > 1 && e.At >= opened-skew || !c.isJoining() {
		f.joinedStream = c.stream.count
	}
	highest := c.numbers.highest
	if c.record(number, at) == filled {
		addDeviation(f.ensureDeviations(), &f.ensureDeviations().Overtakes, Overtake{Number: number, By: highest, At: at})
	}
	f.last = number
	delta.Counted = true
	c.Received++
	c.recordGap(at, at-c.lastAt)
	c.hasMessage = true
	if span != nil {
		span.receive(number)
	}
	if e.Count > 1 && e.At >= opened { // otherwise the message may be part of a history
		c.addLateness(delta, number, at, at-e.At)
	}
}

// Lag counts, for display only, messages that this client lacks although at least two other clients of the runner
// received them. It omits messages that first arrived less than LatenessLimit before at. skipped counts messages before
// the last message of this client, and due counts messages after it. Both are 0 if messages carry numbers.
func (l *Ledger) Lag(at Instant) (skipped, due uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.messages
	if c == nil || c.cursor == nil || !c.hasNumber {
		return 0, 0
	}
	log := c.cursor.log
	log.mu.Lock()
	defer log.mu.Unlock()
	before := at - c.stream.cfg.LatenessLimit
	for _, h := range c.numbers.holes {
		if !h.separate && h.at < before {
			skipped += log.countReceived(h.from, h.to, before)
		}
	}
	if c.stream.open {
		due = log.countReceived(c.numbers.highest+1, log.last(), before)
	}
	return skipped, due
}

// fillDeviations copies the deviations into a record. The numbers of pending messages are unknown.
func (c *deliveries) fillDeviations(r *Record) {
	f := c.cursor
	if f == nil || f.deviations == nil && len(f.pending) == 0 {
		return
	}
	d := *f.ensureDeviations()
	d.Overtakes, d.Repeats, d.UnknownAt = slices.Clone(d.Overtakes), slices.Clone(d.Repeats), slices.Clone(d.UnknownAt)
	for _, w := range f.pending {
		d.UnknownAt = append(d.UnknownAt, w.at)
	}
	r.Deviations = &d
}

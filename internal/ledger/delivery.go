package ledger

import (
	"fmt"
	"slices"
	"time"
)

// A Delivery is the arrival of one numbered message.
type Delivery struct {
	At Instant
	// Number is 0 if the message has none. It is undefined if the message is corrupted.
	Number uint64
	// CorruptionReason is the reason why the message counts as corrupted, or "" if the message is intact.
	CorruptionReason string
	// Unnumbered reports whether the message has no number at message.seq.
	Unnumbered bool
	// Lateness is the time from sending to arrival, if the message is Timed.
	Lateness time.Duration
	Timed    bool
}

// A Span is the time in which a stream was open and messages were expected on it.
type Span struct {
	From Instant `json:"from_ns"`
	To   Instant `json:"to_ns"` // 0: the stream is open
	// Resumed reports whether messages published since the previous stream are expected on this one: the client had an
	// id to resume from, or the service had reset that id.
	Resumed bool `json:"resumed,omitempty"`
	// Planned and Cut are the fields of the Outage that follows.
	Planned bool `json:"planned,omitempty"`
	Cut     bool `json:"cut,omitempty"`
	// First and Last are the lowest and the highest number among the messages received on this stream. Both are 0 if it
	// received none.
	First uint64 `json:"first,omitempty"`
	Last  uint64 `json:"last,omitempty"`
	// Prints is the number of messages without a number that this stream received, and Sum is their Checksum. Both omit
	// a greeting and, on a stream that did not resume, the messages of the first second.
	Prints uint64 `json:"prints,omitempty"`
	Sum    uint64 `json:"sum,omitempty"`
}

// A Checksum identifies a sequence of fingerprints. The checksum of an empty sequence is 0.
type Checksum uint64

// sumFactor is odd, so that multiplication maps different sums to different products.
const sumFactor = 0x9e3779b97f4a7c15

// Add returns the checksum of the sequence with another fingerprint at its end.
func (s Checksum) Add(print uint64) Checksum { return s*sumFactor + Checksum(print) }

// Shift returns the contribution of a sequence to the checksum of a longer one with count further fingerprints.
func (s Checksum) Shift(count uint64) Checksum {
	for factor := Checksum(sumFactor); count > 0; count /= 2 {
		if count%2 == 1 {
			s *= factor
		}
		factor *= factor
	}
	return s
}

func (s *Span) addFingerprint(p *Fingerprint) {
	if s.Resumed || p.At-s.From >= joinTime {
		s.Prints++
		s.Sum = uint64(Checksum(s.Sum).Add(p.Sum))
	}
}

func (s *Span) receive(number uint64) {
	if s.First == 0 || number < s.First {
		s.First = number
	}
	s.Last = max(s.Last, number)
}

// A Range is the first and the last of consecutive numbers.
type Range [2]uint64

// AppendNumber adds a number to ascending ranges. It extends the last range if the number directly follows it.
func AppendNumber(ranges []Range, n uint64) []Range {
	if last := len(ranges) - 1; last >= 0 && ranges[last][1]+1 == n {
		ranges[last][1] = n
		return ranges
	}
	return append(ranges, Range{n, n})
}

// maxSpans is the maximum number of spans that a client lists. The messages expected in further spans are unknown.
// A service that ends each stream after 5 minutes causes 288 spans per day, and each may leave a hole.
const maxSpans = 1000

// deliveries count the messages of a client by number alone, because no message is due at a known time. A stream may
// join late at any number. With Config.Published, package verdict decides at the end which missing messages were
// expected.
type deliveries struct {
	counter
	numbers     numbers
	hasNumber   bool         // a number arrived
	first       uint64       // lowest number that arrived
	corruptions *corruptions // nil: no corrupted message arrived
	spans       []Span
	unlisted    uint64  // number of spans beyond maxSpans
	cursor      *cursor // nil: messages carry numbers
}

// maxLost limits the count of lost messages, because ids that are not a sequence have huge gaps. A merge accepts no
// count above twice this limit.
const maxLost = 1 << 36

type corruptions struct {
	guesses  []uint64  // the numbers that corrupted messages were assumed to have
	unplaced uint64    // number of corrupted messages without an assumed number
	at       []Instant // arrivals of messages without an assumed number; each may be any message that was missing then
}

// Delivered counts a numbered message. A message with an impossible number counts as corrupted, with a
// CorruptionReason.
func (l *Ledger) Delivered(d *Delivery) Delta {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endSilence(d.At)
	faultsBefore := l.messages.faultCount()
	delta := l.messages.add(d)
	delta.Faults = l.messages.faultCount() - faultsBefore
	if d.CorruptionReason == "" {
		l.cutMessage(d.At, d.Number, &delta)
	}
	return delta
}

func (c *deliveries) add(d *Delivery) (delta Delta) {
	if d.CorruptionReason == "" {
		d.CorruptionReason = c.checkNumber(d.Number)
	}
	if d.CorruptionReason != "" {
		c.addCorrupted(d)
		delta.Counted = true
		return delta
	}
	switch c.record(d.Number, d.At) {
	case inOrder:
		delta.Counted = true
	case filled:
		delta.Counted, delta.filled = true, true
		if !c.stream.cfg.AnyOrder {
			c.fault().Reordered++
			c.findAt(KindReordered, d.Number, d.At)
		}
	case repeated:
		if c.withdrawGuess(d.Number) {
			delta.Counted = true
			break
		}
		if c.stream.cfg.Repeats {
			c.fault().Repeated++
			delta.repeated = true
			return delta
		}
		c.addDuplicate(d)
		delta.duplicated = true
		return delta
	}
	c.Received++
	c.recordGap(d.At, d.At-c.lastAt)
	c.hasMessage = true
	if span := c.openSpan(); span != nil {
		span.receive(d.Number)
	}
	if d.Timed {
		c.addLateness(&delta, d.Number, d.At, d.Lateness)
	}
	return delta
}

func (c *deliveries) record(number uint64, at Instant) placement {
	switch {
	case !c.hasNumber:
		c.hasNumber, c.first, c.numbers.highest = true, number, number
		return inOrder
	case c.stream.cfg.PerStream && c.startsWithoutResume() && c.startsAnew(number):
		c.restart(number, at)
		return inOrder
	case number < c.first: // messages with higher numbers overtook it
		if number+1 < c.first {
			// It is unknown at which number the stream started to receive messages.
			c.numbers.open(hole{from: number + 1, to: c.first - 1, at: at, separate: true})
		}
		c.first = number
		return filled
	case number > c.numbers.highest+1 && c.startsWithoutResume():
		if !c.stream.cfg.Published { // it is unknown whether the skipped numbers were expected
			c.numbers.highest = number
			return inOrder
		}
		c.numbers.open(hole{from: c.numbers.highest + 1, to: number - 1, at: at, separate: true})
		c.numbers.highest = number
		return inOrder
	}
	return c.numbers.record(number, at).placement
}

// lostCount returns the number of certainly lost messages. With Config.Published, lostCount omits separate holes, whose
// messages may not have been expected. If messages may also arrive in any order, it omits all holes, whose messages may
// have been in transit.
func (c *deliveries) lostCount() (sum uint64) {
	for _, h := range c.numbers.holes {
		if !c.stream.cfg.Published || !h.separate && !c.stream.cfg.AnyOrder {
			sum += h.size()
		}
	}
	return sum + c.numbers.unlistedLosses
}

// faultCount is counter.faultCount with the missing numbers, unless only the merge knows which of them are lost.
func (c *deliveries) faultCount() uint64 {
	if c.stream.cfg.Published || c.stream.cfg.AnyOrder {
		return c.counter.faultCount()
	}
	return c.counter.faultCount() + c.lostCount()
}

// addDuplicate counts a message that arrived before. If the stream has already received a new message, and the number
// is below the highest one, Finding.To is the highest number. The service may then have restarted its numbers.
//
//go:noinline
func (c *deliveries) addDuplicate(d *Delivery) {
	c.fault().Duplicated++
	f := Finding{Kind: KindDuplicated, From: d.Number, At: d.At}
	if c.hasMessage && d.Number < c.numbers.highest {
		f.To = c.numbers.highest
	}
	c.find(f)
}

// addCorrupted counts a corrupted message. If messages must be in order and the next number is known, addCorrupted
// assumes that the message had this number.
//
//go:noinline
func (c *deliveries) addCorrupted(d *Delivery) {
	c.fault().Corrupted++
	if d.Unnumbered {
		c.fault().Unnumbered++
	}
	if c.corruptions == nil {
		c.corruptions = new(corruptions)
	}
	var number uint64
	if c.hasNumber && !c.stream.cfg.AnyOrder && !c.startsWithoutResume() {
		number = c.numbers.highest + 1
		c.record(number, d.At)
		if len(c.corruptions.guesses) < maxRanges {
			c.corruptions.guesses = append(c.corruptions.guesses, number)
		}
	} else {
		c.corruptions.unplaced++
		if len(c.corruptions.at) < maxRanges {
			c.corruptions.at = append(c.corruptions.at, d.At)
		}
	}
	c.find(Finding{Kind: KindCorrupted, From: number, At: d.At, Note: d.CorruptionReason})
}

// withdrawGuess reports whether a corrupted message was assumed to have this number, and withdraws the assumption.
func (c *deliveries) withdrawGuess(number uint64) bool {
	if c.corruptions == nil {
		return false
	}
	at := slices.Index(c.corruptions.guesses, number)
	if at < 0 {
		return false
	}
	c.corruptions.guesses = slices.Delete(c.corruptions.guesses, at, at+1)
	c.corruptions.unplaced++
	for i, f := range slices.Backward(c.fault().findings) {
		if f.Kind == KindCorrupted && f.From == number {
			c.fault().findings[i].From = 0 // the number is unknown
			break
		}
	}
	return true
}

// checkNumber returns the reason why a number is impossible: it was not published, or is too far above the highest
// number. It returns "" for a possible number.
func (c *deliveries) checkNumber(number uint64) string {
	switch highest := c.stream.cfg.MaxNumber; {
	case c.stream.cfg.Published && highest > 0 && (number == 0 || number > highest):
		return fmt.Sprintf("no message was published with the number %d", number)
	case c.hasNumber && number > c.numbers.highest && number-c.numbers.highest > maxJump:
		return fmt.Sprintf("its number is %d, but the highest number before it was %d", number, c.numbers.highest)
	}
	return ""
}

func (c *deliveries) opened(at Instant) {
	c.counter.opened(at)
	if len(c.spans) >= maxSpans {
		c.unlisted++
		return
	}
	c.spans = append(c.spans, Span{From: at})
}

// openSpan returns the span of the open stream, or nil if no stream is open or its span is not listed.
func (c *deliveries) openSpan() *Span {
	if last := len(c.spans) - 1; last >= 0 && c.spans[last].To == 0 {
		return &c.spans[last]
	}
	return nil
}

func (c *deliveries) endSpan(at Instant) {
	if span := c.openSpan(); span != nil {
		span.To = max(at, span.From, 1)
	}
}

func (c *deliveries) endedAsPlanned(byClient bool) {
	if last := len(c.spans) - 1; c.unlisted == 0 && last >= 0 {
		c.spans[last].Planned, c.spans[last].Cut = true, byClient
	}
}

func (c *deliveries) fill(r *Record) {
	c.counter.fill(r)
	r.First, r.Last, r.Lost = c.first, c.numbers.highest, min(c.lostCount(), maxLost)
	r.UnlistedSpans = c.unlisted
	if c.corruptions != nil {
		r.Unplaced = c.corruptions.unplaced
	}
}

// fillLists adds the lists of Record that Sums omits. With Config.Published, holes are listed instead of counted as
// lost.
func (c *deliveries) fillLists(r *Record) {
	r.Spans = slices.Clone(c.spans)
	c.fillDeviations(r)
	if c.corruptions != nil {
		r.UnplacedAt = slices.Clone(c.corruptions.at)
	}
	if c.stream.cfg.Published {
		r.Lost = c.numbers.unlistedLosses
		for _, h := range c.numbers.holes {
			r.Holes = append(r.Holes, Range{h.from, h.to})
		}
		return
	}
	for _, h := range c.numbers.holes {
		r.AddFinding(h.finding())
	}
}

// SubscribedFrom records that messages are expected on the present stream from an instant on, after a second request.
func (l *Ledger) SubscribedFrom(at Instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.messages == nil {
		return
	}
	if span := l.messages.openSpan(); span != nil {
		span.From = at
	}
}

// Announced records that the service announced missing messages of this stream.
func (l *Ledger) Announced(at Instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.extras().AnnouncedGaps++
	l.cutAnnounced(at)
	l.find(Finding{Kind: KindAnnounced, At: at})
}

// Misrouted records a message of another topic of this run, to which the stream did not subscribe.
func (l *Ledger) Misrouted(at Instant, data string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.endSilence(at)
	l.extras().Misrouted++
	l.find(Finding{Kind: KindMisrouted, At: at, Note: data})
}

package ledger

import (
	"fmt"
	"slices"
	"time"
)

// A Delivery is what the wire said of one message of a described service.
type Delivery struct {
	At Instant
	// Number is that of the message, 0 where it has none. It means nothing where the message is Broken.
	Number uint64
	// Broken says why the message is not what it should be; "" where it is.
	Broken string
	// Unnumbered reports whether the message has no number at message.seq.
	Unnumbered bool
	// Lateness is how long after it was sent the message came, where it is Timed.
	Lateness time.Duration
	Timed    bool
}

// A Span is the time in which a stream was open and messages were expected on it.
type Span struct {
	From Instant `json:"from_ns"`
	To   Instant `json:"to_ns"` // 0: it is open
	// Resumed reports whether messages published since the previous stream are expected on this one: the client had an id to
	// resume from, or the service had reset that id.
	Resumed bool `json:"resumed,omitempty"`
	// Planned and Cut are what the Outage that follows has.
	Planned bool `json:"planned,omitempty"`
	Cut     bool `json:"cut,omitempty"`
	// First and Last are the lowest and the highest number among the messages received on this stream; 0: none.
	First uint64 `json:"first,omitempty"`
	Last  uint64 `json:"last,omitempty"`
}

// receive records the number of a message that was received for the first time.
func (s *Span) receive(number uint64) {
	if s.First == 0 || number < s.First {
		s.First = number
	}
	s.Last = max(s.Last, number)
}

// A Range is a run of numbers.
type Range [2]uint64

// maxSpans limits how many spans a connection remembers. What it was owed in others cannot be told. A service that ends
// each stream after 5 minutes makes 288 in a day. Each may leave a hole.
const maxSpans = 1000

// deliveries count the messages of a connection by their numbers alone: somebody publishes them, so none is due by the
// clock. The first number may be any, since a stream may join late. The record says which numbers came: the first, the
// last, and the holes between. Package verdict decides which of the others were owed, when all is known.
type deliveries struct {
	counter
	numbers   numbers
	known     bool // a number was seen
	first     uint64
	corrupted *corrupted // nil: no corrupted message arrived
	spans     []Span
	unlisted  uint64 // spans beyond maxSpans
}

// corrupted holds what is known of the numbers of corrupted messages.
type corrupted struct {
	guesses  []uint64  // the numbers that corrupted messages were assumed to have
	unplaced uint64    // corrupted messages without such a number
	at       []Instant // the arrival times of unplaced messages that may be any message missing then
}

var noneCorrupted corrupted

// corruption returns what is known of corrupted messages.
func (c *deliveries) corruption() *corrupted {
	if c.corrupted == nil {
		return &noneCorrupted
	}
	return c.corrupted
}

// Delivered counts a message of a described service. One whose number cannot be is Broken then.
func (l *Ledger) Delivered(d *Delivery) Arrival {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silentUntil(d.At)
	before := l.messages.twice()
	a := l.messages.add(d)
	if d.Broken == "" {
		after := l.messages.twice()
		l.cutBrought(d.At, d.Number, after[0] > before[0], after[1] > before[1])
	}
	return a
}

func (c *deliveries) add(d *Delivery) (a Arrival) {
	if d.Broken == "" {
		d.Broken = c.madeUp(d.Number)
	}
	if d.Broken != "" {
		c.broken(d)
		a.Counted = true
		return a
	}
	switch c.see(d.Number, d.At) {
	case inOrder:
		a.Counted = true
	case filled:
		a.Counted = true
		if !c.cfg.AnyOrder {
			c.fault().Reordered++
			c.found(KindReordered, d.Number, d.At)
		}
	case repeated:
		if c.wasGuessed(d.Number) {
			a.Counted = true
			break
		}
		if c.cfg.Repeats {
			c.fault().Repeated++
			return a
		}
		c.fault().Duplicated++
		c.found(KindDuplicated, d.Number, d.At)
		return a
	}
	c.Received++
	c.gapClock(d.At, d.At-c.lastAt)
	c.sawNoop = true
	if span := c.openSpan(); span != nil {
		span.receive(d.Number)
	}
	if d.Timed {
		c.lateBy(&a, d.Number, d.At, d.Lateness)
	}
	return a
}

// see records one number.
func (c *deliveries) see(number uint64, at Instant) sighting {
	switch {
	case !c.known:
		c.known, c.first, c.numbers.highest = true, number, number
		return inOrder
	case number < c.first: // the first that came had been overtaken
		if number+1 < c.first {
			c.numbers.open(hole{from: number + 1, to: c.first - 1, at: at, apart: true}) // who knows when the stream began to get them
		}
		c.first = number
		return filled
	case number > c.numbers.highest+1 && c.begunAnew():
		if !c.cfg.Published { // nobody knows whether they were owed
			c.numbers.highest = number
			return inOrder
		}
		c.numbers.open(hole{from: c.numbers.highest + 1, to: number - 1, at: at, apart: true})
		c.numbers.highest = number
		return inOrder
	}
	sight, _ := c.numbers.see(number, at)
	return sight
}

// lost are the numbers that are missing for all that a stream knows: what was published while there was none is not. Nor is,
// in any order, what may have been on its way when the stream ended.
func (c *deliveries) lost() (sum uint64) {
	for _, h := range c.numbers.holes() {
		if !c.cfg.Published || !h.apart && !c.cfg.AnyOrder {
			sum += h.size()
		}
	}
	return sum + c.numbers.forgotten()
}

// begunAnew says that the next message is the first of a stream that does not go on behind the one before.
func (c *deliveries) begunAnew() bool {
	span := c.openSpan()
	return c.streams > 1 && !c.sawNoop && (span == nil || !span.Resumed)
}

// broken counts a message that is not what it should be. Where messages come in order it is the next one.
//
//go:noinline
func (c *deliveries) broken(d *Delivery) {
	c.fault().Corrupted++
	if d.Unnumbered {
		c.fault().Unnumbered++
	}
	if c.corrupted == nil {
		c.corrupted = new(corrupted)
	}
	var number uint64
	if c.known && !c.cfg.AnyOrder && !c.begunAnew() {
		number = c.numbers.highest + 1
		c.see(number, d.At)
		if len(c.corrupted.guesses) < maxRanges {
			c.corrupted.guesses = append(c.corrupted.guesses, number)
		}
	} else {
		c.corrupted.unplaced++
		if len(c.corrupted.at) < maxRanges {
			c.corrupted.at = append(c.corrupted.at, d.At)
		}
	}
	c.find(Finding{Kind: KindCorrupted, From: number, At: d.At, Note: d.Broken})
}

// wasGuessed reports whether a corrupted message was assumed to have the number that arrives now. That message was an extra copy
// then, and replaces no missing one.
func (c *deliveries) wasGuessed(number uint64) bool {
	at := slices.Index(c.corruption().guesses, number)
	if at < 0 {
		return false
	}
	c.corrupted.guesses = slices.Delete(c.corrupted.guesses, at, at+1)
	c.corrupted.unplaced++
	for i, f := range slices.Backward(c.fault().findings) {
		if f.Kind == KindCorrupted && f.From == number {
			c.fault().findings[i].From = 0 // its number is unknown
			break
		}
	}
	return true
}

// madeUp says why no message has that number, "" where one may: nobody published it, or it is beyond all bounds.
func (c *deliveries) madeUp(number uint64) string {
	switch most := c.cfg.Most; {
	case c.cfg.Published && most > 0 && (number == 0 || number > most):
		return fmt.Sprintf("nobody published a message with the number %d", number)
	case c.known && number > c.numbers.highest && number-c.numbers.highest > maxJump:
		return fmt.Sprintf("it has the number %d, and the highest before was %d", number, c.numbers.highest)
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

// openSpan is the span of the stream that is open; nil where it is not remembered.
func (c *deliveries) openSpan() *Span {
	if last := len(c.spans) - 1; last >= 0 && c.spans[last].To == 0 {
		return &c.spans[last]
	}
	return nil
}

// endSpan ends the span of the open stream: nothing is owed to it any more.
func (c *deliveries) endSpan(at Instant) {
	if span := c.openSpan(); span != nil {
		span.To = max(at, span.From, 1)
	}
}

// planned notes that the last span ended as planned.
func (c *deliveries) planned(byClient bool) {
	if last := len(c.spans) - 1; c.unlisted == 0 && last >= 0 {
		c.spans[last].Planned, c.spans[last].Cut = true, byClient
	}
}

// fill writes the counts into a record. Where a publisher knows what was owed, holes are no losses yet.
func (c *deliveries) fill(r *Record) {
	c.counter.fill(r)
	r.First, r.Last, r.Lost = c.first, c.numbers.highest, c.lost()
	r.Unplaced, r.UnlistedSpans = c.corruption().unplaced, c.unlisted
}

// fillLists adds what Record has and Sums leaves out.
func (c *deliveries) fillLists(r *Record) {
	r.Spans, r.UnplacedAt = slices.Clone(c.spans), slices.Clone(c.corruption().at)
	if c.cfg.Published {
		r.Lost = c.numbers.forgotten()
		for _, h := range c.numbers.holes() {
			r.Holes = append(r.Holes, Range{h.from, h.to})
		}
		return
	}
	for _, h := range c.numbers.holes() {
		r.find(h.finding())
	}
}

// Joined notes that messages are owed to the present stream from here on, where that is not from its headers on: a
// second request had to be answered.
func (l *Ledger) Joined(at Instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.messages == nil {
		return
	}
	if span := l.messages.openSpan(); span != nil {
		span.From = at
	}
}

// Announced notes that the service said that messages of this stream are missing.
func (l *Ledger) Announced(at Instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rec.rarely().Gaps++
	l.cutAnnounced(at)
	l.rec.find(Finding{Kind: KindAnnounced, At: at})
}

// Strayed notes that a message of another topic of this run came, for which the stream did not ask.
func (l *Ledger) Strayed(at Instant, data string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silentUntil(at)
	l.rec.rarely().Strayed++
	l.rec.find(Finding{Kind: KindStrayed, At: at, Note: data})
}

// Heard is a sign of life on a stream that is no message.
type Heard int

// The signs of life: one that is not counted, a heartbeat, a message of another publisher, an event that message.event names and
// that is not checked, or a block that is neither message nor heartbeat.
const (
	ASign Heard = iota
	AHeartbeat
	AForeigner
	AnUncheckedEvent
	ABlock
)

// Heard notes a sign of life on the open stream.
func (l *Ledger) Heard(at Instant, what Heard) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch what {
	case ASign:
	case AHeartbeat:
		l.rec.rarely().Heartbeats++
	case AForeigner:
		l.rec.rarely().Foreign++
	case AnUncheckedEvent:
		l.rec.rarely().Unchecked++
	case ABlock:
		l.rec.rarely().Uncounted++
	}
	l.silentUntil(at)
}

// silentUntil ends a time in which nothing came.
func (l *Ledger) silentUntil(at Instant) {
	if l.cfg.IgnoresSilence {
		return
	}
	s := l.silence()
	if silence := at - s.heardAt; silence > s.longest {
		s.longest, s.from = silence, s.heardAt
	}
	s.heardAt = max(s.heardAt, at) // a comment line may be known as a heartbeat only when the next block came
}

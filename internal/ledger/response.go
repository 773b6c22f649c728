package ledger

import (
	"bytes"
	"hash/crc64"
	"slices"
	"time"
)

// A ResponseState is how a response that ends by itself ended. Each response ends in exactly one state.
type ResponseState string

// The states of a response.
const (
	ResponseComplete   ResponseState = "complete"    // it ended with its terminal event
	ResponseTruncated  ResponseState = "truncated"   // it ended before its terminal event, or before the last chunk by the numbers in its text
	ResponseError      ResponseState = "error_event" // the service reported an error inside a response with the status 200
	ResponseRefused    ResponseState = "refused"     // there was no event stream: no connection, another status, another type
	ResponseEmpty      ResponseState = "empty"       // it had no content
	ResponseIdle       ResponseState = "idle"        // it was silent for too long; the client closed it
	ResponseLingering  ResponseState = "lingering"   // the stream stayed open after the terminal event
	ResponseAfterDone  ResponseState = "after_done"  // something came after the terminal event
	ResponseUnfinished ResponseState = "unfinished"  // it was open when the run ended
	ResponseAbandoned  ResponseState = "abandoned"   // the client left on purpose
)

// ResponseStates lists the states.
var ResponseStates = []ResponseState{
	ResponseComplete, ResponseTruncated, ResponseError, ResponseRefused, ResponseEmpty, ResponseIdle, ResponseLingering, ResponseAfterDone,
	ResponseUnfinished, ResponseAbandoned,
}

// A Closing is who closed the stream of a response.
type Closing int

// The server ends a stream in order, or it breaks; or the client closes it, because it is silent, because the run is over, or on
// purpose. Or it never opened.
const (
	ClosedInOrder Closing = iota
	ClosedBroken
	ClosedSilent
	ClosedAtEnd
	ClosedOnPurpose
	NeverOpened
)

// TogetherLimit is the longest time between two chunks that arrive together.
const TogetherLimit = time.Millisecond

// A Response accounts for the chunks of one response that ends by itself. The zero value is of a response that has not started. It is
// not safe for concurrent use.
type Response struct {
	// Due is when the request was to start, Started when it did, and Headers when the header of the response was complete.
	Due, Started, Headers Instant
	// First and Last are when the first and the last chunk with content arrived.
	First, Last, Ended Instant

	State      ResponseState // "" until it ended
	Incomplete bool          // the service cut the answer short, as it said
	Chunks     uint32        // with content
	Gaps       []uint32      // microseconds between two chunks with content
	Corrupted  uint64        // chunks that do not match the description, or their checksum

	wire, text      sequence // by the numbers of the service, and by those in the text
	textOf          uint64   // chunks of the whole answer, by the numbers in its text; 0: not known
	events          uint32
	done, afterDone uint32 // terminal events, and blocks after the first one
	failed          bool
	doneSeq         bool // the terminal event had a number

	sum, length    uint64 // of the text since the last statement
	sinceStatement uint64 // chunks since the last statement
	stated         bool
	unstated       uint64 // chunks that the service stated and that did not arrive, at least
	halved         bool   // a chunk has half a character, so that the text cannot be compared
	tokens         uint64 // that the service stated, plus 1; 0: none
}

// A Chunk is what a block of a response says of itself.
type Chunk struct {
	At                                Instant
	Done, Failed, Incomplete, Content bool
	Broken                            bool // it does not match the description
	Seq                               uint64
	HasSeq                            bool
}

// Block adds a block that is not a heartbeat.
func (r *Response) Block(c *Chunk) {
	r.events++
	if r.done > 0 {
		r.afterDone++
	}
	if c.Broken {
		r.Corrupted++
	}
	r.failed, r.Incomplete = r.failed || c.Failed, r.Incomplete || c.Incomplete
	if c.HasSeq && !r.wire.add(c.Seq) {
		r.Corrupted++
	}
	if c.Content {
		r.content(c.At)
	}
	if c.Done {
		r.done++
		r.doneSeq = r.doneSeq || c.HasSeq
	}
}

// content notes the arrival of content.
func (r *Response) content(at Instant) {
	r.Chunks++
	if r.Chunks == 1 {
		r.First = at
	} else {
		gap := at - r.Last
		r.Gaps = append(r.Gaps, uint32(min(max(gap.Microseconds(), 0), 1<<32-1)))
	}
	r.Last = at
}

// Numbered adds a chunk number that was found in the text, out of a total. A number that is not valid belongs to a
// changed chunk, or to another response.
func (r *Response) Numbered(k, of uint64, valid bool) {
	if !valid || !r.text.add(k) {
		r.Corrupted++
		return
	}
	r.textOf = max(r.textOf, of)
}

// IsNumbered reports whether a valid chunk number was found in the text.
func (r *Response) IsNumbered() bool { return r.text.started }

// table is that of the checksum of texts.
var table = crc64.MakeTable(crc64.ECMA)

// Text adds a part of the text that the service is going to state.
func (r *Response) Text(part []byte) {
	r.sinceStatement++
	r.length += uint64(len(part))
	r.sum = crc64.Update(r.sum, table, part)
	r.halved = r.halved || bytes.Contains(part, replacement)
}

// replacement stands for half a surrogate pair: a service that cuts its text into pieces of UTF-16 may put the halves of a character
// into two chunks.
var replacement = []byte("\ufffd")

// StateText compares what arrived since the last statement with the text that the service states.
func (r *Response) StateText(text []byte) {
	if r.halved {
		return
	}
	if r.length != uint64(len(text)) || r.sum != crc64.Checksum(text, table) {
		r.unstated++
	}
	r.reset()
}

// StateChunks compares the number of chunks since the last statement with the number that the service states.
func (r *Response) StateChunks(n uint64) {
	if n > r.sinceStatement {
		r.unstated += n - r.sinceStatement
	}
	r.wire.duplicated += r.sinceStatement - min(n, r.sinceStatement)
	r.reset()
}

// StateTokens bounds the number of chunks: each has at least one of the tokens that the service states. The last statement counts. Fewer
// chunks show nothing.
func (r *Response) StateTokens(n uint64) { r.tokens = n + 1 }

// beyondTokens returns the number of chunks with content beyond the stated number of tokens: they were duplicated.
func (r *Response) beyondTokens() uint64 {
	if r.tokens == 0 {
		return 0
	}
	return uint64(r.Chunks) - min(r.tokens-1, uint64(r.Chunks))
}

func (r *Response) reset() { r.sum, r.length, r.sinceStatement, r.stated = 0, 0, 0, true }

// Close ends the response.
func (r *Response) Close(at Instant, by Closing) {
	r.Ended, r.State = at, r.stateAfter(by)
}

func (r *Response) stateAfter(by Closing) ResponseState {
	switch {
	case by == NeverOpened:
		return ResponseRefused
	case r.failed:
		return ResponseError
	case r.afterDone > 0:
		return ResponseAfterDone
	case r.done > 0 && r.text.last < r.textOf:
		return ResponseTruncated
	case r.done > 0 && r.Chunks == 0, by == ClosedInOrder && r.events == 0:
		return ResponseEmpty
	case r.done > 0 && (by == ClosedSilent || by == ClosedAtEnd):
		return ResponseLingering
	case r.done > 0:
		return ResponseComplete
	case by == ClosedOnPurpose:
		return ResponseAbandoned
	case by == ClosedSilent:
		return ResponseIdle
	case by == ClosedAtEnd:
		return ResponseUnfinished
	}
	return ResponseTruncated
}

// Counts returns the counts of chunks: by the numbers in the text, else by those of the service, else of those with content. Only a
// response whose terminal event arrived is expected to have its last chunks.
func (r *Response) Counts() (c Totals) {
	by := r.wire
	switch {
	case r.text.started:
		by = r.text
		if r.done > 0 {
			by.last = max(by.last, r.textOf)
		}
	case !r.wire.started:
		c = Totals{Received: uint64(r.Chunks), Missed: r.unstated, Duplicated: r.wire.duplicated, Corrupted: min(r.Corrupted, uint64(r.Chunks))}
		c.Duplicated = max(c.Duplicated, r.beyondTokens())
		c.Received -= c.Corrupted
		c.Expected = c.Received + c.Missed + c.Corrupted
		return c
	}
	missed := by.missed()
	c = Totals{Received: by.received, Duplicated: by.duplicated, Reordered: by.reordered, Corrupted: r.Corrupted}
	c.Missed = missed - min(missed, r.Corrupted)
	if c.Missed+c.Duplicated+c.Reordered+c.Corrupted == 0 { // otherwise these explain why the text differs
		c.Missed = r.unstated
	}
	c.Expected = c.Received + c.Missed + c.Corrupted
	return c
}

// Missing returns the first number that did not arrive; false: none is known.
func (r *Response) Missing() (number uint64, ok bool) {
	by, last := &r.wire, r.wire.last
	if r.text.started {
		if by, last = &r.text, r.text.last; r.done > 0 {
			last = max(last, r.textOf)
		}
	}
	return by.next, by.started && by.next <= last
}

// TotalChunks returns how many chunks the whole answer has, by the numbers in its text; 0: not known.
func (r *Response) TotalChunks() uint64 { return r.textOf }

// A Coverage states which losses inside a complete response would have been noticed.
type Coverage int

// All losses; all but those of the last chunks; or none.
const (
	CoversAll Coverage = iota
	CoversAllButTail
	CoversNone
)

// Coverage returns the coverage of the response.
func (r *Response) Coverage() Coverage {
	switch {
	case r.text.started, r.stated, r.doneSeq:
		return CoversAll
	case r.wire.started:
		return CoversAllButTail
	}
	return CoversNone
}

// Begins returns the lowest number of the service; false: chunks are not counted by these, or a loss by what the service states alone.
func (r *Response) Begins() (number uint64, ok bool) {
	w := &r.wire
	byStatement := r.unstated > 0 && w.missed()+w.duplicated+w.reordered+r.Corrupted == 0
	return w.base, w.started && !r.text.started && !byStatement
}

// A sequence accounts for the numbers of one response, which begin at 0 or 1.
type sequence struct {
	base, next                      uint64   // the first number, and the lowest that has not arrived
	last                            uint64   // the highest that is expected
	ahead                           []uint64 // numbers above next that arrived, sorted
	received, duplicated, reordered uint64
	started                         bool
}

// farthest is how far ahead of the others a number may be.
const farthest = 1_000_000

// add adds a number. It returns false for one that cannot be part of the sequence.
func (s *sequence) add(n uint64) bool {
	if n > s.next+farthest {
		return false
	}
	if !s.started {
		s.started, s.base = true, min(n, 1)
		s.next = s.base
	}
	s.last = max(s.last, n)
	switch {
	case n < s.base:
		s.base = 0
		s.received++
		s.reordered++
	case n < s.next:
		s.duplicated++
	case n == s.next:
		if len(s.ahead) > 0 {
			s.reordered++
		}
		s.received++
		s.next++
		for len(s.ahead) > 0 && s.ahead[0] == s.next {
			s.next++
			s.ahead = s.ahead[1:]
		}
	default:
		i, repeated := slices.BinarySearch(s.ahead, n)
		if repeated {
			s.duplicated++
			return true
		}
		if i < len(s.ahead) {
			s.reordered++
		}
		s.received++
		s.ahead = slices.Insert(s.ahead, i, n)
	}
	return true
}

// missed returns how many numbers up to the last one did not arrive.
func (s *sequence) missed() uint64 {
	if !s.started {
		return 0
	}
	return s.last + 1 - s.base - s.received
}

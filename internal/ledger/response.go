package ledger

import (
	"bytes"
	"hash/crc64"
	"slices"
	"time"
)

// A ResponseState is the final state of a response that ends by itself. Each response ends in exactly one state.
type ResponseState string

// The states of a response.
const (
	ResponseComplete   ResponseState = "complete"    // ended with its terminal event
	ResponseTruncated  ResponseState = "truncated"   // ended before its terminal event or its last chunk number
	ResponseError      ResponseState = "error_event" // the service reported an error inside a response with status 200
	ResponseRefused    ResponseState = "refused"     // no event stream: no connection, wrong status or wrong type
	ResponseEmpty      ResponseState = "empty"       // no event before a normal end, or no content before the terminal event
	ResponseIdle       ResponseState = "idle"        // silent for too long, so the client closed the stream
	ResponseLingering  ResponseState = "lingering"   // the stream stayed open after the terminal event
	ResponseAfterDone  ResponseState = "after_done"  // an event arrived after the terminal event
	ResponseUnfinished ResponseState = "unfinished"  // open when the run ended
	ResponseAbandoned  ResponseState = "abandoned"   // the client disconnected on purpose
)

// ResponseStates lists the states.
var ResponseStates = []ResponseState{
	ResponseComplete, ResponseTruncated, ResponseError, ResponseRefused, ResponseEmpty, ResponseIdle, ResponseLingering, ResponseAfterDone,
	ResponseUnfinished, ResponseAbandoned,
}

// A Closing is the way in which the stream of a response was closed.
type Closing int

// The closings of a stream.
const (
	ClosedInOrder   Closing = iota // the server ended the stream normally
	ClosedBroken                   // the connection failed
	ClosedSilent                   // the client closed the stream, because the server was silent
	ClosedAtEnd                    // the client closed the stream, because the run ended
	ClosedOnPurpose                // the client abandoned the response
	NeverOpened                    // the stream was not opened
)

// TogetherLimit is an exclusive limit: two chunks or messages arrive together if the time between them is shorter.
const TogetherLimit = time.Millisecond

// A Response counts the chunks of one response that ends by itself. The zero value is a response that has not started.
// It is not safe for concurrent use.
type Response struct {
	// Due is the intended start of the request, and Started is the actual start. Headers is the arrival of the headers.
	Due, Started, Headers Instant
	// First and Last are the arrival times of the first and the last chunk with content. Ended is the time of Close.
	First, Last, Ended Instant

	State      ResponseState // "" before Close
	Incomplete bool          // the service reported that it shortened the response
	Chunks     uint32        // number of chunks with content
	Gaps       []uint32      // microseconds between successive chunks with content
	Corrupted  uint64        // chunks that do not match the description or their checksum, and impossible numbers

	wire, text      sequence // by the numbers of the service, and by the numbers in the text
	textTotal       uint64   // number of chunks of the complete response, by the numbers in its text, or 0
	events          uint32   // number of blocks that are not heartbeats
	done, afterDone uint32   // number of terminal events, and of blocks after the first of them
	failed          bool
	doneNumbered    bool // the terminal event had a number

	// A statement of the service contains the text, or the number of chunks, since the previous statement.
	sum, length    uint64 // checksum and length of the text since the last statement
	sinceStatement uint64 // number of chunks since the last statement
	hasStatement   bool   // a statement was compared
	statedFaults   Totals // minimum number of chunks by which the response differs from the statements; StateChunks adds duplicates to wire
	splitCharacter bool   // a chunk contains half a character, so the text cannot be compared
	tokens         uint64 // stated number of tokens plus 1, or 0 if none was stated
}

// A Chunk is a block of a response, as the service description classifies it.
type Chunk struct {
	At                                Instant // arrival
	Done, Failed, Incomplete, Content bool    // terminal event, error event, report of a shortened response, content
	Corrupted                         bool    // the block does not match the description
	Seq                               uint64  // number of the service, if HasSeq
	HasSeq                            bool
}

// Block adds a block that is not a heartbeat.
func (r *Response) Block(c *Chunk) {
	r.events++
	if r.done > 0 {
		r.afterDone++
	}
	if c.Corrupted {
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
		r.doneNumbered = r.doneNumbered || c.HasSeq
	}
}

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

// AddNumber adds a chunk number from the text, and the total that the text states. An invalid number, which belongs to
// a changed chunk or to another response, counts as corrupted.
func (r *Response) AddNumber(k, total uint64, valid bool) {
	if !valid || !r.text.add(k) {
		r.Corrupted++
		return
	}
	r.textTotal = max(r.textTotal, total)
}

// IsNumbered reports whether a valid chunk number was found in the text.
func (r *Response) IsNumbered() bool { return r.text.started }

var crcTable = crc64.MakeTable(crc64.ECMA)

// Text adds a part of the text. StateText or StateChunks compares it with a later statement of the service.
func (r *Response) Text(part []byte) {
	r.sinceStatement++
	r.length += uint64(len(part))
	r.sum = crc64.Update(r.sum, crcTable, part)
	r.splitCharacter = r.splitCharacter || bytes.Contains(part, replacement)
}

// replacement replaces half of a surrogate pair. A service that splits its text in UTF-16 may put the halves of a
// character into two chunks.
var replacement = []byte("\ufffd")

// StateText compares the received text since the last statement with the text that the service states. A difference
// counts as one chunk: missing if the received text is shorter, duplicated if it is longer, and corrupted if it has the
// same length. If any chunk contains half a character, StateText does nothing.
func (r *Response) StateText(text []byte) {
	if r.splitCharacter {
		return
	}
	switch length := uint64(len(text)); {
	case r.length < length:
		r.statedFaults.Missed++
	case r.length > length:
		r.statedFaults.Duplicated++
	case r.sum != crc64.Checksum(text, crcTable):
		r.statedFaults.Corrupted++
	}
	r.reset()
}

// StateChunks compares the number of chunks since the last statement with the number that the service states. Too few
// chunks count as missing, and too many as duplicated.
func (r *Response) StateChunks(n uint64) {
	if n > r.sinceStatement {
		r.statedFaults.Missed += n - r.sinceStatement
	}
	r.wire.duplicated += r.sinceStatement - min(n, r.sinceStatement)
	r.reset()
}

// StateTokens sets the number of tokens that the service states. It is the maximum number of chunks, because each chunk
// has at least one token. The last statement counts.
func (r *Response) StateTokens(n uint64) { r.tokens = n + 1 }

// surplusChunks returns the number of chunks with content beyond the stated number of tokens, which must be duplicates.
func (r *Response) surplusChunks() uint64 {
	if r.tokens == 0 {
		return 0
	}
	return uint64(r.Chunks) - min(r.tokens-1, uint64(r.Chunks))
}

func (r *Response) reset() { r.sum, r.length, r.sinceStatement, r.hasStatement = 0, 0, 0, true }

// Close ends the response at an instant, and sets its State.
func (r *Response) Close(at Instant, closing Closing) {
	r.Ended, r.State = at, r.finalState(closing)
}

// finalState returns the final state. The cases are in order of precedence.
func (r *Response) finalState(closing Closing) ResponseState {
	switch {
	case closing == NeverOpened:
		return ResponseRefused
	case r.failed:
		return ResponseError
	case r.afterDone > 0:
		return ResponseAfterDone
	case r.done > 0 && r.text.last < r.textTotal:
		return ResponseTruncated
	case r.done > 0 && r.Chunks == 0, closing == ClosedInOrder && r.events == 0:
		return ResponseEmpty
	case r.done > 0 && (closing == ClosedSilent || closing == ClosedAtEnd):
		return ResponseLingering
	case r.done > 0:
		return ResponseComplete
	case closing == ClosedOnPurpose:
		return ResponseAbandoned
	case closing == ClosedSilent:
		return ResponseIdle
	case closing == ClosedAtEnd:
		return ResponseUnfinished
	}
	return ResponseTruncated
}

// Totals returns the counts of chunks. They are based on the numbers in the text, or else on the numbers of the
// service, or, without any numbers, on content. The last chunks are expected only if the terminal event arrived.
func (r *Response) Totals() (c Totals) {
	if s := r.numbers(); s.started {
		missed := s.missed()
		c = Totals{Received: s.received, Duplicated: s.duplicated, Reordered: s.reordered, Corrupted: r.Corrupted}
		c.Missed = missed - min(missed, r.Corrupted)
		if c.Missed+c.Duplicated+c.Reordered+c.Corrupted == 0 { // otherwise these faults explain why the text differs
			f := r.statedFaults
			f.Corrupted = min(f.Corrupted, c.Received)
			c.Missed, c.Duplicated, c.Corrupted, c.Received = f.Missed, f.Duplicated, f.Corrupted, c.Received-f.Corrupted
		}
	} else {
		f := r.statedFaults
		c = Totals{Missed: f.Missed, Duplicated: max(s.duplicated+f.Duplicated, r.surplusChunks()), Corrupted: min(max(r.Corrupted, f.Corrupted), uint64(r.Chunks))}
		c.Received = uint64(r.Chunks) - c.Corrupted
	}
	c.Expected = c.Received + c.Missed + c.Corrupted
	return c
}

// numbers returns the sequence by which chunks are counted. Its field started is false if no chunk has a number.
func (r *Response) numbers() sequence {
	if !r.text.started {
		return r.wire
	}
	s := r.text
	if r.done > 0 {
		s.last = max(s.last, r.textTotal)
	}
	return s
}

// Missing returns the first number that did not arrive. ok is false if no number is known to be missing.
func (r *Response) Missing() (number uint64, ok bool) {
	s := r.numbers()
	return s.next, s.started && s.next <= s.last
}

// TotalChunks returns the number of chunks of the complete response, by the numbers in its text, or 0 if it is unknown.
func (r *Response) TotalChunks() uint64 { return r.textTotal }

// A Coverage states which losses inside a complete response would have been detected.
type Coverage int

// The coverages.
const (
	CoversAll        Coverage = iota // all losses
	CoversAllButTail                 // all losses except losses of the last chunks
	CoversNone                       // no loss
)

// Coverage returns the coverage of the response.
func (r *Response) Coverage() Coverage {
	switch {
	case r.text.started, r.hasStatement, r.doneNumbered:
		return CoversAll
	case r.wire.started:
		return CoversAllButTail
	}
	return CoversNone
}

// FirstNumber returns the number from which the service numbers chunks: 0 or 1. ok is false if chunks are counted in
// a different way, or only a statement of the service shows a fault.
func (r *Response) FirstNumber() (number uint64, ok bool) {
	w := &r.wire
	byStatement := r.statedFaults != Totals{} && w.missed()+w.duplicated+w.reordered+r.Corrupted == 0
	return w.base, w.started && !r.text.started && !byStatement
}

// A sequence counts the numbers of one response, which start at 0 or 1.
type sequence struct {
	base, next                      uint64   // first number, and lowest number that has not arrived
	last                            uint64   // highest expected number
	queue                           []uint64 // numbers above next that arrived, sorted
	received, duplicated, reordered uint64
	started                         bool
}

// maxDistance is the maximum by which a number may exceed the lowest number that has not arrived.
const maxDistance = 1_000_000

// add adds a number. It returns false if the number cannot be part of the sequence.
func (s *sequence) add(n uint64) bool {
	if n > s.next+maxDistance {
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
		if len(s.queue) > 0 {
			s.reordered++
		}
		s.received++
		s.next++
		for len(s.queue) > 0 && s.queue[0] == s.next {
			s.next++
			s.queue = s.queue[1:]
		}
	default:
		i, repeated := slices.BinarySearch(s.queue, n)
		if repeated {
			s.duplicated++
			return true
		}
		if i < len(s.queue) {
			s.reordered++
		}
		s.received++
		s.queue = slices.Insert(s.queue, i, n)
	}
	return true
}

func (s *sequence) missed() uint64 {
	if !s.started {
		return 0
	}
	return s.last + 1 - s.base - s.received
}

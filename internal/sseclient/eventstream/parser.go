package eventstream

import (
	"io"
	"math"
	"time"
)

const (
	// smallBuffer is what a waiting parser holds.
	smallBuffer = 512
	// largeBuffer is how far the read buffer grows while reads keep filling it.
	largeBuffer = 32 << 10
	// patience is how many reads, or events, in a row must fit the small buffer before
	// a grown one is dropped, so that a stream of longer events does not allocate for
	// each, and one long event does not stay in memory for hours.
	patience = 8
	// DefaultLimit bounds a line, and the data of an event, in bytes.
	DefaultLimit = 1 << 20
)

// Parser reads events from a byte stream. The zero value must be given a stream
// with Reset. It is for one goroutine.
//
// It never looks past the bytes it was given: an event is returned as soon as the
// first byte of its blank line's end has been read, be it CR or LF.
type Parser struct {
	r         io.Reader
	id        []byte // "last event ID string"
	reconnect time.Duration
	*work     // nil: nothing of a block has come; see Borrow
	limit     int32
	skipLF    bool // the last line ended with CR: an LF that follows belongs to it
	bomDone   bool
}

// New returns a parser over r with [DefaultLimit].
func New(r io.Reader) *Parser {
	p := new(Parser)
	p.Reset(r, DefaultLimit)
	return p
}

// Reset starts a new stream and forgets all of the former one but its last event
// ID and its reconnection time, as browsers do when they reconnect. limit, in
// bytes, bounds a line, and the data of one event; 0 means [DefaultLimit]. A comment
// line that is longer is read as an empty one, and of the comments of one block the
// latest are kept.
func (p *Parser) Reset(r io.Reader, limit int) {
	if limit <= 0 {
		limit = DefaultLimit
	}
	*p = Parser{r: r, limit: int32(min(limit, math.MaxInt32)), id: p.id, reconnect: p.reconnect, work: p.work.emptied()}
}

// LastEventID returns the last event ID string, what a reconnect sends, valid until the
// next call of Next. A block that dispatched no event sets it too, one that the end of
// the stream cut off does not.
func (p *Parser) LastEventID() []byte { return p.id }

// SetLastEventID sets the last event ID string of an event source that has received nothing yet.
func (p *Parser) SetLastEventID(id string) { p.id = []byte(id) }

// ReconnectionTime returns the latest valid retry field, 0 and false before one.
func (p *Parser) ReconnectionTime() (time.Duration, bool) {
	return p.reconnect - 1, p.reconnect > 0
}

// Release gives back the buffers, lent ones too; Reset makes the parser usable again.
func (p *Parser) Release() {
	if p.work != nil && p.shared {
		p.emptied()
	}
	*p = Parser{id: p.id, reconnect: p.reconnect}
}

// Next reads up to the end of the next block that dispatches an event and fills e.
//
// It returns io.EOF when the stream ended and no event was lost by it: after a blank line, before its first byte, or
// after whole lines that are part of no event, which are comments, retry and unknown fields. It returns
// io.ErrUnexpectedEOF when the stream ended inside a line or an event, which the standard discards (section 9.2.6,
// end of file), [ErrTooLong], or the error of the reader as it is. After an error of the reader the state is kept: if
// the reader can continue (a deadline), so can Next.
func (p *Parser) Next(e *Event) error {
	p.begin()
	for {
		line, ok, err := p.readLine()
		if err != nil {
			return err
		}
		if !ok {
			if err := p.fill(); err != nil {
				return err
			}
			continue
		}
		if len(line) == 0 {
			if p.dispatch(e, false) {
				return nil
			}
			p.recycleTold()
			continue
		}
		if err := p.field(line); err != nil {
			return err
		}
		p.note(len(line))
		p.line = p.recycle(p.line)
	}
}

// begin readies a call of Next.
func (p *Parser) begin() {
	if p.work == nil {
		p.work = new(work)
	}
	p.recycleTold()
}

// recycleTold empties the buffers of what the last call told of.
func (p *Parser) recycleTold() {
	if p.reported {
		p.data, p.name, p.comment, p.line = p.recycle(p.data), p.recycle(p.name), p.recycle(p.comment), p.recycle(p.line)
		p.reported = false
	}
}

// dispatch ends a block. It fills e and reports true unless the block had no data
// field and is not asked for; the id and the retry time of such a block stay in force.
func (p *Parser) dispatch(e *Event, everyBlock bool) bool {
	if p.hasID {
		p.id = append(p.id[:0], p.nextID...)
	}
	fire := p.hasData || everyBlock
	if fire {
		*e = Event{
			ID: p.id, Name: p.name, Data: p.data, Comment: p.comment,
			Retry: p.retry, HasID: p.hasID, HasRetry: p.hasRetry,
		}
	}
	if p.long > 0 {
		p.long--
	}
	p.note(len(p.data))
	p.note(len(p.comment))
	p.reported = true
	p.retry = 0
	p.hasData, p.hasComment, p.hasID, p.hasRetry, p.partial, p.event = false, false, false, false, false, false
	return fire
}

// note takes down that a field of n bytes went by.
func (p *Parser) note(n int) {
	if n > smallBuffer {
		p.long = patience
	}
}

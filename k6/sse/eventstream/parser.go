package eventstream

import (
	"io"
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
	r          io.Reader
	err        error // came with the last bytes, for the next read
	buf        []byte
	pos, end   int
	limit      int
	line       []byte // the start of a line whose end has not been read yet
	data       []byte
	name       []byte
	comment    []byte
	id         []byte // "last event ID string"
	nextID     []byte // "last event ID buffer", where hasID says that it differs
	reconnect  time.Duration
	retry      time.Duration
	small      uint8 // reads in a row that would have fitted the small buffer
	long       uint8 // counts down from patience after a field too long for it
	hasData    bool
	hasComment bool
	hasID      bool
	hasRetry   bool
	begun      bool // bytes of a block have been read since its last blank line
	event      bool // a field of an event among them: data, event or id
	comments   bool // and these were whole comment lines, no field: set by NextPart alone
	skipping   bool // in the middle of a comment line that is over the limit
	borrowed   bool // buf is not ours
	told       bool // the buffers have what the last call told of
	skipLF     bool // the last line ended with CR: an LF that follows belongs to it
	bomDone    bool
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
	*p = Parser{
		r: r, limit: limit, buf: p.buf, id: p.id, nextID: p.nextID, reconnect: p.reconnect,
		data: p.data[:0], name: p.name[:0], comment: p.comment[:0], line: p.line[:0],
	}
}

// Borrow has the parser read into a buffer of the caller's, so that it needs none of its
// own while it waits for bytes. nil gives it back: when Next has returned an error of the
// reader, nothing is left in it.
func (p *Parser) Borrow(buf []byte) {
	p.buf, p.borrowed, p.pos, p.end = buf, buf != nil, 0, 0
}

// LastEventID returns the last event ID string, what a reconnect sends, valid until the
// next call of Next. A block that dispatched no event sets it too, one that the end of
// the stream cut off does not.
func (p *Parser) LastEventID() []byte { return p.id }

// ReconnectionTime returns the latest valid retry field, 0 and false before one.
func (p *Parser) ReconnectionTime() (time.Duration, bool) {
	return p.reconnect - 1, p.reconnect > 0
}

// Release gives back the buffers; Reset makes the parser usable again.
func (p *Parser) Release() {
	*p = Parser{id: p.id, reconnect: p.reconnect}
}

// Next reads up to the end of the next block that dispatches an event and fills e.
//
// It returns io.EOF when the stream ended and no event was lost by it: after a blank
// line, before its first byte, or after whole lines that are part of no event, which are
// comments, retry and unknown fields. It returns io.ErrUnexpectedEOF when the stream
// ended inside a line or an event, which the standard discards (section 9.2.6, end of
// file), [ErrTooLong], or the error of the reader
// as it is. After an error of the reader the state is kept: where the reader can
// go on (a deadline), so can Next.
func (p *Parser) Next(e *Event) error {
	p.giveBack()
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
			p.giveBack()
			continue
		}
		if err := p.field(line); err != nil {
			return err
		}
		p.note(len(line))
		p.line = p.recycle(p.line)
	}
}

// giveBack recycles what the last call told of.
func (p *Parser) giveBack() {
	if p.told {
		p.data, p.name, p.comment, p.line = p.recycle(p.data), p.recycle(p.name), p.recycle(p.comment), p.recycle(p.line)
		p.told = false
	}
}

// dispatch ends a block. It fills e and reports true unless the block had no data
// field and is not asked for; the id and the retry time of such a block stay in force.
func (p *Parser) dispatch(e *Event, always bool) bool {
	if p.hasID {
		p.id, p.nextID = p.nextID, p.id
	}
	fire := p.hasData || always
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
	p.told = true
	p.retry = 0
	p.hasData, p.hasComment, p.hasID, p.hasRetry, p.begun, p.event = false, false, false, false, false, false
	return fire
}

// note takes down that a field of n bytes went by.
func (p *Parser) note(n int) {
	if n > smallBuffer {
		p.long = patience
	}
}

package eventstream

import (
	"bytes"
	"errors"
	"fmt"
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
	borrowed   bool // buf is not ours
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
// bytes, bounds a line, and the data and the comments of one block; 0 means
// [DefaultLimit].
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
// It returns io.EOF when the stream ended after a blank line or before its first
// byte, io.ErrUnexpectedEOF when it ended inside a block, which the standard
// discards (section 9.2.6, end of file), [ErrTooLong], or the error of the reader
// as it is. After an error of the reader the state is kept: where the reader can
// go on (a deadline), so can Next.
func (p *Parser) Next(e *Event) error {
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
			if p.dispatch(e) {
				return nil
			}
			continue
		}
		if err := p.field(line); err != nil {
			return err
		}
		p.note(len(line))
		p.line = p.recycle(p.line)
	}
}

// readLine takes the next whole line out of the buffer, without its end (section
// 9.2.5: CRLF, LF or CR). Where the buffer holds none, what there is goes to p.line.
func (p *Parser) readLine() (line []byte, ok bool, err error) {
	if p.pos == p.end {
		return nil, false, nil
	}
	if p.skipLF {
		p.skipLF = false
		if p.buf[p.pos] == '\n' {
			p.pos++
		}
	}
	rest := p.buf[p.pos:p.end]
	if len(rest) == 0 {
		return nil, false, nil
	}
	n := bytes.IndexByte(rest, '\n')
	head := rest
	if n >= 0 {
		head = rest[:n]
	}
	if cr := bytes.IndexByte(head, '\r'); cr >= 0 {
		n = cr
		p.skipLF = true
	}
	whole := n >= 0
	if !whole {
		n = len(rest)
	}
	if len(p.line)+n > p.limit {
		return nil, false, fmt.Errorf("%w of %d bytes (one line)", ErrTooLong, p.limit)
	}
	line = rest[:n]
	if !whole || len(p.line) > 0 {
		p.line = append(p.line, line...)
		line = p.line
	}
	p.pos += n
	if !whole {
		return nil, false, nil
	}
	p.pos++ // the LF or CR
	return p.withoutBOM(line), true, nil
}

// withoutBOM strips one U+FEFF from the first line of the stream.
func (p *Parser) withoutBOM(line []byte) []byte {
	if !p.bomDone {
		p.bomDone = true
		line = bytes.TrimPrefix(line, []byte("\xEF\xBB\xBF"))
	}
	return line
}

// field processes one line that is not blank, section 9.2.6.
func (p *Parser) field(line []byte) error {
	p.begun = true
	name, value, colon := bytes.Cut(line, []byte{':'})
	if colon && len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	switch string(name) {
	case "data":
		return p.join(&p.data, &p.hasData, value, "data")
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			p.nextID = append(p.nextID[:0], value...)
			p.hasID = true
		}
	case "event":
		p.name = append(p.name[:0], value...)
	case "retry":
		p.setRetry(value)
	case "":
		if colon {
			return p.join(&p.comment, &p.hasComment, value, "comments")
		}
	}
	return nil
}

// join appends a value to a buffer of values separated by LF.
func (p *Parser) join(to *[]byte, has *bool, value []byte, what string) error {
	if len(*to)+len(value) > p.limit {
		return fmt.Errorf("%w of %d bytes (%s)", ErrTooLong, p.limit, what)
	}
	if *has {
		*to = append(*to, '\n')
	}
	*to = append(*to, value...)
	*has = true
	return nil
}

// setRetry takes a value of ASCII digits only, in milliseconds. One too large for
// a time.Duration is held at the largest whole hour that fits in a century.
func (p *Parser) setRetry(value []byte) {
	const longest = 100 * 365 * 24 * time.Hour
	if len(value) == 0 {
		return
	}
	var ms int64
	for _, c := range value {
		if c < '0' || c > '9' {
			return
		}
		if ms < int64(longest/time.Millisecond) {
			ms = ms*10 + int64(c-'0')
		}
	}
	p.retry = min(time.Duration(min(ms, int64(longest/time.Millisecond)))*time.Millisecond, longest)
	p.hasRetry = true
	p.reconnect = p.retry + 1 // 0 stands for "never set"
}

// dispatch ends a block. It fills e and reports true unless the block had no data
// field; the id and the retry time of such a block stay in force.
func (p *Parser) dispatch(e *Event) bool {
	if p.hasID {
		p.id, p.nextID = p.nextID, p.id
	}
	fire := p.hasData
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
	p.data, p.name, p.comment = p.recycle(p.data), p.recycle(p.name), p.recycle(p.comment)
	p.line = p.recycle(p.line)
	p.retry = 0
	p.hasData, p.hasComment, p.hasID, p.hasRetry, p.begun = false, false, false, false, false
	return fire
}

// note takes down that a field of n bytes went by.
func (p *Parser) note(n int) {
	if n > smallBuffer {
		p.long = patience
	}
}

// recycle empties a buffer for its next use. The bytes an Event still points to
// are overwritten only by a later call of Next.
func (p *Parser) recycle(b []byte) []byte {
	if cap(b) > largeBuffer || cap(b) > smallBuffer && p.long == 0 {
		return nil
	}
	return b[:0]
}

// fill reads once. The buffer doubles while reads fill it to the brim and is
// dropped for a small one when they no longer need it.
func (p *Parser) fill() error {
	p.resize()
	p.pos, p.end = 0, 0
	for range 100 {
		err := p.err
		if err == nil {
			p.end, err = p.r.Read(p.buf)
		}
		p.err = nil
		if p.end > 0 {
			p.err = err
			return nil
		}
		if errors.Is(err, io.EOF) && (p.begun || p.unfinishedLine()) {
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// resize fits the buffer to what the last read brought, p.end bytes.
func (p *Parser) resize() {
	switch {
	case p.borrowed:
	case p.buf == nil:
		p.buf = make([]byte, smallBuffer)
	case p.end == len(p.buf) && len(p.buf) < largeBuffer:
		p.buf = make([]byte, 2*len(p.buf))
		p.small = 0
	case p.end >= smallBuffer:
		p.small = 0
	case len(p.buf) > smallBuffer:
		if p.small++; p.small == patience {
			p.buf = make([]byte, smallBuffer)
			p.small = 0
		}
	}
}

// unfinishedLine says that a line was begun; a lone byte order mark is none.
func (p *Parser) unfinishedLine() bool {
	return len(p.line) > 0 && (p.bomDone || string(p.line) != "\xEF\xBB\xBF")
}

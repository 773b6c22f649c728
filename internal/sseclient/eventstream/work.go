package eventstream

import (
	"bytes"
	"time"
)

// A work is the state of a parser from the first byte of a block to its end. Most parsers have none of their own: a
// block usually arrives at once, and they read it with a borrowed work.
type work struct {
	err          error // of the last read that also returned bytes; for the next read
	buf          []byte
	pos, end     int
	line         []byte // the start of an incomplete line
	data         []byte
	name         []byte
	comment      []byte
	nextID       []byte // "last event ID buffer", if hasID is set
	retry        time.Duration
	longFields   uint8 // blocks until long fields are no longer expected
	hasData      bool
	hasComment   bool
	hasID        bool
	hasRetry     bool
	partial      bool // a line has been read since the last blank line
	event        bool // one of these lines is a field of an event: data, event or id
	comments     bool // all of these lines are comments; only NextPart sets it
	skipsComment bool // inside a comment line over the limit
	isShared     bool // parsers borrow this work one after the other
	returned     bool // the buffers have the block that the last call returned
}

// reset empties the buffers and clears everything else. w may be nil.
func (w *work) reset() *work {
	if w != nil {
		*w = work{
			buf: w.buf, data: w.data[:0], name: w.name[:0], comment: w.comment[:0], line: w.line[:0], nextID: w.nextID[:0],
			isShared: w.isShared,
		}
	}
	return w
}

// pending reports whether a part of a line or of a block has arrived.
func (w *work) pending() bool {
	return w.partial || w.skipsComment || len(w.line) > 0 || w.err != nil
}

// Borrow makes the parser use a buffer and a Block of the caller until Return. Many parsers can share these, one
// after the other, so that a waiting parser has no buffers.
func (p *Parser) Borrow(buf []byte, b *Block) {
	if p.work == nil {
		if b.work == nil {
			b.work = &work{isShared: true}
		}
		p.work = b.work
	}
	p.buf, p.pos, p.end = buf, 0, 0
}

// Return ends the use of the borrowed buffer and Block, after Next has returned an error of the reader. The parser
// keeps a copy of an incomplete block.
func (p *Parser) Return() {
	w := p.work
	w.buf = nil
	switch {
	case w.isShared && w.pending():
		p.work = w.clone()
	case w.isShared, !w.pending() && w.longFields == 0:
		p.work = nil
	}
}

// clone moves the content of a shared work to a new one.
func (w *work) clone() *work {
	copied := *w
	copied.isShared = false
	for _, b := range []struct{ from, to *[]byte }{
		{&w.line, &copied.line}, {&w.data, &copied.data}, {&w.name, &copied.name}, {&w.comment, &copied.comment}, {&w.nextID, &copied.nextID},
	} {
		if cap(*b.from) > smallBuffer {
			*b.from = nil // the copy keeps this buffer
		} else {
			*b.to = bytes.Clone(*b.from)
		}
	}
	w.reset()
	return &copied
}

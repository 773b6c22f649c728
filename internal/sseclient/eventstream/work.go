package eventstream

import (
	"bytes"
	"time"
)

// work is what a parser needs from the first byte of a block to its end. Most of thousands have none: what comes of a block
// comes at once, and is taken with what the caller has lent.
type work struct {
	err        error // came with the last bytes, for the next read
	buf        []byte
	pos, end   int
	line       []byte // the start of a line whose end has not been read yet
	data       []byte
	name       []byte
	comment    []byte
	nextID     []byte // "last event ID buffer", if hasID is set
	retry      time.Duration
	small      uint8 // reads in a row that would have fitted the small buffer
	long       uint8 // counts down from patience after a field too long for it
	hasData    bool
	hasComment bool
	hasID      bool
	hasRetry   bool
	partial    bool // bytes of a block have been read since its last blank line
	event      bool // a field of an event among them: data, event or id
	comments   bool // and these were whole comment lines, no field: set by NextPart alone
	skipping   bool // in the middle of a comment line that is over the limit
	borrowed   bool // buf is not ours
	shared     bool // all of this is lent, to one parser after the other
	reported   bool // the buffers have what the last call told of
}

// emptied forgets all but the buffers. There may be none.
func (w *work) emptied() *work {
	if w != nil {
		*w = work{
			buf: w.buf, data: w.data[:0], name: w.name[:0], comment: w.comment[:0], line: w.line[:0], nextID: w.nextID[:0],
			shared: w.shared,
		}
	}
	return w
}

// pending reports whether a part of a line or of a block has arrived.
func (w *work) pending() bool {
	return w.partial || w.skipping || len(w.line) > 0 || w.err != nil
}

// Borrow has the parser read into a buffer of the caller's, and keep in b what it needs for a block, until Return. Many parsers
// can share these, one after the other: one that waits has none of its own.
func (p *Parser) Borrow(buf []byte, b *Block) {
	if p.work == nil {
		if b.work == nil {
			b.work = &work{shared: true}
		}
		p.work = b.work
	}
	p.buf, p.borrowed, p.pos, p.end = buf, true, 0, 0
}

// Return gives that back, when Next has returned an error of the reader. A block of which a part has come the parser takes
// with it.
func (p *Parser) Return() {
	w := p.work
	w.buf, w.borrowed = nil, false
	switch {
	case w.shared && w.pending():
		p.work = w.clone()
	case w.shared, !w.pending() && w.long == 0:
		p.work = nil
	}
}

// clone is a copy of lent work, which is as new then.
func (w *work) clone() *work {
	copied := *w
	copied.shared = false
	for _, b := range []struct{ from, to *[]byte }{
		{&w.line, &copied.line}, {&w.data, &copied.data}, {&w.name, &copied.name}, {&w.comment, &copied.comment}, {&w.nextID, &copied.nextID},
	} {
		if cap(*b.from) > smallBuffer {
			*b.from = nil // it goes with the block
		} else {
			*b.to = bytes.Clone(*b.from)
		}
	}
	w.emptied()
	return &copied
}

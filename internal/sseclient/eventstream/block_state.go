package eventstream

import (
	"bytes"
	"time"
)

// A blockState is the state of a parser from the first byte to the last byte of a block. A block usually arrives at
// once, so most parsers borrow a shared blockState to read the block, and have none of their own.
type blockState struct {
	err           error  // the error of the last read, if that read also returned bytes
	buf           []byte // the bytes of the last read
	pos, end      int    // the unread part of buf
	line          []byte // the start of an incomplete line
	data          []byte
	name          []byte
	comment       []byte
	nextID        []byte // "last event ID buffer", if hasID is set
	retry         time.Duration
	longFields    uint8 // number of blocks until long fields are no longer expected
	hasData       bool
	hasComment    bool
	hasID         bool
	hasRetry      bool
	hasLine       bool // a line has been read since the last blank line
	hasEventField bool // a line since the last blank line is a field of an event: data, event or id
	onlyComments  bool // all lines since the last blank line are comments
	skipsComment  bool // inside a comment line over the limit
	isShared      bool // parsers borrow this blockState one after the other
	isReturned    bool // the buffers have the block that the last call returned
}

// reset empties the buffers and clears the other fields, except buf and isShared. w may be nil.
func (w *blockState) reset() *blockState {
	if w != nil {
		*w = blockState{
			buf: w.buf, data: w.data[:0], name: w.name[:0], comment: w.comment[:0], line: w.line[:0], nextID: w.nextID[:0],
			isShared: w.isShared,
		}
	}
	return w
}

// pending reports whether the blockState must be kept: after a part of a line or a block, or an unreported error.
func (w *blockState) pending() bool {
	return w.hasLine || w.skipsComment || len(w.line) > 0 || w.err != nil
}

// Borrow makes the parser use a buffer and a Block of the caller until Return, so that waiting parsers have none.
func (p *Parser) Borrow(buf []byte, b *Block) {
	if p.blockState == nil {
		if b.blockState == nil {
			b.blockState = &blockState{isShared: true}
		}
		p.blockState = b.blockState
	}
	p.buf, p.pos, p.end = buf, 0, 0
}

// Return ends the use of the borrowed buffer and Block. The caller must call Return or Release when Next has returned
// an error of the reader. After Return, the parser keeps a copy of an incomplete block.
func (p *Parser) Return() {
	w := p.blockState
	w.buf = nil
	switch {
	case w.isShared && w.pending():
		p.blockState = w.clone()
	case w.isShared, !w.pending() && w.longFields == 0:
		p.blockState = nil
	}
}

// clone moves the content of a shared blockState to a new one.
func (w *blockState) clone() *blockState {
	copied := *w
	copied.isShared = false
	for _, b := range []struct{ from, to *[]byte }{
		{&w.line, &copied.line}, {&w.data, &copied.data}, {&w.name, &copied.name}, {&w.comment, &copied.comment}, {&w.nextID, &copied.nextID},
	} {
		if cap(*b.from) > smallBuffer {
			*b.from = nil // the new blockState keeps this buffer
		} else {
			*b.to = bytes.Clone(*b.from)
		}
	}
	w.reset()
	return &copied
}

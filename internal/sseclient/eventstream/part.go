package eventstream

import (
	"bytes"
	"time"
)

// A Part is what NextPart has read.
type Part uint8

const (
	// CommentLine is one line that begins with a colon, told when its line end has been read: some services
	// send such a line as their heartbeat, and no blank line after it for as long as there is no event.
	CommentLine Part = iota + 1
	// WholeBlock is all between two blank lines, told at the second.
	WholeBlock
)

// Block is a group of lines that a blank line has ended, whether it dispatches an event or not. A blank
// line that follows another is no block.
type Block struct {
	// Event is the block as Next would fill it in; of a block without data ID is the last event ID after it.
	// Its slices are valid until the next call.
	Event
	// HasData reports whether the block had a data field, even an empty one, and so dispatches an event.
	HasData bool
	// HasComment reports whether it had a comment line, even an empty one.
	HasComment bool
	// At is when the bytes came that ended it, where the reader of the stream sets it: no parser does.
	At time.Time

	work *work // see [Parser.Borrow]
}

// NextPart reads as Next does, and returns at the end of every comment line and of every block. Of a
// [CommentLine] it fills in b.Comment alone; the comments of a block come again with it.
//
// It differs from Next in one thing more, for services whose heartbeat is a comment line with no blank line
// after it: of the comments before the first field of a block the oldest are dropped where there are over
// 512 bytes of them, so that a stream of heartbeats does not grow.
//
// Like Next it allocates nothing per part.
func (p *Parser) NextPart(b *Block) (Part, error) {
	p.begin()
	for {
		line, ok, err := p.readLine()
		if err != nil {
			return 0, err
		}
		if !ok {
			if err := p.fill(); err != nil {
				return 0, err
			}
			continue
		}
		if len(line) == 0 {
			if p.endBlock(b) {
				return WholeBlock, nil
			}
			continue
		}
		comment := line[0] == ':'
		if comment {
			p.beginComment(len(line))
		} else {
			p.comments = false
		}
		if err := p.field(line); err != nil {
			return 0, err
		}
		p.note(len(line))
		if comment {
			value := len(bytes.TrimPrefix(line[1:], []byte{' '}))
			b.Event, b.HasData, b.HasComment = Event{Comment: p.comment[len(p.comment)-value:]}, false, true
		}
		p.line = p.recycle(p.line)
		if comment {
			return CommentLine, nil
		}
	}
}

// endBlock fills b at a blank line; false where no block has begun.
func (p *Parser) endBlock(b *Block) bool {
	if !p.partial {
		p.line = p.recycle(p.line) // it may hold a byte order mark
		return false
	}
	b.HasData, b.HasComment = p.hasData, p.hasComment
	p.comments = false
	p.dispatch(&b.Event, true)
	return true
}

// beginComment makes room for a comment line of n bytes at the head of a block.
func (p *Parser) beginComment(n int) {
	if !p.partial {
		p.comments = true
	}
	if p.comments && p.hasComment && len(p.comment)+n > smallBuffer {
		p.comment, p.hasComment = p.comment[:0], false
	}
}

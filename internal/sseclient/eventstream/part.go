package eventstream

import (
	"bytes"
	"time"
)

// A Part is the kind of input that NextPart has read.
type Part uint8

const (
	// CommentLine is a line that starts with a colon, returned at its end. It may be a heartbeat without a blank line.
	CommentLine Part = iota + 1
	// WholeBlock is a block, returned at its blank line.
	WholeBlock
)

// A Block is a group of lines up to a blank line, whether or not it dispatches an event. It has at least one line.
type Block struct {
	// Event has the fields of the block, as Next would return them. Its slices are valid until the next call.
	Event
	// HasData reports whether the block has a data field, even an empty one, and thus dispatches an event.
	HasData bool
	// HasComment reports whether the block has a comment line, even an empty one.
	HasComment bool
	// At is the arrival time of the last bytes. The reader of the stream sets it, not the parser.
	At time.Time

	blockState *blockState // see [Parser.Borrow]
}

// NextPart is Next for every comment line and every block. For a [CommentLine] it sets b.Comment and b.HasComment, and
// clears the other fields of the block. The block that follows contains the comment again.
//
// Before the first field of a block, NextPart drops the earlier comments if they exceed 512 bytes together with the new
// one. Heartbeats without a blank line would otherwise accumulate. Next keeps all comments.
//
// Like Next, it does not allocate per part.
func (p *Parser) NextPart(b *Block) (Part, error) { return p.nextPart(b, true) }

func (p *Parser) nextPart(b *Block, dropsComments bool) (Part, error) {
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
			p.beginComment(len(line), dropsComments)
		} else {
			p.onlyComments = false
		}
		if err := p.field(line); err != nil {
			return 0, err
		}
		p.noteFieldSize(len(line))
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

// endBlock fills b at a blank line, and reports whether there was a block.
func (p *Parser) endBlock(b *Block) bool {
	if !p.hasLine {
		p.line = p.recycle(p.line) // p.line may have a byte order mark
		return false
	}
	b.HasData, b.HasComment = p.hasData, p.hasComment
	p.onlyComments = false
	p.dispatch(&b.Event)
	return true
}

// beginComment prepares a comment line of n bytes. If drops is set, it limits the comments before the first field.
func (p *Parser) beginComment(n int, drops bool) {
	if !p.hasLine {
		p.onlyComments = true
	}
	if drops && p.onlyComments && p.hasComment && len(p.comment)+n > smallBuffer {
		p.comment, p.hasComment = p.comment[:0], false
	}
}

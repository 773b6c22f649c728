package eventstream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"
)

const (
	// readBuffer is the size of the read buffer of a parser that borrows none.
	readBuffer = 4 << 10
	// smallBuffer is the maximum size of the other buffers of a waiting parser, unless recent events were larger.
	smallBuffer = 512
	// largeBuffer is the maximum size of a kept buffer. Longer text uses pooled buffers; text longer than
	// pooledSize uses temporary buffers.
	largeBuffer = 32 << 10
	// eventsBeforeShrink is the number of successive small events after which larger buffers are dropped. Successive
	// long events thus use one buffer, and the buffer of a single long event does not stay in memory.
	eventsBeforeShrink = 8
	// DefaultLimit is the maximum size of a line, and of the data of an event, in bytes.
	DefaultLimit = 1 << 20
)

// A Parser reads events from a byte stream. Before its first use, a zero Parser needs a call to Reset. A Parser is not
// safe for concurrent use.
//
// It returns an event as soon as it has read the first byte, CR or LF, of the blank line that ends the event.
type Parser struct {
	r           io.Reader
	id          []byte        // "last event ID string"
	reconnect   time.Duration // reconnection time plus 1 ns; 0: never set
	*blockState               // nil: no part of a block has arrived; see Borrow
	limit       int32
	skipLF      bool // the last line ended with CR, so a following LF belongs to its end
	bomDone     bool // the first line was checked for a byte order mark
}

// New returns a parser over r with [DefaultLimit].
func New(r io.Reader) *Parser {
	p := new(Parser)
	p.Reset(r, DefaultLimit)
	return p
}

// Reset starts a new stream. It keeps only the last event ID and the reconnection time, as browsers do when they
// reconnect. limit is the maximum size in bytes of a line, and of the data of an event; 0 means [DefaultLimit]. A
// longer comment line is read as an empty one. If the comments of a block exceed the limit, only the latest are kept.
func (p *Parser) Reset(r io.Reader, limit int) {
	if limit <= 0 {
		limit = DefaultLimit
	}
	*p = Parser{r: r, limit: int32(min(limit, math.MaxInt32)), id: p.id, reconnect: p.reconnect, blockState: p.blockState.reset()}
}

// LastEventID returns the id that a reconnect sends. Each complete block with an id sets it. The slice is valid until
// the next call of Next.
func (p *Parser) LastEventID() []byte { return p.id }

// SetLastEventID sets the last event ID string before the first event.
func (p *Parser) SetLastEventID(id string) { p.id = []byte(id) }

// ReconnectionTime returns the value of the latest valid retry field. ok is false before such a field.
func (p *Parser) ReconnectionTime() (d time.Duration, ok bool) {
	return p.reconnect - 1, p.reconnect > 0
}

// Release releases all buffers. Reset makes the parser usable again.
func (p *Parser) Release() {
	if p.blockState != nil && p.isShared {
		p.reset()
	}
	*p = Parser{id: p.id, reconnect: p.reconnect}
}

// Next reads up to the end of the next block that dispatches an event, and stores the event in e.
//
// It returns io.EOF if the stream ended outside an event: after a blank line, before the first byte, or after
// comments, retry and unknown fields. It returns io.ErrUnexpectedEOF if the stream ended inside a line or an event,
// which the standard discards (section 9.2.6, end of file). Other errors are [ErrTooLong] and errors of the reader,
// which are not wrapped. If the reader can continue after an error, such as a deadline, so can Next.
func (p *Parser) Next(e *Event) error {
	var b Block
	for {
		part, err := p.nextPart(&b, false)
		if err != nil {
			return err
		}
		if part == WholeBlock && b.HasData {
			*e = b.Event
			return nil
		}
	}
}

// begin empties the buffers of the block that the last call of nextPart returned.
func (p *Parser) begin() {
	if p.blockState == nil {
		p.blockState = new(blockState)
	}
	if p.isReturned {
		p.data, p.name, p.comment, p.line = p.recycle(p.data), p.recycle(p.name), p.recycle(p.comment), p.recycle(p.line)
		p.isReturned = false
	}
}

func (p *Parser) dispatch(e *Event) {
	if p.hasID {
		p.id = append(p.id[:0], p.nextID...)
	}
	*e = Event{
		ID: p.id, Name: p.name, Data: p.data, Comment: p.comment,
		Retry: p.retry, HasID: p.hasID, HasRetry: p.hasRetry,
	}
	if p.longFields > 0 {
		p.longFields--
	}
	p.noteFieldSize(len(p.data))
	p.noteFieldSize(len(p.comment))
	p.isReturned = true
	p.retry = 0
	p.hasData, p.hasComment, p.hasID, p.hasRetry, p.hasLine, p.hasEventField = false, false, false, false, false, false
}

// noteFieldSize makes the parser keep large buffers for the next events if a field of n bytes needs one.
func (p *Parser) noteFieldSize(n int) {
	if n > smallBuffer {
		p.longFields = eventsBeforeShrink
	}
}

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
	// Event contains the fields of the block, as Next would return them. Its slices are valid until the next call.
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
// one. Heartbeats without a blank line would otherwise accumulate. Next keeps comments up to the limit of Reset.
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

// readLine returns the next line in the buffer, without the CRLF, LF or CR at its end (section 9.2.5). If the line is
// incomplete, readLine moves its bytes to p.line, and ok is false.
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
	unread := p.buf[p.pos:p.end]
	if len(unread) == 0 {
		return nil, false, nil
	}
	n := bytes.IndexByte(unread, '\n')
	head := unread
	if n >= 0 {
		head = unread[:n]
	}
	if cr := bytes.IndexByte(head, '\r'); cr >= 0 {
		n = cr
		p.skipLF = true
	}
	isComplete := n >= 0
	if !isComplete {
		n = len(unread)
	}
	if p.skipsComment || len(p.line)+n > int(p.limit) {
		return p.skipComment(unread, n, isComplete)
	}
	line = unread[:n]
	if !isComplete || len(p.line) > 0 {
		p.line = p.extend(p.line, line)
		line = p.line
	}
	p.pos += n
	if !isComplete {
		return nil, false, nil
	}
	p.pos++ // the LF or CR
	return p.withoutBOM(line), true, nil
}

// skipComment reads a comment line over the limit as an empty comment. Any other line over the limit is an error.
func (p *Parser) skipComment(unread []byte, n int, isComplete bool) (line []byte, ok bool, err error) {
	if !p.skipsComment {
		const prefixSize = len(byteOrderMark + ":")
		start := slices.Concat(p.line[:min(len(p.line), prefixSize)], unread[:min(n, prefixSize)])
		if !bytes.HasPrefix(p.withoutBOM(start), []byte{':'}) {
			return nil, false, fmt.Errorf("%w of %d bytes (one line)", ErrTooLong, p.limit)
		}
		p.line = append(p.recycle(p.line), ':')
	}
	p.skipsComment = !isComplete
	p.pos += n
	if isComplete {
		p.pos++
	}
	return p.line, isComplete, nil
}

const byteOrderMark = "\xEF\xBB\xBF"

// withoutBOM strips one U+FEFF from the first line of the stream.
func (p *Parser) withoutBOM(line []byte) []byte {
	if !p.bomDone {
		p.bomDone = true
		line = bytes.TrimPrefix(line, []byte(byteOrderMark))
	}
	return line
}

// fill reads bytes into the empty buffer. It returns io.ErrUnexpectedEOF if the stream ends inside a line or an event,
// and io.ErrNoProgress if the reader repeatedly returns nothing.
func (p *Parser) fill() error {
	if p.buf == nil {
		p.buf = make([]byte, readBuffer)
	}
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
		if errors.Is(err, io.EOF) && (p.hasEventField || p.hasUnfinishedLine()) {
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

func (p *Parser) hasUnfinishedLine() bool {
	return len(p.line) > 0 && (p.bomDone || string(p.line) != byteOrderMark)
}

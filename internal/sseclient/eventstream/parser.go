package eventstream

import (
	"io"
	"math"
	"time"
)

const (
	// readBuffer is the size of the read buffer of a parser that borrows none.
	readBuffer = 4 << 10
	// smallBuffer is the maximum size of the other buffers of a waiting parser, unless recent events were larger.
	smallBuffer = 512
	// largeBuffer is the maximum size of a kept buffer. Longer text uses pooled buffers, or temporary ones above
	// pooledSize.
	largeBuffer = 32 << 10
	// eventsBeforeShrink is the number of successive small events after which larger buffers are dropped. Long events
	// thus do not allocate each time, and a single one does not stay in memory.
	eventsBeforeShrink = 8
	// DefaultLimit is the maximum size of a line, and of the data of an event, in bytes.
	DefaultLimit = 1 << 20
)

// A Parser reads events from a byte stream. The zero value needs a call to Reset. One goroutine uses it.
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

// LastEventID returns the id that a reconnect sends, valid until the next Next. Each complete block with an id sets it.
func (p *Parser) LastEventID() []byte { return p.id }

// SetLastEventID sets the last event ID string before the first event.
func (p *Parser) SetLastEventID(id string) { p.id = []byte(id) }

// ReconnectionTime returns the value of the latest valid retry field. ok is false if there was none.
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

// begin prepares a call to nextPart. It empties the buffers of the block that the last call returned.
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

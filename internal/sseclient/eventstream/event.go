// Package eventstream reads the text/event-stream format of the HTML standard, sections 9.2.5 (parsing) and 9.2.6
// (interpreting), https://html.spec.whatwg.org/multipage/server-sent-events.html.
//
// A parser does not allocate for an event of up to 80 KB that arrives at once. A parser that borrows its buffers has
// none while it waits for its next event.
package eventstream

import (
	"errors"
	"time"
)

// An Event is a dispatched event. Its slices contain the bytes as received, which [Text] decodes. The slices belong to
// the parser and are valid until the next call of [Parser.Next].
type Event struct {
	// ID is the last event ID after this block: its own id, or the latest earlier one (section 9.2.6).
	ID []byte
	// Name is the value of the event field. If it is empty, the caller applies the default type "message".
	Name []byte
	// Data is the data buffer: the values of the data fields joined by one LF.
	Data []byte
	// Comment contains the comment lines of the block, without the colon and one leading space, joined by LF.
	Comment []byte
	// Retry is the reconnection time that this block sets, if HasRetry.
	Retry time.Duration
	// HasID reports whether this block has a valid id field, even an empty one.
	HasID bool
	// HasRetry reports whether this block has a valid retry field.
	HasRetry bool
}

// ErrTooLong is the error for a line other than a comment, or for the data of an event, that exceeds the limit of
// [Parser.Reset]. The parser cannot continue, because it cannot distinguish the rest of the line from an event.
var ErrTooLong = errors.New("event exceeds the size limit")

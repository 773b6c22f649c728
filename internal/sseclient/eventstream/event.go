// Package eventstream reads the text/event-stream format of the HTML standard,
// sections 9.2.5 (parsing) and 9.2.6 (interpreting),
// https://html.spec.whatwg.org/multipage/server-sent-events.html.
//
// It imports nothing of k6 and does no I/O of its own. A parser waiting for its
// next event holds one buffer of 512 bytes and allocates nothing per event.
package eventstream

import (
	"errors"
	"time"
)

// Event is one dispatched event. Its slices belong to the parser and are valid
// until the next call of [Parser.Next]: copy what is to be kept. They are the bytes
// that came: [Text] makes text of them.
type Event struct {
	// ID is the last event ID buffer after this event: the id of this event or,
	// where it carried none, of the latest one before that did (section 9.2.6,
	// "the buffer does not get reset").
	ID []byte
	// Name is the value of the event field, empty where there was none. The
	// standard's default type "message" is for the caller to fill in.
	Name []byte
	// Data is the data buffer: the values of the data fields joined by one LF.
	Data []byte
	// Comment holds the comment lines inside this event's block, each without its
	// colon and one leading space, joined by one LF. The standard ignores them.
	Comment []byte
	// Retry is the reconnection time this block asked for; see HasRetry.
	Retry time.Duration
	// HasID reports whether this very block had a valid id field, even an empty one.
	HasID bool
	// HasRetry reports whether this very block had a valid retry field.
	HasRetry bool
}

// ErrTooLong is returned, wrapped with the limit, when one line that is no comment, or
// the data of one event, exceeds the limit given to [Parser.Reset]. The parser is of no
// further use: the rest of the line cannot be told from an event.
var ErrTooLong = errors.New("event exceeds the size limit")

package faulty

import (
	"fmt"
	"time"
)

// A Kind is the effect of a fault on a stream.
type Kind int

const (
	// Lose drops the message.
	Lose Kind = iota + 1
	// Repeat sends the message twice in a row.
	Repeat
	// Swap sends the message after the next one of the stream. If the service ends the stream first, it sends the
	// message then.
	Swap
	// NoNumber replaces the message's number with a string; the JSON remains well-formed.
	NoNumber
	// OtherDigit adds two to the last digit of the message's number, modulo ten.
	OtherDigit
	// OtherMarker changes the last character of the run's marker.
	OtherMarker
	// OtherTime adds two to the last digit of the message's timestamp, modulo ten.
	OtherTime
	// Garble inserts a letter before the message's number, which makes the JSON malformed.
	Garble
	// Reset ends the stream with a TCP reset instead of sending the message.
	Reset
	// Close closes the connection without ending the response body, instead of sending the message.
	Close
	// End completes the response normally instead of sending the message.
	End
	// ResetAfter sends the message, and ends the stream with a TCP reset after Wait.
	ResetAfter
	// Truncate closes the connection in the middle of the message.
	Truncate
	// Vanish sends the message and nothing after it, but leaves the connection open.
	Vanish
	// Pause sends nothing for the duration Wait, and then the message and all later ones.
	Pause
)

func (k Kind) String() string {
	names := []string{
		"", "lose", "repeat", "swap", "no number", "other digit", "other marker", "other time", "garble", "reset", "close", "end",
		"reset after", "truncate", "vanish", "pause",
	}
	if k < 1 || int(k) >= len(names) {
		return fmt.Sprintf("fault %d", int(k))
	}
	return names[k]
}

// A Fault is an effect on one message of a stream. Streams are counted in the order of the service's responses, and
// messages per stream, both from 1. A reconnect opens another stream.
type Fault struct {
	Kind Kind
	// Topic, if not empty, limits the fault to the streams of this topic. Stream then counts only these streams.
	Topic string
	// Client, if not empty, limits the fault to the streams whose URL has this value of the parameter id.
	Client string
	// Stream is the number of the affected stream; 0: all streams.
	Stream int
	// Message is the position of the affected message in its stream; 0: the first.
	Message int
	// Number, if not 0, selects the message by its number instead of its position.
	Number int64
	// Once limits the fault to the first stream that it affects.
	Once bool
	// Wait is the delay of ResetAfter and Pause.
	Wait time.Duration
}

// A PublishKind is the effect of a fault on a publish request.
type PublishKind int

const (
	// Refuse responds with Status; the service does not receive the request.
	Refuse PublishKind = iota + 1
	// CutBefore closes the connection without a response; the service does not receive the request.
	CutBefore
	// CutAfter closes the connection without a response after the service has acknowledged the request.
	CutAfter
)

// A PublishFault is an effect on publish requests, which are counted in the order of their arrival.
type PublishFault struct {
	Kind PublishKind
	// Status is the status code of Refuse, such as 401 or 503.
	Status int
	// From is the first affected request, from 1; 0: the first.
	From int
	// Count is the number of affected requests; 0: all requests from From on.
	Count int
}

// An Action is the record of one effect.
type Action struct {
	At time.Time
	// Fault is the effect on a stream, Publish the effect on a publish request.
	Fault   Kind
	Publish PublishKind
	Status  int // status code sent by Refuse
	// Topic and Number identify the affected message.
	Topic  string
	Number int64
	// Client is the value of the parameter id in the stream's URL. Message is the position in the stream, from 1.
	Client  string
	Message int
}

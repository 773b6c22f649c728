package faulty

import (
	"fmt"
	"time"
)

// A Kind is the effect of a fault on a stream.
type Kind int

const (
	// Lose keeps a message back for good.
	Lose Kind = iota + 1
	// Repeat sends it twice, one after the other.
	Repeat
	// Swap sends it after the next message of the stream or, without one, when the service ends the stream.
	Swap
	// NoNumber replaces its number by a text; the JSON stays well-formed.
	NoNumber
	// OtherDigit adds two to the last digit of the message's number, modulo ten.
	OtherDigit
	// OtherMarker changes the last letter of the run's marker.
	OtherMarker
	// OtherTime adds two to the last digit of the message's timestamp, modulo ten.
	OtherTime
	// Garble makes the JSON around the number malformed.
	Garble
	// Reset ends the stream by a TCP reset, in place of the message.
	Reset
	// Close ends the connection without the end of the answer, in place of the message.
	Close
	// End ends the stream as a service would that means it, in place of the message.
	End
	// ResetAfter sends the message, and ends the stream by a TCP reset after Wait.
	ResetAfter
	// Truncate ends the connection in the middle of the message.
	Truncate
	// Vanish sends the message and then nothing, but leaves the connection open.
	Vanish
	// Pause sends the message, and all that follows, only after Wait.
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

// A Fault is an effect on one message of one stream. Messages are counted per stream, streams in the order of the
// service's responses, both from 1; a reconnect is another stream.
type Fault struct {
	Kind Kind
	// Topic, if not empty, limits the fault to the streams of this topic, which Stream then counts.
	Topic string
	// Client, if not empty, limits the fault to the streams of one client: the parameter id of their URL.
	Client string
	// Stream is the one that is concerned; 0: every one.
	Stream int
	// Message is the one that is concerned; 0: the first.
	Message int
	// Number, if not 0, selects the message by its number instead.
	Number int64
	// Once leaves a stream alone if the fault has concerned another one.
	Once bool
	Wait time.Duration
}

// A PublishKind is the effect of a fault on a publish request.
type PublishKind int

const (
	// Refuse answers Status in place of the service, which does not get the request.
	Refuse PublishKind = iota + 1
	// CutBefore ends the connection without an answer; the service does not get the request.
	CutBefore
	// CutAfter ends it without an answer when the service has confirmed the request.
	CutAfter
)

func (k PublishKind) String() string {
	switch k {
	case Refuse:
		return "refuse"
	case CutBefore:
		return "cut before the service"
	case CutAfter:
		return "cut after the service"
	}
	return fmt.Sprintf("publish fault %d", int(k))
}

// A PublishFault is an effect on publish requests, in the order of their arrival.
type PublishFault struct {
	Kind PublishKind
	// Status is that of Refuse: 401, 503.
	Status int
	// From is the first affected request, from 1; 0: the first.
	From int
	// Count is how many are; 0: all from there on.
	Count int
}

// An Action is one effect that the proxy applied.
type Action struct {
	At time.Time
	// Fault is the effect on a stream, Publish the effect on a publish request.
	Fault   Kind
	Publish PublishKind
	Status  int // that Refuse answered
	// Topic and Number are those of the message that was concerned. Of Swap, Next is the number of the other one.
	Topic        string
	Number, Next int64
	// Stream and Path identify the stream, in the order of all streams.
	Stream int
	Path   string
	// Client is the parameter id of the stream's URL, Message the place of the message in the stream, from 1.
	Client  string
	Message int
}

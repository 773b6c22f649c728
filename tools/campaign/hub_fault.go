package main

import (
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// Other effects of a fault on a message of a hub stream. hub_payload.go has more kinds.
const (
	hubMuted      = "mute"  // no more writes, not even heartbeats
	hubOtherTopic = "other" // sent to the streams of the next topic instead
	hubLeaks      = "leak"  // sent to those streams as well
	hubGap        = "gap"   // announces missing messages; the message arrives
)

// Effects of a fault on the request that publishes a message.
const (
	publishRefused          = "refuse"    // with its Status
	publishRefusedDelivered = "anyway"    // refused, and delivered
	publishDropped          = "hang up"   // no answer, and not delivered
	publishUnanswered       = "silently"  // no answer, and delivered
	publishHangs            = "forever"   // no answer, no end, and not delivered
	publishLost             = "swallow"   // confirmed, and not delivered
	publishStops            = "stop"      // so is everything from then on, of all topics
	publishLosesOne         = "loses one" // delivered to all but one of the streams
)

// A hubFault is a fault of a hub. The zero value is none.
type hubFault struct {
	fakeservice.Fault
	Every  int // only every nth of these messages; 0: each
	Offset int // added to a number

	Publish string // of the publisher
	Topics  []int  // none: all
	Status  int

	Overlap   int    // messages that a client gets again when it resumes
	Seam      string // effect on the others: see hub_seam.go
	StreamsOf string // of streams whose client vanished without closing them (half), or of the others (closed)
	Allowed   bool   // a gap that the service announces is no fault

	Reconnect  string // how clients that reconnect are refused or delayed: a status, reset, slow
	Reconnects int    // of each client; 0: always

	Answer       int           // to a stream's connect
	Join         int           // to its second request
	NoHeartbeats bool          // the service sends no heartbeats
	MeanLifetime time.Duration // mean lifetime of a stream, which the service then ends; 0: until its end is requested
	Early        bool          // streams end before their lifetime
	Overdue      bool          // they end long behind it
	TokenRefused bool          // a token is refused that is still good, once a stream has ended
}

// matches reports whether the fault concerns that message, on a stream of that device.
func (f *hubFault) matches(id string, l *message) bool {
	return f.Action != "" && f.Matches(id) && f.Covers(l.number) && (f.Every == 0 || (l.number-f.From)%f.Every == 0)
}

// isMisrouted reports whether a message is sent to the streams of another topic.
func (f *hubFault) isMisrouted(l *message) bool {
	return (f.Action == hubOtherTopic || f.Action == hubLeaks) && slices.Contains(f.Topics, l.topic.n) && f.Covers(l.number)
}

// publishAction returns the effect of the fault on the request that publishes a message; "" for none.
func (f *hubFault) publishAction(l *message) string {
	if len(f.Topics) > 0 && !slices.Contains(f.Topics, l.topic.n) || !f.Covers(l.number) {
		return ""
	}
	return f.Publish
}

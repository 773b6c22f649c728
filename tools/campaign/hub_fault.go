package main

import (
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// Other effects of a fault on a message of a hub stream. hub_payload.go has more kinds.
const (
	hubAgain = "again" // with the next one it comes a second time
	hubMute  = "mute"  // nothing is written any more, not even heartbeats
	hubOther = "other" // it goes to the streams of the next topic instead
	hubLeak  = "leak"  // and to them as well
	hubGap   = "gap"   // the service announces missing messages; the message arrives
)

// What a fault does with the request that publishes a message.
const (
	takeRefuse   = "refuse"    // with its Status
	takeAnyway   = "anyway"    // refused, and delivered
	takeHangUp   = "hang up"   // no answer, and not delivered
	takeSilently = "silently"  // no answer, and delivered
	takeForever  = "forever"   // no answer, no end, and not delivered
	takeSwallow  = "swallow"   // confirmed, and not delivered
	takeStop     = "stop"      // so is everything from then on, of all topics
	takeLosesOne = "loses one" // delivered to all but one of the streams
)

// A hubFault is what goes wrong. The zero value is nothing.
type hubFault struct {
	fakeservice.Fault
	Every int // only every nth of these messages; 0: each
	By    int // what is added to a number

	Take   string // of the publisher
	Topics []int  // none: all
	Status int

	Overlap int    // messages that a client gets again when it resumes
	Seam    string // what becomes of the others: see hub_seam.go
	Only    string // of streams whose client vanished without closing them (half), or of the others (closed)
	Allowed bool   // a gap that the service announces is no fault

	Turn  string // how clients that reconnect are refused or delayed: a status, reset, slow
	Turns int    // so often each time; 0: always

	Answer  int           // to a stream's connect
	Join    int           // to its second request
	Beats   bool          // no heartbeat comes
	Lives   time.Duration // mean lifetime of a stream, which the service then ends; 0: until its end is requested
	Early   bool          // streams end before their lifetime
	Overdue bool          // they end long behind it
	Stale   bool          // a token is refused that is still good, once a stream has ended
}

// at reports whether the fault is meant for that message, on a stream of that device.
func (f *hubFault) at(id string, l *letter) bool {
	return f.Action != "" && f.Meant(id) && l.number >= f.From && (f.Count == 0 || l.number < f.From+f.Count) &&
		(f.Every == 0 || (l.number-f.From)%f.Every == 0)
}

// strays reports whether a message is sent to the streams of another topic.
func (f *hubFault) strays(l *letter) bool {
	return (f.Action == hubOther || f.Action == hubLeak) && slices.Contains(f.Topics, l.topic.n) && l.number >= f.From && l.number < f.From+f.Count
}

// taken is what becomes of the request that publishes a message, "" for nothing special.
func (f *hubFault) taken(l *letter) string {
	if f.Take == "" || len(f.Topics) > 0 && !slices.Contains(f.Topics, l.topic.n) || l.number < f.From || f.Count > 0 && l.number >= f.From+f.Count {
		return ""
	}
	return f.Take
}

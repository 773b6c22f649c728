package main

import (
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// Effects of a fault on a message of a hub stream, in addition to the effects in fakeservice and hub_payload.go.
const (
	hubMuted      = "mute"  // the stream stops: no more messages or heartbeats
	hubOtherTopic = "other" // sent to the streams of the next topic instead
	hubLeaks      = "leak"  // also sent to the streams of the next topic
	hubGap        = "gap"   // the hub announces missing messages although the message arrives
)

// Effects of a fault on the request that publishes a message.
const (
	publishRefused          = "refuse"                // answered with hubFault.Status, and not delivered
	publishRefusedDelivered = "refuse after delivery" // answered with hubFault.Status, and delivered
	publishDropped          = "close"                 // the connection is closed without a response; not delivered
	publishUnanswered       = "close after delivery"  // the connection is closed without a response; delivered
	publishHangs            = "hang"                  // the connection stays open without a response; not delivered
	publishUndelivered      = "lose"                  // confirmed, and not delivered
	publishStopsDelivery    = "lose from then on"     // confirmed, and not delivered, like all later messages of all topics
	publishLosesOne         = "lose on one stream"    // delivered to all but one of the streams
)

// A hubFault is a fault of a hub. The zero value means no fault.
type hubFault struct {
	fakeservice.Fault
	Every  int // the fault affects every nth message, starting with From; 0: all messages
	Offset int // added to the number of a message

	Publish string // effect on publish requests; "": none
	Topics  []int  // affected topics; empty: all
	Status  int    // status code of refused publish requests

	Overlap   int    // number of messages that a client receives again when it resumes
	Seam      string // effect on the replay of missed messages: see hub_seam.go
	StreamsOf string // limits Seam to clients that vanished from the previous stream (half), or to the others (closed)
	Allowed   bool   // a gap that the service announces is not a fault

	Reconnect  string // how clients that reconnect are refused or delayed: a status, reset, slow; "": not at all
	Reconnects int    // number of affected reconnects per client; 0: all

	Answer       int           // status of the response to a connect; 0: a stream opens
	Join         int           // status of the response to the second request; 0: success
	NoHeartbeats bool          // the service sends no heartbeats
	MeanLifetime time.Duration // mean time after which the service ends a stream; 0: hubSpec.End decides
	Early        bool          // the first stream of a client ends before its lifetime
	Overdue      bool          // streams end long after their lifetime
	TokenRefused bool          // the hub refuses valid tokens at a reconnect
}

func (f *hubFault) matches(id string, m *message) bool {
	return f.Action != "" && f.Matches(id) && f.Covers(m.number) && (f.Every == 0 || (m.number-f.From)%f.Every == 0)
}

func (f *hubFault) isMisrouted(m *message) bool {
	return (f.Action == hubOtherTopic || f.Action == hubLeaks) && slices.Contains(f.Topics, m.topic.n) && f.Covers(m.number)
}

func (f *hubFault) publishAction(m *message) string {
	if len(f.Topics) > 0 && !slices.Contains(f.Topics, m.topic.n) || !f.Covers(m.number) {
		return ""
	}
	return f.Publish
}

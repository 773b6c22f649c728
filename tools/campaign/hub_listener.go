package main

import (
	"time"

	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// A listener is what really happened to one client of a hub: when its streams were open, and what was written to them.
type listener struct {
	fakeservice.Client
	n       int // of the run, -1 for a stranger
	topic   *hubTopic
	arrived time.Time // the first request
	feed    *feed     // its open stream
	ended   bool      // a fault has ended a stream of it
	unjoin  bool      // its second request was refused
	frames  []frame
	turned  int          // so often it was turned away since its last stream
	dropped map[int]int  // numbers that a fault kept from a stream that continued: its span
	broken  map[int]bool // spans before which a message was lost, or came again
}

// A frame is a block that was written.
type frame struct {
	kind   string
	number int // of the message as it was published
	reads  int // as the description finds it; 0: corrupted
	sent   time.Time
	at     time.Time
	span   int  // of the listener
	unsure bool // whether it was read
}

// What blocks are.
const (
	frameMessage = "message"
	frameForeign = "foreign"
	frameStray   = "stray" // of another topic of the run
	frameOther   = "other"
	frameBeat    = "heartbeat"
	frameGap     = "gap"
	frameNothing = "nothing" // that a count shows
)

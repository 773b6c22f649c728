package main

import "time"

// A listener is what really happened to one stream of the run: when it was open, and what was written to it.
type listener struct {
	id      string
	n       int // of the run, -1 for a stranger
	topic   *hubTopic
	arrived time.Time // the first request
	asked   time.Time // the request for its end
	ended   bool      // a fault has ended a stream of it
	unjoin  bool      // its second request was refused
	spans   []openSpan
	frames  []frame
	present *feed
	turned  int          // so often it was turned away since its last stream
	dropped map[int]int  // numbers that a fault kept from a stream that went on: its span
	broken  map[int]bool // spans before which a message was lost, or came again
}

// An openSpan is a time in which a stream was open.
type openSpan struct {
	from, to time.Time
	how      string // it ended: one of the words below
	resumed  bool   // it goes on behind the one before, as its client asked or would have, had the service not reset its id
	withID   bool   // its client said behind what
	known    bool   // the client said afterwards what it had read of it
}

// How a stream ended.
const (
	endClient  = "client" // the client went
	endAsked   = "asked"
	endInOrder = "in order" // by the service
	endReset   = "reset"
)

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

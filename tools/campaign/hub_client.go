package main

import (
	"time"

	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// A hubClient is the record of one client of a hub: when its streams were open, and the frames written to them.
type hubClient struct {
	fakeservice.Client
	n              int // of the run; -1: of another run
	topic          *hubTopic
	firstRequestAt time.Time  // the first request
	stream         *hubStream // its open stream
	ended          bool       // a fault has ended a stream of it
	joinRefused    bool       // its second request was refused
	frames         []frame
	refusals       int          // refused requests since its last stream
	dropped        map[int]int  // numbers that a fault kept from a stream that continued: its span
	broken         map[int]bool // spans before which a message was lost or repeated
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

// Kinds of blocks.
const (
	frameMessage    = "message"
	frameForeign    = "foreign"
	frameOtherTopic = "stray" // of another topic of the run
	frameOther      = "other"
	frameHeartbeat  = "heartbeat"
	frameGap        = "gap"
	frameUncounted  = "nothing" // that a count shows
)

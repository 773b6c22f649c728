package main

import (
	"time"

	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// A hubClient is the record of one client of a hub: when its streams were open, and the frames written to them.
type hubClient struct {
	fakeservice.Client
	n              int // index among the run's clients; -1: client of another run
	topic          *hubTopic
	firstRequestAt time.Time  // time of the first request
	stream         *hubStream // the open stream; nil: none
	ended          bool       // a fault has ended one of its streams
	joinRefused    bool       // its second request was refused
	frames         []frame
	refusals       int          // refused requests since its last stream
	dropped        map[int]int  // span of the stream that a fault kept a message from, by the message's number
	broken         map[int]bool // spans before which a message was lost or repeated
}

// A frame is the record of one written block.
type frame struct {
	kind   string
	number int // number of the published message
	reads  int // number that the description finds in the block; 0: corrupted
	sent   time.Time
	at     time.Time
	span   int  // of the listener
	unsure bool // whether it was read
}

// Kinds of blocks.
const (
	frameMessage    = "message"
	frameForeign    = "foreign"
	frameOtherTopic = "stray" // message of another topic of the run
	frameOther      = "other"
	frameHeartbeat  = "heartbeat"
	frameGap        = "gap"
	frameUncounted  = "nothing" // block that no count includes
)

package main

import (
	"time"

	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// A hubClient is the record of one client of a hub: its streams, and the frames written to them.
type hubClient struct {
	fakeservice.Client
	n              int // index among the run's clients; -1: not a client of the run
	topic          *hubTopic
	firstRequestAt time.Time  // time of the first request
	stream         *hubStream // the open stream; nil: none
	endedByFault   bool       // a fault ended one of its streams
	joinRefused    bool       // the second request of one of its streams was refused
	frames         []frame
	refusals       int          // refused or delayed reconnects since its last stream
	dropped        map[int]int  // index of the stream on which a fault dropped a message, by the message's number
	broken         map[int]bool // indexes of streams that did not continue exactly where the previous one ended
}

// A frame is the record of one written block.
type frame struct {
	kind       string
	number     int       // number of the published message
	seq        int       // number that the client finds in the block; 0: the block is corrupted
	receivedAt time.Time // when the hub received the message
	at         time.Time // when the block was written
	span       int       // index of the stream among the client's streams
	uncertain  bool      // the client may not have read the block
}

const (
	frameMessage    = "message"
	frameForeign    = "foreign"
	frameOtherTopic = "other topic" // message of another topic of the run
	frameOther      = "other"       // block that no count includes
	frameHeartbeat  = "heartbeat"
	frameGap        = "gap"
)

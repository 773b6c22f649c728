package soak

import (
	"time"

	"github.com/sse-soak/sse-soak/internal/service"
)

// A rareState is state that few streams need.
type rareState struct {
	lastName    string // name of the last event that was not a message
	coding      *codedStream
	last        []byte                               // id to resume from; empty: none
	pending     time.Time                            // arrival of a comment line that is a heartbeat or a part of the next block; zero: none
	credentials *credentials                         // nil: the default ones
	listener    func(at time.Time, b *service.Block) // gets events that the description does not define; nil: none
}

var noRareState rareState

// readRareState returns the rare state of the observer, for reading.
func (o *observer) readRareState() *rareState {
	if o.rare == nil {
		return &noRareState
	}
	return o.rare
}

// writableRareState returns the mutable rare state, allocated on first use.
func (o *observer) writableRareState() *rareState {
	if o.rare == nil {
		o.rare = new(rareState)
	}
	return o.rare
}

package soak

import (
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/shard"
)

// A codedStream detects messages of a compressed stream that arrive together, although one message is due per interval.
// In this case the compressor has delayed them until its buffer was full. A stream on which the script acts has no
// codedStream.
type codedStream struct {
	coding      string
	lastArrival time.Time // arrival of the last message
	burst       int       // messages that arrived together so far, the last one included
	reconnected bool      // the stream follows another stream of the same client
	countsBurst bool      // the current burst counts, because it cannot be a replay at the start of a stream
}

func (o *observer) startCoding(coding string) {
	if !o.excluded { // an action of the script may make messages arrive together
		o.coding = &codedStream{coding: coding, reconnected: o.streams > 1}
	}
	o.recorder.changeCoding(coding, func(sum *shard.Coding) { sum.Streams++ })
}

// message counts a message. first is the time from the headers to the first message of a stream; negative for later
// messages.
func (c *codedStream) message(r *recorder, at time.Time, first time.Duration) {
	r.changeCoding(c.coding, func(sum *shard.Coding) {
		interval := r.config.Interval
		sum.Messages++
		switch {
		case first >= 0:
			c.burst, c.countsBurst = 1, !c.reconnected && first > interval*3/2
		case at.Sub(c.lastArrival) >= interval/50: // the limit of the ledger's inBurst
			c.burst, c.countsBurst = 1, true
		case c.countsBurst:
			if c.burst++; c.burst == 2 {
				sum.Bursts++
				sum.BurstMessages++
			}
			sum.BurstMessages++
		}
		c.lastArrival = at
	})
}

func (t *tally) changeCoding(coding string, change func(sum *shard.Coding)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.streams.codings, func(c shard.Coding) bool { return c.Name == coding })
	if i < 0 {
		i = len(t.streams.codings)
		t.streams.codings = append(t.streams.codings, shard.Coding{Name: coding})
	}
	change(&t.streams.codings[i])
}

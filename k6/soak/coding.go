package soak

import (
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/shard"
)

// coded finds out of a compressed stream which of its messages came together, though one is due per interval: what compresses
// them held them up until it had enough. It is nil for a stream that is not compressed.
type coded struct {
	coding      string
	last        time.Time // when the last message came
	burst       int       // number of messages that arrived together with it
	reconnected bool      // the stream continues another one
	expected    bool      // the messages of the present burst were not stored for a client that was disconnected
}

// beginCoded begins a compressed stream.
func (o *observer) beginCoded(coding string) {
	if !o.excluded { // what the script does to a stream may make messages come together
		rare := o.writableRareState()
		rare.coded = &coded{coding: coding, reconnected: rare.coded != nil}
	}
	o.recorder.coded(coding, func(sum *shard.Coding) { sum.Streams++ })
}

// message notes a message; first is how long after the headers it came where it is the first, else negative.
func (c *coded) message(r *recorder, at time.Time, first time.Duration) {
	r.coded(c.coding, func(sum *shard.Coding) {
		interval := r.config.Interval
		sum.Messages++
		switch {
		case first >= 0:
			c.burst, c.expected = 1, !c.reconnected && first > interval*3/2
		case at.Sub(c.last) >= interval/50: // as ledger.inBurst
			c.burst, c.expected = 1, true
		case c.expected:
			if c.burst++; c.burst == 2 {
				sum.Bursts++
				sum.Together++
			}
			sum.Together++
		}
		c.last = at
	})
}

// coded changes the sum of a coding.
func (t *tally) coded(coding string, change func(sum *shard.Coding)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.streams.codings, func(c shard.Coding) bool { return c.Name == coding })
	if i < 0 {
		i = len(t.streams.codings)
		t.streams.codings = append(t.streams.codings, shard.Coding{Name: coding})
	}
	change(&t.streams.codings[i])
}

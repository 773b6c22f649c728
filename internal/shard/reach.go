package shard

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/clamp"
)

// A Reach has the latency of each published message to its last subscriber, on one runner or on all. A duration needs
// two bytes and is up to 0.8 % too long, as in a Histogram. Merge keeps the maximum.
type Reach struct {
	Numbers int      `json:"most"`   // maximum number of a message
	Topics  [][]byte `json:"topics"` // codes of two bytes by number − 1; 0: no subscriber received the message
}

// NewReach returns an empty Reach for the given number of topics, and for messages up to the given number. Record
// ignores all others.
func NewReach(topics, numbers int) *Reach {
	return &Reach{Topics: slices.Repeat([][]byte{{}}, topics), Numbers: numbers}
}

// Record records the latency of a message to one subscriber.
func (r *Reach) Record(topic int, number uint64, latency time.Duration) {
	if topic >= 0 && topic < len(r.Topics) && number > 0 && number <= clamp.Uint64(r.Numbers) {
		r.raise(topic, int(number)-1, reachCode(latency)) // #nosec G115 -- at most Numbers
	}
}

// raise raises the code of a message, by its index, to at least the given one.
func (r *Reach) raise(topic, i int, code uint16) {
	codes := r.Topics[topic]
	for len(codes) <= 2*i {
		codes = append(codes, 0, 0)
	}
	binary.LittleEndian.PutUint16(codes[2*i:], max(codeAt(codes, i), code))
	r.Topics[topic] = codes
}

func codeAt(codes []byte, i int) uint16 { return binary.LittleEndian.Uint16(codes[2*i:]) }

// Copy returns a copy, or nil if r is nil.
func (r *Reach) Copy() (out *Reach) {
	mergePart(&out, r)
	return out
}

// Merge adds the latencies of another runner.
func (r *Reach) Merge(other *Reach) {
	for len(r.Topics) < len(other.Topics) {
		r.Topics = append(r.Topics, []byte{})
	}
	r.Numbers = max(r.Numbers, other.Numbers)
	for topic, codes := range other.Topics {
		for i := range len(codes) / 2 {
			r.raise(topic, i, codeAt(codes, i))
		}
	}
}

// Histogram returns the latencies to the last subscriber. It omits messages that no subscriber received.
func (r *Reach) Histogram() *Histogram {
	h := NewHistogram()
	for _, codes := range r.Topics {
		for i := range len(codes) / 2 {
			if code := codeAt(codes, i); code > 0 {
				h.Record(reachOf(code))
			}
		}
	}
	return h
}

const mantissa = 7 // number of bits after the first one that a code keeps

// reachCode encodes the first bits of the microseconds and their exponent. A longer duration never has a smaller code.
func reachCode(d time.Duration) uint16 {
	us := uint64(max(min(d.Microseconds(), highestMicros), 0))
	shift := max(bits.Len64(us)-1-mantissa, 0)
	return uint16(shift<<mantissa+int(us>>shift)) + 1 // #nosec G115 -- at most highestMicros, 16 bits
}

// reachOf returns the longest duration that has the given code.
func reachOf(code uint16) time.Duration {
	c := uint64(code - 1)
	shift := uint64(0)
	if c >= 1<<(mantissa+1) {
		shift = c>>mantissa - 1
		c = c&(1<<mantissa-1) | 1<<mantissa
	}
	return time.Duration((c+1)<<shift-1) * time.Microsecond // #nosec G115 -- codes end at highestMicros
}

// check returns an error for codes that Record does not write.
func (r *Reach) check() error {
	if r == nil {
		return nil
	}
	for topic, codes := range r.Topics {
		if len(codes)%2 != 0 {
			return fmt.Errorf("the reach of topic %d ends in the middle of a message", topic)
		}
		for i := range len(codes) / 2 {
			if code := codeAt(codes, i); code > reachCode(time.Duration(highestMicros)*time.Microsecond) {
				return fmt.Errorf("the reach of topic %d has the impossible code %d", topic, code)
			}
		}
	}
	return nil
}

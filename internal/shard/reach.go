package shard

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/bits"
	"time"

	"github.com/sse-soak/sse-soak/internal/clamp"
)

// A Reach has the latency of each published message to its last subscriber, on one runner or on all. A duration needs
// two bytes and is up to 0.8 % too long, as in a Histogram. Merge keeps the maximum.
type Reach struct {
	topics  [][]uint16 // codes by topic and number − 1; 0: no subscriber received the message
	numbers int        // maximum number of a message
}

// NewReach returns an empty Reach for the given number of topics, and for messages up to the given number. Record
// ignores all others.
func NewReach(topics, numbers int) *Reach {
	return &Reach{topics: make([][]uint16, topics), numbers: numbers}
}

// Record records the latency of a message to one subscriber.
func (r *Reach) Record(topic int, number uint64, latency time.Duration) {
	if topic < 0 || topic >= len(r.topics) || number == 0 || number > clamp.Uint64(r.numbers) {
		return
	}
	codes := r.topics[topic]
	for uint64(len(codes)) < number {
		codes = append(codes, 0)
	}
	codes[number-1] = max(codes[number-1], reachCode(latency))
	r.topics[topic] = codes
}

// Copy returns a copy, or nil if r is nil.
func (r *Reach) Copy() (out *Reach) {
	mergePart(&out, r)
	return out
}

// Merge adds the latencies of another runner.
func (r *Reach) Merge(other *Reach) {
	for len(r.topics) < len(other.topics) {
		r.topics = append(r.topics, nil)
	}
	r.numbers = max(r.numbers, other.numbers)
	for i, codes := range other.topics {
		r.topics[i] = append(r.topics[i], make([]uint16, max(len(codes)-len(r.topics[i]), 0))...)
		for n, code := range codes {
			r.topics[i][n] = max(r.topics[i][n], code)
		}
	}
}

// Histogram returns the latencies to the last subscriber. It omits messages that no subscriber received.
func (r *Reach) Histogram() *Histogram {
	h := NewHistogram()
	for _, codes := range r.topics {
		for _, code := range codes {
			if code > 0 {
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

// reachOf returns the longest duration with a code.
func reachOf(code uint16) time.Duration {
	c := uint64(code - 1)
	shift := uint64(0)
	if c >= 1<<(mantissa+1) {
		shift = c>>mantissa - 1
		c = c&(1<<mantissa-1) | 1<<mantissa
	}
	return time.Duration((c+1)<<shift-1) * time.Microsecond // #nosec G115 -- codes end at highestMicros
}

type reachJSON struct {
	Most   int      `json:"most"`
	Topics [][]byte `json:"topics"`
}

// MarshalJSON writes two bytes for each message, in base64.
func (r *Reach) MarshalJSON() ([]byte, error) {
	out := reachJSON{Most: r.numbers, Topics: make([][]byte, len(r.topics))}
	for i, codes := range r.topics {
		text := make([]byte, 0, 2*len(codes))
		for _, code := range codes {
			text = binary.LittleEndian.AppendUint16(text, code)
		}
		out.Topics[i] = text
	}
	return json.Marshal(out)
}

// addTopic adds the next topic from the output of MarshalJSON.
func (r *Reach) addTopic(text []byte) error {
	if len(text)%2 != 0 {
		return fmt.Errorf("the reach of topic %d ends in the middle of a message", len(r.topics))
	}
	codes := make([]uint16, 0, len(text)/2)
	for ; len(text) > 0; text = text[2:] {
		code := binary.LittleEndian.Uint16(text)
		if code > reachCode(time.Duration(highestMicros)*time.Microsecond) {
			return fmt.Errorf("the reach of topic %d has the impossible code %d", len(r.topics), code)
		}
		codes = append(codes, code)
	}
	r.topics = append(r.topics, codes)
	return nil
}

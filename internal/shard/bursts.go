package shard

import (
	"errors"
	"math"
	"time"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

// Bursts counts chunks of responses, or messages of endless streams, and how many of them arrived together with the
// previous one.
type Bursts struct {
	Messages  int64            `json:"messages"`
	Followers int64            `json:"followers"`         // messages that arrived together with the previous one
	Silence   *Histogram       `json:"silence"`           // silence before each burst, which has at least two messages
	Servers   map[string]int64 `json:"servers,omitempty"` // streams by Server header
}

// maxSilence is the longest stored silence in microseconds. Callers give greater values of uint32 other meanings.
const maxSilence = math.MaxUint32 - 2

// NewBursts returns empty Bursts.
func NewBursts() *Bursts { return &Bursts{Silence: NewHistogram(), Servers: map[string]int64{}} }

// Add counts a message by the time since the previous one. silence belongs to the stream: it has the microseconds of
// silence before the last message that did not arrive together with the previous one. The first follower of that
// message records the silence and sets it to 0.
func (b *Bursts) Add(gap time.Duration, silence *uint32) {
	b.Messages++
	if gap >= ledger.TogetherLimit {
		*silence = uint32(min(gap.Microseconds(), maxSilence)) // #nosec G115 -- bounded in this expression
		return
	}
	b.Followers++
	if *silence > 0 {
		b.Silence.Record(time.Duration(*silence) * time.Microsecond)
		*silence = 0
	}
}

// AddServer counts n streams by their Server header. It ignores an empty name. Names beyond maxServerNames count as
// Other.
func (b *Bursts) AddServer(name string, n int64) {
	const maxServerNames = 20
	if name == "" {
		return
	}
	name = name[:min(len(name), maxServerName)]
	if _, known := b.Servers[name]; !known && len(b.Servers) >= maxServerNames {
		name = Other
	}
	b.Servers[name] += n
}

// Share returns the share of the messages that arrived together with the previous one.
func (b *Bursts) Share() float64 {
	if b.Messages == 0 {
		return 0
	}
	return float64(b.Followers) / float64(b.Messages)
}

// Server returns the most frequent Server header; "" if no stream had one.
func (b *Bursts) Server() (name string) {
	highest := int64(0)
	for server, n := range b.Servers {
		if n > highest || n == highest && server < name {
			name, highest = server, n
		}
	}
	return name
}

// Merge adds the messages of another runner. o may be nil, and b may be the zero value.
func (b *Bursts) Merge(o *Bursts) {
	if o == nil {
		return
	}
	if b.Silence == nil {
		*b = *NewBursts()
	}
	b.Messages, b.Followers = b.Messages+o.Messages, b.Followers+o.Followers
	b.Silence.Merge(o.Silence)
	for name, n := range o.Servers {
		b.AddServer(name, n)
	}
}

func (b *Bursts) check() error {
	invalid := errors.New("impossible bursts")
	switch {
	case b == nil:
		return nil
	case b.Silence == nil || !areCounts(b.Followers, b.Messages) || b.Followers > b.Messages:
		return invalid
	}
	for name, n := range b.Servers {
		if len(name) > maxText || !areCounts(n) {
			return invalid
		}
	}
	return nil
}

package shard

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/ledger/feed"
	"github.com/sse-soak/sse-soak/internal/plan"
)

// newHourShard returns a shard with an hour of 100 messages per second.
func newHourShard() *Shard {
	random := rand.New(rand.NewPCG(1, 2)) // #nosec G404 -- no secret
	l := &feed.Log{Extras: []ledger.Extra{{After: 7, Print: 1 << 63, At: 5, Count: 2}}, Dropped: 3}
	at := time.Duration(0)
	for range 360_000 {
		at += time.Duration(random.ExpFloat64() * float64(10*time.Millisecond)).Truncate(time.Millisecond)
		l.Entries = append(l.Entries, ledger.Entry{Print: random.Uint64(), At: at, Count: 40, Live: true, Repeat: random.IntN(50) == 0})
	}
	s := &Shard{
		Schema: Schema, Runner: Runner{Index: 1, EndedUS: 3600e6}, Plan: plan.Plan{Connections: 1}, Service: Service{Counts: CountsShared},
		Connect: NewHistogram(), FirstNoop: NewHistogram(), Lateness: NewHistogram(), Feeds: []*feed.Log{l},
		Connections: []ledger.Record{{
			ID: "0", Streams: 1, Spans: []ledger.Span{{From: 1, To: 2}}, Counts: ledger.Counts{Received: 359_999},
			First: 1, Last: 360_000, Holes: []ledger.Range{{5, 5}}, Deviations: &ledger.Deviations{Repeats: []ledger.Repeat{{Number: 7}}},
		}},
	}
	return s
}

func TestHourOfAFeedNeedsLessThan4MB(t *testing.T) {
	t.Parallel()
	s := newHourShard()
	file, err := new(Encoder).Encode(s)
	require.NoError(t, err)
	require.Less(t, len(file), 4_000_000)
	t.Log(len(file), "bytes")
	read, err := Read(bytes.NewReader(file))
	require.NoError(t, err)
	require.Equal(t, s.Feeds, read.Feeds)
	for r := range read.Records() {
		require.Equal(t, s.Connections[0].Deviations, r.Deviations)
	}
}

func TestReadRejectsMessagesThatAFeedLacks(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(s *Shard){
		"a higher number": func(s *Shard) { s.Connections[0].Last = 360_001 },
		"an extra":        func(s *Shard) { s.Connections[0].Deviations.Repeats[0].Extra = 1 },
		"a topic":         func(s *Shard) { s.Feeds = nil },
		"a place":         func(s *Shard) { s.Feeds[0].Extras[0].After = 360_001 },
		"a hole":          func(s *Shard) { s.Connections[0].Holes[0][1] = 360_000 },
	} {
		s := newHourShard()
		damage(s)
		file, err := new(Encoder).Encode(s)
		require.NoError(t, err, name)
		_, err = Read(bytes.NewReader(file))
		require.Error(t, err, name)
	}
}

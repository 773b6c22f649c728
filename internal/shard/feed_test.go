package shard

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/ledger/feed"
	"github.com/sse-soak/sse-soak/internal/plan"
)

// newFeedShard returns a shard with a feed of 100 messages per second.
func newFeedShard(count int) *Shard {
	random := rand.New(rand.NewPCG(1, 2)) // #nosec G404 -- no secret
	l := &feed.Log{Extras: []ledger.Extra{{After: 7, Print: 1 << 63, At: 5, Count: 2}}, Dropped: 3}
	at := time.Duration(0)
	for range count {
		at += time.Duration(random.ExpFloat64() * float64(10*time.Millisecond)).Truncate(time.Millisecond)
		l.Entries = append(l.Entries, ledger.Entry{Print: random.Uint64(), At: at, Count: 40, Live: true, Repeat: random.IntN(50) == 0})
	}
	return &Shard{
		Schema: Schema, Runner: Runner{Index: 1, EndedUS: 3600e6}, Plan: plan.Plan{Connections: 1}, Service: Service{CountBasis: CountByComparison},
		Connect: NewHistogram(), FirstMessage: NewHistogram(), Lateness: NewHistogram(), Feeds: []*feed.Log{l},
		Connections: []ledger.Record{{
			ID: "0", Streams: 1, Spans: []ledger.Span{{From: 1, To: 2}}, Counts: ledger.Counts{Received: uint64(count) - 1},
			First: 1, Last: uint64(count), Holes: []ledger.Range{{5, 5}}, Deviations: &ledger.Deviations{Repeats: []ledger.Repeat{{Number: 7}}},
		}},
	}
}

func TestHourOfAFeedNeedsLessThan4MB(t *testing.T) {
	t.Parallel()
	s := newFeedShard(360_000)
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

// A duplicate key replaces the earlier list, so the limits of a list hold for the whole shard.
func TestLaterListReplacesAnEarlierOne(t *testing.T) {
	t.Parallel()
	feeds, published := newFeedShard(20), newEmptyShard(planFor(1, 1), 1)
	published.Published = publishedSample(t)
	for list, s := range map[string]*Shard{"feeds": feeds, "messages": published} {
		text := jsonOf(t, s)
		var fields map[string]json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(text), &fields))
		key := `"` + list + `":`
		read, err := Read(bytes.NewReader(pack(t, []byte(strings.Replace(text, key, key+string(fields[list])+","+key, 1)))))
		require.NoError(t, err)
		require.Equal(t, s.Feeds, read.Feeds)
		require.Equal(t, text, jsonOf(t, read))
	}
}

func TestReadRejectsMessagesThatAFeedLacks(t *testing.T) {
	t.Parallel()
	const contradiction = "client 0 contradicts the messages of its topic"
	for name, c := range map[string]struct {
		damage func(s *Shard)
		want   string
	}{
		"a higher number": {func(s *Shard) { s.Connections[0].Last = 11 }, contradiction},
		"an extra":        {func(s *Shard) { s.Connections[0].Deviations.Repeats[0].Extra = 1 }, contradiction},
		"a topic":         {func(s *Shard) { s.Feeds = nil }, "client 0 has no feed for its topic"},
		"a position":      {func(s *Shard) { s.Feeds[0].Extras[0].After = 11 }, "impossible extra message after number 11 of a feed with 10 messages"},
		"a hole":          {func(s *Shard) { s.Connections[0].Holes[0][1] = 10 }, contradiction},
	} {
		s := newFeedShard(10)
		c.damage(s)
		_, err := reread(t, s)
		require.ErrorContains(t, err, c.want, name)
	}
}

package shard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

// newDescribedShard returns a shard of a run with a publisher, on whose only stream 2 of 3 messages arrived.
func newDescribedShard() *Shard {
	p := planFor(1, 1)
	p.Service, p.Topics, p.PublishRate = "mine", 1, 1
	s := newEmptyShard(p, 1)
	s.Service = Service{Name: "mine", SHA256: "x", CountBasis: CountByNumber}
	log := NewPublishLog([]string{p.TopicName(0)}, 1, s.Runner.StartedUS, 3)
	for range 3 {
		log.Settle(0, log.Begin(0, s.Runner.StartedUS), PublishOutcome{State: Confirmed, SentUS: s.Runner.StartedUS, AtUS: s.Runner.StartedUS})
	}
	s.Published = log.Published(true)
	s.Connections = []ledger.Record{{
		ID: "d-0", State: ledger.Completed, Streams: 1, Counts: ledger.Counts{Received: 2}, First: 1, Last: 3, Holes: []ledger.Range{{2, 2}},
		Spans: []ledger.Span{{From: time.Second, To: 9 * time.Second}},
	}}
	return s
}

// Numbers, spans and the publisher's record determine the expected messages, so contradictions are rejected.
func TestReadRejectsContradictions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(s *Shard, r *ledger.Record)
		want   string
	}{
		"no change":         {func(*Shard, *ledger.Record) {}, ""},
		"no message":        {func(_ *Shard, r *ledger.Record) { r.Counts, r.First, r.Last, r.Holes = ledger.Counts{}, 0, 0, nil }, ""},
		"no span":           {func(_ *Shard, r *ledger.Record) { r.Spans = nil }, "1 stream, but 0 spans"},
		"no hole":           {func(_ *Shard, r *ledger.Record) { r.Holes = nil }, "2 messages arrived, but numbers and unplaced messages account for 3"},
		"a hole at the end": {func(_ *Shard, r *ledger.Record) { r.Holes[0] = ledger.Range{2, 3} }, "a hole from 2 to 3 in the numbers from 1 to 3"},
		"a reversed hole":   {func(_ *Shard, r *ledger.Record) { r.Last, r.Holes[0] = 9, ledger.Range{5, 2} }, "a hole from 5 to 2"},
		"corrupted messages that were not received": {func(_ *Shard, r *ledger.Record) { r.Unplaced = 1 }, "2 messages arrived, but numbers and unplaced messages account for 3"},
		"a time without an unplaced message":        {func(_ *Shard, r *ledger.Record) { r.UnplacedAt = []ledger.Instant{time.Second} }, "unplaced messages 0, their times 1"},
		"published a day earlier":                   {func(s *Shard, _ *ledger.Record) { s.Published.StartedUS -= 86400e6 }, "impossible start of the publisher"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newDescribedShard()
			c.change(s, &s.Connections[0])
			_, err := reread(t, s)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestDifferencesFromThePlanAreProblems(t *testing.T) {
	t.Parallel()
	p := newDescribedShard().Plan
	require.Empty(t, Merge(p, []*Shard{newDescribedShard()}).Problems)
	require.NotContains(t, Merge(p, nil).Problems, "no runner recorded published messages; let runner 1 publish", "the missing shard of runner 1 is one problem")
	for name, c := range map[string]struct {
		change func(s *Shard)
		want   string
	}{
		"other topics":         {func(s *Shard) { s.Published.Topics[0] = "x" }, "runner 1 did not publish to the topics of the plan"},
		"a different rate":     {func(s *Shard) { s.Published.Rate = 2 }, "runner 1 published 2 messages per second, but the plan has 1"},
		"nothing is counted":   {func(s *Shard) { s.Service.CountBasis = CountNothing }, "runner 1 on h1 did not count messages by their numbers"},
		"nothing is published": {func(s *Shard) { s.Published = nil }, "no runner recorded published messages; let runner 1 publish"},
		"no description":       {func(s *Shard) { s.Service = Service{} }, "runner 1 on h1 did not count messages by their numbers"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newDescribedShard()
			c.change(s)
			m := Merge(s.Plan, []*Shard{s})
			require.Len(t, m.Problems, 1)
			require.Contains(t, m.Problems[0], c.want)
		})
	}
}

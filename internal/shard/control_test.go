package shard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
)

func newControlShard(index int, c *Control, buckets ...Bucket) *Shard {
	s := &Shard{Schema: Schema, Connect: NewHistogram(), FirstMessage: NewHistogram(), Lateness: NewHistogram(), Control: c, Series: buckets}
	s.Runner.Index = index
	return s
}

// A merge adds the counts of the control groups and keeps the maxima of their times. It does not modify its inputs.
func TestControlGroupsAddUp(t *testing.T) {
	t.Parallel()
	one := &Control{URL: "http://a", Streams: 20, LateMS: 1000, Opened: 21, EndedEarly: 1, Lost: 3, Error: "reset", ControlCounts: ControlCounts{Expected: 200, Received: 197, Late: 2, LongestUS: 2e6, ReferenceUS: 5}}
	two := &Control{URL: "http://b", Remote: true, Streams: 20, LateMS: 1000, Refused: 4, Error: "refused"}
	three := newControlShard(3, nil, Bucket{Unix: 5, Late: 1})
	first := newControlShard(1, one,
		Bucket{Unix: 0, Control: &ControlCounts{Expected: 100, Received: 100, LongestUS: 9}},
		Bucket{Unix: 5, Late: 4, Undisturbed: &LateMessages{Late: 1}, Control: &ControlCounts{Expected: 100, Received: 97, Late: 2, LongestUS: 2e6, ReferenceUS: 5}},
		Bucket{Unix: 10, Control: &ControlCounts{Expected: 100}},
		Bucket{Unix: 15, Control: &ControlCounts{Expected: 100, Received: 100, ReferenceUS: 600_000}},
		Bucket{Unix: 20, Control: &ControlCounts{Expected: 100, Received: 100}, ProcessUsage: ProcessUsage{StallMS: 700}},
		Bucket{Unix: 25},
	)
	second := newControlShard(2, two, Bucket{Unix: 5, Control: &ControlCounts{Expected: 1, LongestUS: 3e6}})
	m := Merge(plan.Plan{}, []*Shard{second, three, first})
	assert.Equal(t, &Control{
		Remote: true, Streams: 40, LateMS: 1000, Opened: 21, Refused: 4, EndedEarly: 1, Lost: 3, Error: "reset",
		ControlCounts: ControlCounts{Expected: 200, Received: 197, Late: 2, LongestUS: 2e6, ReferenceUS: 5},
	}, m.Control)
	assert.Equal(t, &ControlCounts{Expected: 101, Received: 97, Late: 2, LongestUS: 3e6, ReferenceUS: 5}, m.Series[1].Control)
	assert.Equal(t, 5, m.Series[1].Late)
	assert.Equal(t, uint64(97), first.Series[1].Control.Received)
	assert.Equal(t, "http://a", one.URL)

	require.Nil(t, m.Runners[2].ControlGroup)
	assert.Empty(t, m.Runners[1].ControlGroup.Moments, "a group that was never open must have no moments")
	at := func(unix int64) time.Time { return time.Unix(unix, 0) }
	assert.Equal(t, []ControlMoment{
		{At: at(5), Longest: 2 * time.Second, Late: 4, Undisturbed: &LateMessages{Late: 1}},
		{At: at(10), Silent: true},
		{At: at(15), Silent: true},
		{At: at(20), Stall: 700 * time.Millisecond},
		{At: at(25), Silent: true},
	}, m.Runners[0].ControlGroup.Moments)
	assert.Equal(t, 50*time.Millisecond, one.Resolution())
	assert.Equal(t, ControlMoment{At: at(5), Longest: 2 * time.Second, Late: 1}, m.Runners[0].ControlGroup.Undisturbed().Moments[0])
	assert.Equal(t, 4, m.Runners[0].ControlGroup.Moments[0].Late, "Undisturbed must not change the group")
	assert.Nil(t, m.Runners[2].ControlGroup.Undisturbed())
}

// A group with few open streams is inconclusive, because a delay may fall between their events.
func TestFewControlStreamsAreNotEvidence(t *testing.T) {
	t.Parallel()
	group := &Control{URL: "http://a", Streams: 20, LateMS: 1000, ControlCounts: ControlCounts{Expected: 300, Received: 300}}
	all := ControlCounts{Expected: 100, Received: 100}
	for name, c := range map[string]struct {
		at     int
		counts ControlCounts
		silent bool
	}{
		"all":                     {1, all, false},
		"half":                    {1, ControlCounts{Expected: 50, Received: 50}, false},
		"one in twenty":           {1, ControlCounts{Expected: 5, Received: 5}, true},
		"none":                    {1, ControlCounts{}, true},
		"all, but few received":   {1, ControlCounts{Expected: 100, Received: 30}, true},
		"few in the last bucket":  {2, ControlCounts{Expected: 5, Received: 5}, false},
		"few in the first bucket": {0, ControlCounts{Expected: 20, Received: 20}, false},
	} {
		series := []Bucket{{Unix: 0, Control: &all}, {Unix: 5, Control: &all}, {Unix: 10, Control: &all}}
		series[c.at].Control, series[c.at].Late = &c.counts, 1
		s := newControlShard(1, group, series...)
		moments := Merge(plan.Plan{}, []*Shard{s}).Runners[0].ControlGroup.Moments
		require.Len(t, moments, 1, name)
		require.Equal(t, c.silent, moments[0].Silent, name)
	}
}

package shard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func newSuiteShard(index int, name string) *Shard {
	p := planFor(2, 1)
	p.Suite, p.Connections = "rampup", 0 // as `soak run` writes the plan of a suite; the script has the other settings
	s := newEmptyShard(p, index)
	s.Suite = &Suite{Name: name, SplitBy: []string{TagStage}, Stages: []Stage{{Name: "r20", Rate: 20}}}
	return s
}

func timedMetric(scenario string, at int64, values ...float64) Metric {
	m := Metric{Name: RequestDuration, Tags: map[string]string{TagStage: scenario, TagCode: CodeOK}, Type: "trend", Trend: NewHistogram(), Undelayed: NewHistogram(), FirstUS: at, LastUS: at + 9}
	for _, v := range values {
		m.Count++
		m.Sum += v
		m.Squares += v * v
		m.Trend.Record(time.Duration(v) * time.Millisecond)
	}
	m.Undelayed.MergeShifted(m.Trend, -2*time.Millisecond)
	return m
}

func TestMergeOfASuite(t *testing.T) {
	t.Parallel()
	a, b := newSuiteShard(1, "rampup"), newSuiteShard(2, "rampup")
	a.Metrics = []Metric{timedMetric("r20", 100, 3, 4), timedMetric("r50", 200, 7)}
	b.Metrics = []Metric{timedMetric("r20", 90, 5)}
	m := Merge(a.Plan, []*Shard{a, b})
	require.Empty(t, m.Problems, "a suite without planned clients must have no problem")
	require.Equal(t, a.Suite, m.Suite)
	require.Len(t, m.Metrics, 2)
	r20 := m.Metrics[0]
	require.Equal(t, "r20", r20.Tags[TagStage])
	require.EqualValues(t, 3, r20.Count)
	require.InDelta(t, 50, r20.Squares, 0)
	require.EqualValues(t, 90, r20.FirstUS)
	require.EqualValues(t, 109, r20.LastUS)
	require.EqualValues(t, 3, r20.Trend.Count())
	require.EqualValues(t, 3, r20.Undelayed.Count())
	for q, want := range map[float64]float64{.1: 1, .5: 2, .9: 3} {
		require.InDelta(t, want, r20.Undelayed.Quantile(q).Seconds()*1000, .1, "quantile %v of the times 3, 4 and 5 ms minus 2 ms", q)
	}
	require.EqualValues(t, 2, a.Metrics[0].Trend.Count(), "a merge must not modify its inputs")
	require.EqualValues(t, 2, a.Metrics[0].Undelayed.Count(), "a merge must not modify its inputs")
}

func TestRunnersOfASuiteMustAgree(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		edit func(s *Shard)
		want string
	}{
		{"a soak", func(s *Shard) { s.Suite = nil }, `runner 2 ran no suite, but the plan has the suite "rampup"`},
		{"a different suite", func(s *Shard) { s.Suite.Name = "burst" }, `runner 2 ran the suite "burst", but the plan has the suite "rampup"`},
		{"other settings", func(s *Shard) { s.Suite.Stages[0].Rate = 21 }, "runner 2 ran the suite with different settings from runner 1"},
		{"too many tags", func(s *Shard) { s.Metrics = []Metric{timedMetric(Other, 1, 2)}; delete(s.Metrics[0].Tags, TagCode) }, "too many combinations of tags"},
		{"killed", func(s *Shard) { s.Runner.State = Running }, "runner 2 on h2 did not finish: it left no final shard"},
	} {
		a, b := newSuiteShard(1, "rampup"), newSuiteShard(2, "rampup")
		c.edit(b)
		m := Merge(a.Plan, []*Shard{a, b})
		require.Equal(t, 1, len(m.Problems)+len(m.EarlyEnds), c.name)
		require.Contains(t, append(m.Problems, m.EarlyEnds...)[0], c.want)
	}
}

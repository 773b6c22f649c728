package shard

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/machine"
	"github.com/sse-soak/sse-soak/internal/plan"
)

// withoutRunners returns the content of a merged run that does not depend on the number of runners.
func withoutRunners(m *Merged) map[string]any {
	ids := map[string]uint64{}
	for _, c := range m.Connections.All() {
		ids[c.ID] = c.Received
	}
	out := map[string]any{
		"ids": ids, "connections": m.Connections.Len(), "series": m.Series, "points": m.Points, "checks": m.Checks, "problems": m.Problems,
		"connect": m.Connect.Pack(), "first": m.FirstMessage.Pack(), "lateness": m.Lateness.Pack(),
	}
	for _, metric := range m.Metrics {
		trend := metric.Trend.Pack()
		metric.Trend = nil
		out["metric "+metric.Name], out["trend "+metric.Name] = metric, trend
	}
	return out
}

func TestMergedPartsEqualOneRun(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for n := range uint64(5) {
		r := rand.New(rand.NewPCG(seed, n))
		p := planFor(1+r.IntN(2*latenessBatch+2), 20+r.IntN(60))
		parts, single := randomRun(r, p)
		one := p
		one.Runners = 1
		want := Merge(one, []*Shard{single})
		require.Empty(t, want.Problems)
		first := Merge(p, parts)
		require.Equal(t, withoutRunners(want), withoutRunners(first), "the merged parts must equal one run: seed %d %d", seed, n)
		for range 3 {
			r.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
			reordered := Merge(p, parts)
			require.Equal(t, first.Runners, reordered.Runners)
			require.Equal(t, first.Connections, reordered.Connections)
			require.Equal(t, withoutRunners(first), withoutRunners(reordered), "the order of shards must not matter: seed %d %d", seed, n)
		}
	}
}

func TestMergeProblems(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name string
		edit func(p *plan.Plan, s []*Shard) []*Shard
		want []string
	}{
		{"none", func(_ *plan.Plan, s []*Shard) []*Shard { return s }, nil},
		{"no shard", func(*plan.Plan, []*Shard) []*Shard { return nil }, []string{
			"runner 1 of 3 left no shard", "runner 2 of 3 left no shard", "runner 3 of 3 left no shard",
			"6 of 6 planned clients were not observed: d-0, d-1, d-2, d-3, d-4, …",
		}},
		{"a missing runner", func(_ *plan.Plan, s []*Shard) []*Shard { return []*Shard{s[0], s[2]} }, []string{
			"runner 2 of 3 left no shard", "do not cover the plan exactly once: a gap between 1/3 and 2/3", "2 of 6 planned clients were not observed: d-2, d-3",
		}},
		{"a duplicate", func(_ *plan.Plan, s []*Shard) []*Shard { return append(s, s[1]) }, []string{
			"runner 2 left two shards", "an overlap between 1/3 and 2/3", "2 clients were observed more than once: d-2, d-3",
		}},
		{"a runner that is not in the plan", func(_ *plan.Plan, s []*Shard) []*Shard {
			extra := newEmptyShard(s[0].Plan, 3)
			extra.Runner.Index, extra.Runner.Segment = 4, "1:1"
			return append(s, extra)
		}, []string{"runner 4 is not in the plan, which has 3 runners"}},
		{"of another run", func(_ *plan.Plan, s []*Shard) []*Shard { s[2].Runner.TestID = "yesterday"; return s }, []string{
			`the shard of runner 3 on h3 belongs to the run "yesterday", not to "t"`,
		}},
		{"of another script", func(_ *plan.Plan, s []*Shard) []*Shard { s[1].Runner.ScriptHash = "def"; return s }, []string{
			"runner 2 on h2 ran a different script from runner 1 on h1; use one script",
		}},
		{"of another plan", func(_ *plan.Plan, s []*Shard) []*Shard { s[0].Plan.NoopInterval = 1; return s }, []string{
			"runner 1 ran another plan: NOOP_INTERVAL is 1, not 15",
		}},
		{"with more streams per virtual user", func(_ *plan.Plan, s []*Shard) []*Shard { s[0].Plan.ConnectionsPerVU = 2; return s }, []string{
			"runner 1 ran another plan: CONNECTIONS_PER_VU is 2, not 1",
		}},
		{"another spelling of the target", func(_ *plan.Plan, s []*Shard) []*Shard { s[0].Plan.BackendURL = "http://h/"; return s }, nil},
		{"another notation of a segment", func(_ *plan.Plan, s []*Shard) []*Shard { s[0].Runner.Segment = "0:2/6"; return s }, nil},
		{"no segment", func(_ *plan.Plan, s []*Shard) []*Shard { s[1].Runner.Segment = ""; return s }, []string{`runner 2 has the segment ""`}},
		{"killed", func(_ *plan.Plan, s []*Shard) []*Shard { s[0].Runner.State = Running; return s }, []string{
			"runner 1 on h1 did not finish: it left no final shard (file of its results); the data ends at 22:14:20 UTC",
		}},
		{"killed before its second checkpoint", func(_ *plan.Plan, s []*Shard) []*Shard {
			s[0].Runner.State, s[0].Runner.EndedUS = Running, s[0].Runner.StartedUS+20_000
			return s
		}, []string{
			"runner 1 on h1 did not finish: it left no final shard (file of its results); it stored no data after its start at 22:13:20 UTC",
		}},
		{"interrupted", func(_ *plan.Plan, s []*Shard) []*Shard {
			s[0].Runner.State, s[0].Runner.Error = Interrupted, "by SIGINT"
			return s
		}, []string{"runner 1 on h1 did not finish: it was interrupted (by SIGINT)"}},
		{"in an unknown state", func(_ *plan.Plan, s []*Shard) []*Shard { s[0].Runner.State = "napping"; return s }, []string{`its state is "napping"`}},
		{"a client is missing", func(_ *plan.Plan, s []*Shard) []*Shard { s[1].Connections = s[1].Connections[:1]; return s }, []string{
			"1 of 6 planned clients was not observed: d-3",
		}},
		{"a duplicate client", func(_ *plan.Plan, s []*Shard) []*Shard {
			s[0].Connections = append(s[0].Connections, s[2].Connections[0])
			return s
		}, []string{"1 client was observed more than once: d-4"}},
		{"a client of another plan", func(_ *plan.Plan, s []*Shard) []*Shard { s[0].Connections[0].ID = "x"; return s }, []string{
			"1 of 6 planned clients was not observed: d-0", "1 client is not part of this plan: x",
		}},
		{"a machine that was suspended", func(_ *plan.Plan, s []*Shard) []*Shard {
			const start = 1_700_000_000_000_000
			s[0].Machine = &machine.Record{FromUS: start, ToUS: start + 9e6, Counters: []machine.Series{
				{Name: machine.Suspension, Begin: 5, End: 605, Increase: 600, Stretches: []machine.Stretch{{FromUS: start, ToUS: start + 5e6, Increase: 600}}},
			}}
			return s
		}, []string{"runner 1 on h1 did not run without interruption: its machine was suspended for 10 min, first at 2023-11-14 22:13:20 UTC; keep the machine awake"}},
		{"an unplanned publisher", func(_ *plan.Plan, s []*Shard) []*Shard {
			s[1].Published = publishedSample(t)
			return s
		}, []string{"runner 2 published messages, but the plan has no publisher"}},
		{"a series that cannot be read", func(_ *plan.Plan, s []*Shard) []*Shard { s[0].Series[0].Lateness = &Packed{Max: -1}; return s }, []string{
			"unreadable series of runner 1",
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := planFor(3, 6)
			parts, _ := randomRun(rand.New(rand.NewPCG(1, 2)), p)
			m := Merge(p, c.edit(&p, parts))
			found := append(m.EarlyEnds, m.Problems...)
			require.Len(t, found, len(c.want), "%q", found)
			for i, want := range c.want {
				require.Contains(t, found[i], want)
			}
		})
	}
}

func TestLatencyAcrossClocksIsRelativeToTheFastestMessage(t *testing.T) {
	t.Parallel()
	p := planFor(2, 2)
	a, b := newEmptyShard(p, 1), newEmptyShard(p, 2)
	fill := func(s *Shard, skew time.Duration) {
		s.Latency = &Latency{MinUS: (skew + time.Millisecond).Microseconds(), OffsetUS: -skew.Microseconds(), Histogram: NewHistogram()}
		for ms := range 100 {
			s.Latency.Histogram.Record(time.Duration(ms+1) * time.Millisecond)
		}
	}
	fill(a, -time.Hour)
	fill(b, 3*time.Second)
	m := Merge(p, []*Shard{a, b})
	require.EqualValues(t, 200, m.Latency.Histogram.Count())
	require.InEpsilon(t, 50*time.Millisecond, m.Latency.Histogram.Quantile(.505), .03)
	require.Equal(t, 99*time.Millisecond, m.Latency.Histogram.Max())
	require.EqualValues(t, -3_599_999_000, m.Latency.MinUS)
}

func TestMetricsOfRunnersAddUp(t *testing.T) {
	t.Parallel()
	p := planFor(2, 2)
	a, b := newEmptyShard(p, 1), newEmptyShard(p, 2)
	a.Metrics = []Metric{{Name: "z", Sum: 1, Count: 1, Min: 1, Max: 1}, {Name: "t", Trend: NewHistogram()}}
	b.Metrics = []Metric{{Name: "z", Sum: 5, Count: 2, Min: -1, Max: 4}}
	a.Checks, b.Checks = []ScriptCheck{{"x", 1, 2}}, []ScriptCheck{{"y", 3, 4}, {"x", 10, 20}}
	m := Merge(p, []*Shard{a, b})
	require.Equal(t, Metric{Name: "z", Sum: 6, Count: 3, Min: -1, Max: 4}, m.Metrics[1])
	require.Equal(t, []ScriptCheck{{"x", 11, 22}, {"y", 3, 4}}, m.Checks)
	m.Metrics[0].Trend.Record(time.Second)
	require.Zero(t, a.Metrics[1].Trend.Count(), "merging must not write into a shard")
}

func TestMergeNamesASuspensionBetweenTwoParts(t *testing.T) {
	t.Parallel()
	p := planFor(3, 6)
	parts, _ := randomRun(rand.New(rand.NewPCG(1, 2)), p)
	lost, next := parts[1], *parts[1]
	lost.Runner.State, lost.Runner.EndedUS = Running, lost.Runner.StartedUS+20e6
	next.Runner.ReplacedStartUS, next.Runner.StartedUS = lost.Runner.StartedUS, lost.Runner.EndedUS+625e6
	next.Plan.Seconds -= 645
	suspended := func(seconds float64) *machine.Record {
		return &machine.Record{Boot: "b", Counters: []machine.Series{{Name: machine.Suspension, Begin: seconds, End: seconds}}}
	}
	lost.Machine, next.Machine = suspended(5), suspended(605)
	merge := func() *Merged { return Merge(p, []*Shard{&next, parts[2], lost, parts[0]}) }
	m := merge()
	require.Empty(t, m.Problems)
	require.Len(t, m.EarlyEnds, 1)
	require.Contains(t, m.EarlyEnds[0], "runner 2 on h2 did not finish: its machine was suspended for 10 min until about ")
	next.Machine.Boot = "another"
	require.Contains(t, merge().EarlyEnds[0], "it left no final shard")
}

func TestMergeOfAReplacedRunner(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit func(lost, next *Shard)
		want string // "": no problem
	}{
		"replaced":                 {func(_, _ *Shard) {}, ""},
		"without a replaced start": {func(_, next *Shard) { next.Runner.ReplacedStartUS = 0 }, "runner 2 left two shards"},
		"after its end":            {func(lost, _ *Shard) { lost.Runner.State = Finished }, "runner 2 left two shards"},
		"while it ran":             {func(lost, next *Shard) { next.Runner.StartedUS = lost.Runner.EndedUS - 1 }, "runner 2 was replaced at "},
		"without points":           {func(_, next *Shard) { next.Points = nil }, ""},
		"with another plan":        {func(_, next *Shard) { next.Plan.LateMS++ }, "runner 2 ran another plan"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := planFor(3, 6)
			parts, _ := randomRun(rand.New(rand.NewPCG(1, 2)), p)
			lost, next := parts[1], *parts[1]
			lost.Runner.State, lost.Runner.EndedUS = Interrupted, lost.Runner.StartedUS+20e6
			next.Runner.ReplacedStartUS, next.Runner.StartedUS = lost.Runner.StartedUS, lost.Runner.EndedUS+1e6
			next.Plan.Seconds -= 21
			c.edit(lost, &next)
			m := Merge(p, []*Shard{&next, parts[2], lost, parts[0]})
			if c.want == "" {
				require.Empty(t, m.Problems)
				require.Len(t, m.EarlyEnds, 1)
				require.True(t, m.Runners[1].Replaced)
				if buckets, width := m.Timeline(); len(next.Points) == 0 {
					require.Equal(t, BucketWidth, width, "without the points of a runner, the timeline must consist of buckets")
					require.Equal(t, m.Series, buckets)
				} else {
					require.Equal(t, PointWidth, width)
					require.Equal(t, m.Points, buckets)
				}
				return
			}
			require.Contains(t, strings.Join(m.Problems, "\n"), c.want)
		})
	}
}

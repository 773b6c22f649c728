package soak

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/shard"
)

const suiteJS = `suite({name: "rampup", profile: "smoke", splitBy: ["scenario", "code"], parameters: {STAGES: "20"},
	stages: [{name: "r20", title: "20 requests/s", kind: "load", start: 2, seconds: 3, rate: 20, connections: 10}]});`

func TestSuiteIsCheckedAndStored(t *testing.T) {
	t.Parallel()
	rt, r := newVU(t)
	js(t, rt, suiteJS)
	js(t, rt, suiteJS) // each virtual user declares the suite
	require.Equal(t, &shard.Suite{
		Name: "rampup", Profile: "smoke", SplitBy: []string{"scenario", "code"}, Parameters: map[string]string{"STAGES": "20"},
		Stages: []shard.Stage{{Name: "r20", Title: "20 requests/s", Kind: "load", Start: 2, Seconds: 3, Rate: 20, Connections: 10}},
	}, r.declaredSuite())
	for script, want := range map[string]string{
		`suite({name: "burst"})`: "two different suites",
		`suite({})`:              "name is missing",
		`suite({name: "x", stages: [{name: "a"}, {name: "a"}]})`: `stages must have unique names, got "a"; remove repeated numbers`,
	} {
		_, err := rt.VU.Runtime().RunString(script)
		require.ErrorContains(t, err, want)
	}
	rt.MoveToVUContext(&lib.State{})
	_, err := rt.VU.Runtime().RunString(suiteJS)
	require.ErrorContains(t, err, "call soak.suite in the init context")
}

func TestSuiteTagsSplitTheSums(t *testing.T) {
	t.Parallel()
	registry := metrics.NewRegistry()
	duration := registry.MustNewMetric(shard.RequestDuration, metrics.Trend, metrics.Time)
	s := newSums()
	s.splitBy = []string{"scenario", "code"}
	s.maxDelay = func(from, to time.Time) time.Duration {
		require.True(t, from.Before(to))
		return 10 * time.Millisecond
	}
	at := time.UnixMicro(1_700_000_000_000_000)
	add := func(ms float64, tags map[string]string) {
		s.add([]metrics.SampleContainer{metrics.Sample{
			TimeSeries: metrics.TimeSeries{Metric: duration, Tags: registry.RootTagSet().WithTagsFromMap(tags)}, Time: at, Value: ms,
		}})
	}
	add(30, map[string]string{"scenario": "r20", "code": "ok", "url": "a"})
	at = at.Add(time.Second)
	add(50, map[string]string{"scenario": "r20", "code": "ok", "url": "b"})
	add(7, map[string]string{"scenario": "r20", "code": "net-1050"})
	var out shard.Shard
	s.fill(&out)
	require.Len(t, out.Metrics, 2)
	failed, ok := out.Metrics[0], out.Metrics[1]
	require.Equal(t, map[string]string{"scenario": "r20", "code": "net-1050"}, failed.Tags)
	require.EqualValues(t, 1, failed.Count)
	require.Equal(t, map[string]string{"scenario": "r20", "code": "ok"}, ok.Tags)
	require.EqualValues(t, 2, ok.Count)
	require.InDelta(t, 30*30+50*50, ok.Squares, 1e-9)
	require.InDelta(t, .04, ok.Undelayed.Max().Seconds(), .001, "the 10 ms that this process may have caused must not count")
	require.Zero(t, failed.Undelayed.Max())
	require.EqualValues(t, 1_700_000_000_000_000-30_000, ok.FirstUS, "FirstUS must be the start of the first request")
	require.EqualValues(t, 1_700_000_001_000_000, ok.LastUS)
	var p shard.Progress
	s.progress(&p)
	require.Equal(t, shard.Progress{Stage: "r20", Requests: 3, Failed: 1}, p)
	add(7, map[string]string{"scenario": shard.Other}) // a scenario without its own sums has no outcome
	p = shard.Progress{}
	s.progress(&p)
	require.Equal(t, shard.Progress{Stage: "r20", Requests: 4, Failed: 1}, p)
}

// A script that sets a tag to an id fills neither memory nor the shard. No value is lost.
func TestSeriesAreBounded(t *testing.T) {
	t.Parallel()
	registry := metrics.NewRegistry()
	counter := registry.MustNewMetric("a_counter", metrics.Counter)
	s := newSums()
	s.splitBy = []string{"id"}
	const samples = maxCached + 10
	for i := range samples {
		s.add([]metrics.SampleContainer{metrics.Sample{
			TimeSeries: metrics.TimeSeries{Metric: counter, Tags: registry.RootTagSet().With("id", strconv.Itoa(i))}, Value: 1,
		}})
	}
	require.LessOrEqual(t, len(s.cache), maxCached)
	var out shard.Shard
	s.fill(&out)
	require.Len(t, out.Metrics, maxSeries+1)
	var sum float64
	for _, m := range out.Metrics {
		sum += m.Sum
	}
	require.InDelta(t, samples, sum, 0)
}

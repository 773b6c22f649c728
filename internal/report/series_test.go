package report

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// The last sample of a run is taken at its end, so the time before that sample is not the interval.
func TestSampleIntervalIgnoresTheLastSample(t *testing.T) {
	t.Parallel()
	s := &pageBuilder{Run: &Run{Samples: []resources.Sample{{Unix: 100}, {Unix: 105}, {Unix: 110}, {Unix: 115}, {Unix: 116}}}}
	require.Equal(t, "5 s", s.sampleInterval())
}

// With a sample per second and a point per five seconds, each point covers the time since the previous point.
func TestRatesCoverWholeSteps(t *testing.T) {
	t.Parallel()
	from := int64(1_800_000_000)
	s := &series{from: from, step: step, n: 3}
	var samples []resources.Sample
	cpu, retransmits := 1.0, uint64(1)
	for second := range int64(2*step + 1) {
		if second%step == 3 { // busy in one second of five, and not in the last one
			cpu, retransmits = cpu+1, retransmits+10
		}
		sample := resources.Sample{Unix: from + second, BackendCPU: cpu}
		sample.Retransmits, sample.NetworkKnown = retransmits, true
		samples = append(samples, sample)
	}
	s.addRates(samples, 2)
	sum := func(column []float64) (total float64) {
		for _, v := range column {
			if !math.IsNaN(v) {
				total += v
			}
		}
		return total
	}
	require.InDelta(t, 20, sum(s.retransmits), 0.001, s.retransmits)
	require.InDelta(t, 20, s.backendCPU[1], 0.001, s.backendCPU)
}

// A bucket of 1970 in a run of today must not make an axis of millions of steps.
func TestOutlyingTimestampsDoNotStretchTheAxis(t *testing.T) {
	t.Parallel()
	const start = 1_800_000_000
	h := shard.NewHistogram()
	h.Record(1)
	m := &shard.Merged{Series: []shard.Bucket{{Unix: 0, Open: 9, Lateness: h.Pack()}}}
	for i := range int64(20) {
		m.Series = append(m.Series, shard.Bucket{Unix: start + i*step, Open: 7, Lateness: h.Pack()})
	}
	m.Series = append(m.Series, shard.Bucket{Unix: 1 << 40, Open: 9, Lateness: h.Pack()})
	s := newSeries(m, []resources.Sample{{Unix: 1}, {Unix: start}}, 1)
	require.Less(t, s.n, 50_000)
	for i := range int64(20) {
		require.InDelta(t, 7, s.open[(start+(i+1)*step-s.from)/step], 0)
	}
	require.Len(t, numbersOf(s.open, 0, s.n), 20)

	gap := &shard.Merged{Series: []shard.Bucket{{Unix: start}, {Unix: start + 3600}}}
	require.Equal(t, 722, newSeries(gap, nil, 1).n, "the axis must cover a gap of an hour")
	require.Less(t, newSeries(&shard.Merged{}, []resources.Sample{{Unix: 1}, {Unix: start}, {Unix: 1 << 50}}, 1).n, 50_000)
}

// The charts of a run of 20 s have a point per second, and all end at the same time.
func TestChartsOfAShortRun(t *testing.T) {
	t.Parallel()
	r := simulatedRun(20, 20)
	r.Verdict.Plan.NoopInterval = 1
	const n = 21
	at, cpu := int64(simulatedStart), 1.0
	r.Samples = nil
	for second := range int64(n) {
		b := shard.Bucket{Unix: at + second, Open: 20, Noops: 20, ProcessUsage: shard.ProcessUsage{RSS: 1 << 20, CPUPercent: 3}}
		if second > 0 && second < 15 {
			h := shard.NewHistogram()
			h.Record(time.Millisecond)
			b.Lateness = h.Pack()
		} else {
			b.Open, b.Noops = 0, 0
		}
		r.Merged.Points = append(r.Merged.Points, b)
		cpu += .1
		r.Samples = append(r.Samples, resources.Sample{Unix: at + second, BackendRSS: 1 << 20, BackendCPU: cpu, Streams: 20})
	}
	page := Full(r)
	require.Equal(t, Axis{From: at, Step: 1, N: n + 1}, Axis{From: page.Time.From, Step: page.Time.Step, N: page.Time.N})
	charts := map[string]*Chart{}
	for _, section := range page.Sections {
		for _, chart := range section.Charts {
			charts[chart.ID] = chart
		}
	}
	for id, want := range map[string]int{"connections": n, "runner-cpu": n, "target-cpu": n - 1, "target-memory": n, "messages": n, "lateness": 14} {
		require.Len(t, charts[id].Series[0].At, want, id)
		if id != "lateness" {
			require.GreaterOrEqual(t, charts[id].Series[0].At[want-1], float64(n-1), "the line of %s ends before the run", id)
		}
	}
	require.Contains(t, charts["lateness"].Note, "in each second")
	expected, received := charts["messages"].Series[1], charts["messages"].Series[0]
	for i := 2; i < 14; i++ {
		require.Equal(t, received.Values[i], expected.Values[i])
	}

	r.Verdict.Service.Message = "message"
	section := Section{}
	newPageBuilder(r).messagesOverTime(&section, 1)
	require.Contains(t, section.Charts[0].Note, "/ 1 s per message")

	r.Verdict.Plan.NoopInterval = 15
	section = Section{}
	newPageBuilder(r).messagesOverTime(&section, 1)
	require.Len(t, section.Charts[0].Series, 1, "bars shorter than the interval must not have an expected number")

	var b strings.Builder
	require.NoError(t, SeriesCSV(&b, r.Merged, r.Verdict, r.Samples))
	require.Equal(t, 1+n, strings.Count(b.String(), "\n"))
}

// In the first and the last step, messages are expected only for the time in which streams were open.
func TestExpectedMessagesFollowTheStartAndTheEndOfARun(t *testing.T) {
	t.Parallel()
	const start = 1_800_000_000
	m := &shard.Merged{Series: []shard.Bucket{{Unix: start, Open: 20, Noops: 40}, {Unix: start + 5, Open: 20, Noops: 100}, {Unix: start + 10, Noops: 20}}}
	v := &verdict.Verdict{}
	v.Plan.NoopInterval = 1
	s := &pageBuilder{v: v, series: newSeries(m, nil, 1), phases: phases{start: start + 3, open: start + 3, ending: start + 11, end: start + 11}}
	expected, received := s.messagesPerBar(1)
	require.Equal(t, []float64{40, 100, 20}, received[:3])
	require.Equal(t, received[:3], expected[:3])
	require.Equal(t, []float64{40, 100, 20, 20}, extendToEnd(expected, 1))

	s.phases = phases{start: start + 1, open: start + 3, ending: start + 10, end: start + 12} // a ramp and a disconnect phase of 2 s each
	expected, _ = s.messagesPerBar(1)
	require.Equal(t, []float64{60, 100, 20}, expected[:3])
	s.phases = phases{} // of a run in progress
	expected, _ = s.messagesPerBar(1)
	require.Equal(t, []float64{50, 100, 50}, expected[:3])
	s.v.EndedUnix = start + 7 // now
	expected, _ = s.messagesPerBar(1)
	require.InDelta(t, 40, expected[1], 1e-9, "the current step")
}

func TestBackendStreamsAreShownUntilTheEnd(t *testing.T) {
	t.Parallel()
	const start = 1_800_000_000
	samples := []resources.Sample{{Unix: start + 3, BackendRSS: 1}, {Unix: start + 8, BackendRSS: 1, Streams: 20}, {Unix: start + 12, BackendRSS: 1}}
	m := &shard.Merged{Series: []shard.Bucket{{Unix: start, Open: 20}, {Unix: start + 5, Open: 20}, {Unix: start + 10}}}
	s := &pageBuilder{Run: &Run{Samples: samples}, v: &verdict.Verdict{StartedUnix: start + 3}, series: newSeries(m, samples, 1), phases: phases{end: start + 11}}
	got := s.backendStreams()
	require.True(t, math.IsNaN(got[1]), "the number must be unknown before the first stream")
	require.True(t, math.IsNaN(got[2]) || got[2] == 20, "the sample at 12 s must not count, because the end is at 11 s")
	require.InDelta(t, 0, got[3], 0)

	for i, us := range []int64{100_000, 400_000} { // one sample before and one after an end in the same second
		samples = append(samples[:2+i], resources.Sample{Unix: start + 11, AtUS: (start+11)*1e6 + us, BackendRSS: 1, Streams: 20 - 20*i})
	}
	s = &pageBuilder{Run: &Run{Samples: samples}, v: s.v, series: newSeries(m, samples, 1), phases: phases{end: start + 11.2}}
	require.Equal(t, []float64{20, 0}, s.backendStreams()[2:4])
}

func TestReplacedRunnerDoesNotExtendTheConnectPhase(t *testing.T) {
	t.Parallel()
	r := simulatedRun(100, 3600)
	want := phasesOf(r.Merged, r.Verdict).open
	second := &r.Merged.Runners[1]
	second.ReplacedStartUS = second.StartedUS
	second.StartedUS += 1800e6
	require.InDelta(t, want, phasesOf(r.Merged, r.Verdict).open, simulatedConnect)
}

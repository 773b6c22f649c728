package live

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/report/html"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A simulatedRun is a run of two runners that a test advances without waiting.
type simulatedRun struct {
	*View
	at   time.Time
	rand *rand.Rand
	sent [3]uint64
}

func newSimulatedRun(interval float64) *simulatedRun {
	p := plan.Default()
	p.TestID, p.Connections, p.NoopInterval = "t", 600, interval
	h := &simulatedRun{at: time.Unix(1_700_000_003, 0), rand: rand.New(rand.NewPCG(1, 2))}
	h.View = &View{Watch: new(Watch), Header: Header{Plan: p, Title: "soak t", Service: shard.Service{Message: "noop"}, Total: time.Hour, Machine: resources.Machine{Cores: 2}}}
	h.clock = func() time.Time { return h.at }
	h.Start(h.at)
	return h
}

func (h *simulatedRun) second() {
	h.at = h.at.Add(time.Second)
	unix := h.at.Unix()
	for runner := 1; runner <= 2; runner++ {
		if h.rand.IntN(10) == 0 {
			continue // busy: it reports in the next second
		}
		p := &shard.Progress{Open: 300}
		for start := max(unix/5*5-5, 1_700_000_000); start <= unix; start += 5 { // the last complete bucket, and the current one
			late := shard.NewHistogram()
			late.Record(time.Duration(start%97+int64(runner)) * time.Millisecond)
			b := shard.Bucket{Unix: start, Open: 300, Noops: int(min(unix-start, 4)), Lateness: late.Pack()}
			if start+5 <= unix {
				b.Noops, b.ProcessUsage = 5, shard.ProcessUsage{RSS: uint64(start%100+50) << 20, CPUPercent: float64(start % 7), Goroutines: 9}
			}
			p.Buckets = append(p.Buckets, b)
		}
		h.sent[runner] += 5
		p.Counts = ledger.Counts{Received: h.sent[runner]}
		h.Watch.Add(runner, p)
	}
	h.Sample(resources.Sample{Unix: unix, BackendRSS: uint64(unix%50+1) << 20, BackendCPU: float64(unix-1_700_000_000) * .1, Files: 5, Goroutines: 7, Streams: 600})
}

// The charts are drawn again after each bucket or after each 200th of the elapsed time, whichever is longer.
func TestLongRunsRedrawChartsLessOften(t *testing.T) {
	t.Parallel()
	h := newSimulatedRun(1)
	draws := func(seconds int) (n int) {
		for range seconds {
			h.second()
			before := h.nextDraw
			h.Page()
			if h.nextDraw != before {
				n++
			}
		}
		return n
	}
	require.InDelta(t, 20, draws(100), 1, "the charts must be drawn every 5 s")
	h.at = h.at.Add(40 * time.Minute)
	require.InDelta(t, 8, draws(100), 3, "the charts must be drawn every 12.5 s")
}

func TestInterimResult(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]shard.Progress{
		"nothing received yet":               {},
		"nothing lost yet, 14 undecided":     {Counts: ledger.Counts{Received: 1}, Undecided: 14},
		"nothing received yet, 2 reconnects": {Reconnected: 2},
		"3 noops missed, 1 undecided":        {Counts: ledger.Counts{Lost: 3}, Undecided: 1},
		"2 noops faulty, 4 dropped":          {Counts: ledger.Counts{Corrupted: 2}, Dropped: 4},
		"1,200 refused":                      {Refused: 1200},
	} {
		h := newSimulatedRun(15)
		h.Watch.Add(1, &p)
		l := h.Page()
		require.Equal(t, want, l.Banner.Sentence)
		require.Equal(t, want[0] != 'n', l.Banner.Tone == report.Bad, want)
		h.Declared = true // the script disconnects streams
		require.Equal(t, p.Missed()+p.Faults() > 0, h.Page().Banner.Tone == report.Bad, want)
	}
}

func TestBannerShowsTheStage(t *testing.T) {
	t.Parallel()
	h := newSimulatedRun(15)
	fresh := &View{Watch: new(Watch), Header: h.Header}
	require.Equal(t, "STARTING", fresh.Page().Banner.Word)
	for range 30 {
		h.second()
	}
	l := h.Page()
	require.Equal(t, []any{"RUNNING", "30 s of 1 h"}, []any{l.Banner.Word, l.Clock})
	require.InDelta(t, 30./3600, l.Share, .0001)
	h.Mark("deploy")
	h.Stage("STOPPING", "stopping the run before its end")
	l = h.Page()
	require.Equal(t, []any{"STOPPING", "30 s of 1 h"}, []any{l.Banner.Word, l.Clock}, "a run that is stopped early must keep its time")
	h.at = h.at.Add(time.Hour)
	h.Stage("JUDGING", "the runners have ended")
	l = h.Page()
	require.Equal(t, []string{"JUDGING", "the runners have ended"}, []string{l.Banner.Word, l.Banner.Findings[0]})
	require.EqualValues(t, 1, l.Share)
	require.Equal(t, "deploy", l.Time.Lines[0].Name)
	require.EqualValues(t, 1_700_000_033, h.markers[0].StartedUnix)
}

func TestLinksToPrometheus(t *testing.T) {
	t.Parallel()
	h := newSimulatedRun(15)
	require.Empty(t, h.Page().Links)
	h.Prometheus = "http://127.0.0.1:9090/prometheus/"
	require.Len(t, h.Page().Links, 1)
	h.WritesMetrics = true
	require.Equal(t, "http://127.0.0.1:9090/prometheus/graph?g0.expr=k6_soak_lateness_p99_seconds%7Btestid%3D%22t%22%7D&g0.range_input=1h&g0.tab=0", h.Page().Links[1].URL)
	h.Prometheus = "https://joe:sesame@prometheus.test?token=sesame"
	for _, link := range h.Page().Links {
		require.Contains(t, link.URL, "https://prometheus.test/")
		require.NotContains(t, link.URL, "sesame")
	}
	require.Len(t, h.Page().Links, 4)
	h.Prometheus = "javascript:alert(1)"
	require.Empty(t, h.Page().Links)
}

func BenchmarkSecondAfterEightHours(b *testing.B) {
	h := newSimulatedRun(15)
	for range 8 * 3600 {
		h.second()
	}
	for b.Loop() {
		b.StopTimer()
		h.second()
		b.StartTimer()
		if _, err := h.Page().Parts(); err != nil {
			b.Fatal(err)
		}
	}
}

// A run that checks no messages does not look like a passing one.
func TestUncheckedMessagesAreNotShownAsGood(t *testing.T) {
	t.Parallel()
	h := newSimulatedRun(15)
	require.Equal(t, "nothing received yet", h.Page().Banner.Sentence)
	h.second()
	require.Equal(t, "nothing lost yet", h.Page().Banner.Sentence)
	h.Plan.Service, h.Service = "sse", shard.Service{CountBasis: shard.CountNothing}
	page := h.Page()
	require.Equal(t, report.Doubt, page.Banner.Tone)
	require.Equal(t, "messages are not checked", page.Banner.Sentence)
	require.Equal(t, "not checked", page.Banner.Tiles[1].Value)
}

func TestRunnersOfARunOfRequestsHaveNoLateness(t *testing.T) {
	t.Parallel()
	h := newSimulatedRun(15)
	h.second()
	require.Contains(t, h.Page().Sections[2].Tables[0].Note, "late p99")
	h.Plan.Connections = 0
	require.Empty(t, h.Page().Sections[2].Tables[0].Note)
}

func bucket(unix int64, noops int, late time.Duration) shard.Bucket {
	h := shard.NewHistogram()
	h.Record(late)
	return shard.Bucket{Unix: unix, Open: 10, Noops: noops, Lateness: h.Pack()}
}

func TestBucketsOfAllRunnersAddUp(t *testing.T) {
	t.Parallel()
	var w Watch
	for unix := int64(1000); unix <= 1200; unix += 5 {
		for _, noops := range []int{1, 2} { // each bucket is reported twice, first incomplete
			for runner := 1; runner <= 2; runner++ {
				w.Add(runner, &shard.Progress{Buckets: []shard.Bucket{bucket(unix, noops, time.Duration(runner)*time.Millisecond)}})
			}
		}
	}
	series, points := w.Series()
	require.Empty(t, points)
	require.Len(t, series, 41)
	for i, b := range series {
		require.Equal(t, shard.Bucket{Unix: 1000 + 5*int64(i), Open: 20, Noops: 4, Lateness: b.Lateness}, b)
		h, err := b.Lateness.Unpack()
		require.NoError(t, err)
		require.EqualValues(t, 2, h.Count())
	}
	require.LessOrEqual(t, len(w.recent), int(settleTime/shard.BucketWidth)+1)
	r := w.Runners()
	require.Len(t, r[0].Late, latenessBuckets)
	require.InDelta(t, time.Millisecond, r[0].Late[3], float64(20*time.Microsecond))

	h := shard.NewHistogram()
	h.Record(time.Millisecond)
	for runner := 1; runner <= 3; runner++ {
		w.Add(runner, &shard.Progress{Open: 1, Counts: ledger.Counts{Received: 5}})
		w.Add(runner, &shard.Progress{Open: 2, Counts: ledger.Counts{Received: 10, Late: 1}, Lateness: h.Pack()})
	}
	w.Add(3, nil)
	sum, lateness := w.Total()
	require.Equal(t, shard.Progress{Open: 4, Counts: ledger.Counts{Received: 30, Late: 3}}, sum, "a runner that has ended must have no open stream")
	require.EqualValues(t, 3, lateness.Count())
}

// A runner reports its last bucket of responses each second. The buckets of several runners add up.
func TestResponsesOfAllRunnersAddUp(t *testing.T) {
	t.Parallel()
	var w Watch
	require.Nil(t, w.Responses())
	for runner := 1; runner <= 2; runner++ {
		for _, states := range []map[ledger.ResponseState]int64{{ledger.ResponseComplete: 1}, {ledger.ResponseComplete: 3, ledger.ResponseTruncated: 1}} {
			w.Add(runner, &shard.Progress{Responses: []shard.ResponseBucket{{Unix: 1000, Started: 4, States: states}}})
		}
		w.Add(runner, &shard.Progress{Responses: []shard.ResponseBucket{{Unix: 1005, Started: 2, InFlight: 2}}})
	}
	got := w.Responses()
	want := map[ledger.ResponseState]int64{ledger.ResponseComplete: 6, ledger.ResponseTruncated: 2}
	require.Equal(t, want, got.States)
	require.Equal(t, []shard.ResponseBucket{
		{Unix: 1000, Started: 8, States: want}, {Unix: 1005, Started: 4, InFlight: 4, States: map[ledger.ResponseState]int64{}},
	}, got.Series)
}

func TestFindingsAreListedOnce(t *testing.T) {
	t.Parallel()
	var w Watch
	count := 0
	for i := range maxFindings + 10 {
		w.Add(1, &shard.Progress{Found: []shard.FoundFault{{AtMS: int64(i), ID: fmt.Sprint(i), Text: "1 missed"}}})
		if i%7 == 0 {
			var news []Finding
			news, count, _ = w.Findings(count)
			require.Len(t, news, min(i+1, 7))
			require.Equal(t, fmt.Sprint(i), news[len(news)-1].ID)
		}
	}
	w.Note("action deploy starts")
	w.Add(2, &shard.Progress{Unlisted: 30})
	news, next, unlisted := w.Findings(0)
	require.Len(t, news, maxFindings)
	require.Equal(t, []int{maxFindings + 11, 30}, []int{next, unlisted})
	require.Equal(t, "action deploy starts", news[len(news)-1].Text)
}

func TestRunnerHealth(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for want, r := range map[string]Runner{
		"starting":           {},
		"ok":                 {ReportedAt: now},
		"ended":              {ReportedAt: now, Ended: true},
		"silent for 20 s":    {ReportedAt: now.Add(-20 * time.Second)},
		"no space left":      {ReportedAt: now, Progress: shard.Progress{Trouble: "no space left"}},
		"stalled for 700 ms": {ReportedAt: now, Process: shard.ProcessUsage{StallMS: 700}},
	} {
		text, healthy := r.Health(now)
		require.Equal(t, want, text)
		require.Equal(t, want == "starting" || want == "ok" || want == "ended", healthy)
	}
}

// checkpoint returns the shard of one of two runners after one minute. Its stream is open, and was silent in the second
// half of that minute.
func checkpoint(p plan.Plan, index int, state shard.RunState, endedAt time.Time) *shard.Shard {
	h := shard.NewHistogram()
	h.Record(time.Millisecond)
	return &shard.Shard{
		Schema: shard.Schema, Plan: p, Connect: h, FirstMessage: h, Lateness: h,
		Runner: shard.Runner{
			TestID: p.TestID, Process: string(rune('p' + index)), Index: index, Segment: []string{"0:1/2", "1/2:1"}[index-1], Host: "h", State: state,
			StartedUS: endedAt.Add(-time.Minute).UnixMicro(), EndedUS: endedAt.UnixMicro(),
		},
		Series: []shard.Bucket{bucket(endedAt.Unix()/5*5-5, 1, time.Millisecond)},
		Connections: []ledger.Record{{
			ID: p.ClientID(index - 1), State: ledger.Open, Numbered: true, Numberings: 1, Streams: 1, Attempts: 1, OpenedAt: time.Second, LastAt: 30 * time.Second, Last: 3,
			Counts: ledger.Counts{Received: 3},
		}},
	}
}

func TestPageOfFiles(t *testing.T) {
	t.Parallel()
	p := plan.Default()
	p.TestID, p.Connections, p.ConnectionsPerVU, p.Runners, p.NoopInterval, p.Seconds = "t", 2, 1, 2, 10, 600
	now := time.Unix(1_700_000_000, 0)
	f := &Files{Location: "results/t", clock: func() time.Time { return now }}
	l := f.Page()
	require.Equal(t, []string{"WAITING", "no runner has written data yet"}, []string{l.Banner.Word, l.Banner.Sentence})
	require.False(t, f.Ended())
	_, err := l.Parts()
	require.NoError(t, err)

	show := func(shards ...*shard.Shard) *html.LivePage {
		m := shard.Merge(p, shards)
		v, err := suite.Judge(&verdict.Evidence{Rounds: []*shard.Merged{m}})
		require.NoError(t, err)
		f.Show(v, m, nil)
		return f.Page()
	}
	l = show(checkpoint(p, 1, shard.Running, now))
	require.Equal(t, "RUNNING", l.Banner.Word)
	require.Equal(t, "nothing lost yet, 2 undecided", l.Banner.Sentence)
	require.Equal(t, []string{"1 runner of the plan has not written data yet"}, l.Banner.Findings)
	require.Equal(t, report.Neutral, l.Banner.Tone)
	require.NotEmpty(t, l.Sections[1].Charts)

	l = show(checkpoint(p, 1, shard.Running, now), checkpoint(p, 2, shard.Running, now.Add(-2*time.Minute)))
	require.Equal(t, "runner 2: silent for 2 min", l.Banner.Findings[0])
	require.Equal(t, report.Doubt, l.Banner.Tone)
	f.SetNotice("the bucket does not answer; trying again")
	require.Contains(t, f.Page().Banner.Findings, "the bucket does not answer; trying again")

	l = show(checkpoint(p, 1, shard.Finished, now), checkpoint(p, 2, shard.Interrupted, now))
	require.Equal(t, "ENDED", l.Banner.Word)
	require.Contains(t, l.Banner.Findings, "runner 2: interrupted")
	require.True(t, f.Ended())

	killed, replacement := checkpoint(p, 1, shard.Running, now.Add(-time.Minute)), checkpoint(p, 1, shard.Running, now)
	replacement.Runner.Process, replacement.Runner.StartedUS, replacement.Runner.ReplacedStartUS = "r", now.Add(-30*time.Second).UnixMicro(), killed.Runner.StartedUS
	l = show(killed, replacement, checkpoint(p, 2, shard.Finished, now))
	require.False(t, f.Ended())
	require.Equal(t, "2", l.Banner.Tiles[0].Value, "the stream of a replaced runner is not open")
	replacement.Runner.State = shard.Finished
	show(killed, replacement, checkpoint(p, 2, shard.Finished, now))
	require.True(t, f.Ended(), "a run ends although a replaced runner never finishes")
}

// The script disconnects the clients of a storm, so messages that they missed meanwhile are not losses.
func TestPageOfFilesOmitsMessagesMissedByDisturbedClients(t *testing.T) {
	t.Parallel()
	p := plan.Default()
	p.TestID, p.Connections, p.ConnectionsPerVU, p.Runners, p.NoopInterval, p.Seconds = "t", 2, 1, 2, 10, 600
	now := time.Unix(1_700_000_000, 0)
	f := &Files{clock: func() time.Time { return now }}
	shards := []*shard.Shard{checkpoint(p, 1, shard.Running, now), checkpoint(p, 2, shard.Running, now)}
	for _, s := range shards {
		s.Connections[0].Lost = 3
	}
	v := &verdict.Verdict{Layout: verdict.Layout{Declared: true, Disturbed: []bool{false, true}}}
	f.Show(v, shard.Merge(p, shards), nil)
	require.Contains(t, f.Page().Banner.Sentence, "3 noops missed")
}

// The page of a short run shows a point per second.
func TestChartsOfAShortRun(t *testing.T) {
	t.Parallel()
	h := newSimulatedRun(1)
	for unix := range int64(4) {
		h.Watch.Add(1, &shard.Progress{Points: []shard.Bucket{bucket(1000+unix, 10, time.Millisecond)}})
	}
	page := h.Page()
	require.EqualValues(t, 1, page.Time.Step)
	require.Equal(t, 5, page.Time.N)
	before := h.nextDraw
	h.at = h.at.Add(time.Second)
	h.Page()
	require.Equal(t, time.Second, h.nextDraw.Sub(before))
}

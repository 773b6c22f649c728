package live

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// A simulatedHour is a run of two runners that a test advances without waiting.
type simulatedHour struct {
	*View
	at   time.Time
	rand *rand.Rand
	sent [3]uint64
}

func newHour(interval float64) *simulatedHour {
	p := plan.Default()
	p.TestID, p.Connections, p.NoopInterval = "t", 600, interval
	h := &simulatedHour{at: time.Unix(1_700_000_003, 0), rand: rand.New(rand.NewPCG(1, 2))}
	h.View = &View{Watch: new(Watch), Header: Header{Plan: p, Title: "soak t", Service: shard.Service{Message: "noop"}, Total: time.Hour, Machine: resources.Machine{Cores: 2}}}
	h.clock = func() time.Time { return h.at }
	h.Start()
	return h
}

// second advances the run by one second.
func (h *simulatedHour) second() {
	h.at = h.at.Add(time.Second)
	unix := h.at.Unix()
	for runner := 1; runner <= 2; runner++ {
		if h.rand.IntN(10) == 0 {
			continue // busy: it reports in the next second
		}
		p := &shard.Progress{Open: 300}
		for start := max(unix/5*5-5, 1_700_000_000); start <= unix; start += 5 { // the last complete one, and the current one
			late := shard.NewHistogram()
			late.Record(time.Duration(start%97+int64(runner)) * time.Millisecond)
			b := shard.Bucket{Unix: start, Open: 300, Noops: int(min(unix-start, 4)), Lateness: late.Pack()}
			if start+5 <= unix {
				b.Noops, b.Process = 5, shard.Process{RSS: uint64(start%100+50) << 20, CPUPercent: float64(start % 7), Goroutines: 9}
			}
			p.Buckets = append(p.Buckets, b)
		}
		h.sent[runner] += 5
		p.Counts = ledger.Counts{Received: h.sent[runner]}
		h.Watch.Add(runner, p)
	}
	h.Sample(resources.Sample{Unix: unix, BackendRSS: uint64(unix%50+1) << 20, BackendCPU: float64(unix-1_700_000_000) * .1, Files: 5, Goroutines: 7, Streams: 600})
}

// The charts of a long run are drawn for each bucket or for each 200th of the run, whichever is longer.
func TestLongRunsRedrawChartsLessOften(t *testing.T) {
	t.Parallel()
	h := newHour(1)
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
	require.InDelta(t, 20, draws(100), 1, "each 5 s")
	h.at = h.at.Add(40 * time.Minute)
	require.InDelta(t, 8, draws(100), 3, "each 12.5 s")
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
		h := newHour(15)
		h.Watch.Add(1, &p)
		l := h.Page()
		require.Equal(t, want, l.Banner.Sentence)
		require.Equal(t, want[0] != 'n', l.Banner.Tone == report.Bad, want)
		h.Declared = true // its script disconnects streams
		require.Equal(t, p.Missed()+p.Faults() > 0, h.Page().Banner.Tone == report.Bad, want)
	}
}

func TestStages(t *testing.T) {
	t.Parallel()
	h := newHour(15)
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
	require.Equal(t, []any{"STOPPING", "30 s of 1 h"}, []any{l.Banner.Word, l.Clock}, "a run that is stopped early keeps its time")
	h.at = h.at.Add(time.Hour)
	h.Stage("JUDGING", "the runners have ended")
	l = h.Page()
	require.Equal(t, []string{"JUDGING", "the runners have ended"}, []string{l.Banner.Word, l.Banner.Findings[0]})
	require.EqualValues(t, 1, l.Share)
	require.Equal(t, "deploy", l.Time.Lines[0].Name)
}

func TestLinksToPrometheus(t *testing.T) {
	t.Parallel()
	h := newHour(15)
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

func BenchmarkSecondOfADay(b *testing.B) {
	h := newHour(15)
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
	h := newHour(15)
	require.Equal(t, "nothing received yet", h.Page().Banner.Sentence)
	h.second()
	require.Equal(t, "nothing lost yet", h.Page().Banner.Sentence)
	h.Plan.Service, h.Service = "sse", shard.Service{Counts: shard.CountsNothing}
	page := h.Page()
	require.Equal(t, report.Doubt, page.Banner.Tone)
	require.Equal(t, "messages are not checked", page.Banner.Sentence)
	require.Equal(t, "not checked", page.Banner.Tiles[1].Value)
}

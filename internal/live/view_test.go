package live

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/report/html"
	"github.com/sse-soak/sse-soak/internal/resources"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// A change as the script of the page reads it.
type change struct {
	Parts  map[string]string
	Time   *struct{ From, N int64 }
	Charts map[string]struct{ Series []series }
	Points map[string]map[string]series
}

type series struct {
	Name   string
	At     []int64
	Values []*float64
}

// A browser has what a page has after some changes: points by chart, series and index.
type browser struct {
	parts  map[string]string
	n      int64
	points map[string]map[string]map[int64]*float64
}

func (b *browser) apply(t *testing.T, data []byte) (points int) {
	t.Helper()
	var c change
	require.NoError(t, json.Unmarshal(data, &c))
	for id, html := range c.Parts {
		b.parts[id] = html
	}
	if c.Time != nil {
		b.n = c.Time.N
	}
	for id, chart := range c.Charts {
		b.points[id] = map[string]map[int64]*float64{}
		for _, s := range chart.Series {
			b.points[id][s.Name] = map[int64]*float64{}
			points += b.add(id, s.Name, s)
		}
	}
	for id, of := range c.Points {
		for name, s := range of {
			points += b.add(id, name, s)
		}
	}
	return points
}

func (b *browser) add(chart, name string, s series) int {
	for i, at := range s.At {
		b.points[chart][name][at] = s.Values[i]
	}
	return len(s.At)
}

// An hour is a run of two runners that a test leads through without waiting.
type hour struct {
	*View
	at   time.Time
	rand *rand.Rand
	sent [3]uint64
}

func newHour(interval float64) *hour {
	p := plan.Default()
	p.TestID, p.Connections, p.NoopInterval = "t", 600, interval
	h := &hour{at: time.Unix(1_700_000_003, 0), rand: rand.New(rand.NewPCG(1, 2))}
	h.View = &View{Watch: new(Watch), About: About{Plan: p, Title: "soak t", Service: shard.Service{Message: "noop"}, Total: time.Hour, Machine: resources.Machine{Cores: 2}}}
	h.clocks = func() time.Time { return h.at }
	h.Start()
	return h
}

// second leads the run on by one.
func (h *hour) second() {
	h.at = h.at.Add(time.Second)
	unix := h.at.Unix()
	for runner := 1; runner <= 2; runner++ {
		if h.rand.IntN(10) == 0 {
			continue // it is busy, and says it later
		}
		p := &shard.Progress{Open: 300}
		for start := max(unix/5*5-5, 1_700_000_000); start <= unix; start += 5 { // the one that ended, and the present one
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
		h.Watch.Hear(runner, p)
	}
	h.Sample(resources.Sample{Unix: unix, BackendRSS: uint64(unix%50+1) << 20, BackendCPU: float64(unix-1_700_000_000) * .1, Files: 5, Goroutines: 7, Streams: 600})
}

// What a browser has after an hour of deltas is what one has that just came.
func TestDeltasMakeTheWholePage(t *testing.T) {
	t.Parallel()
	for _, interval := range []float64{1, 7.5, 40} {
		h := newHour(interval)
		b := &browser{map[string]string{}, 0, map[string]map[string]map[int64]*float64{}}
		var changes html.Changes
		snapshots, most := 0, 0
		for second := range 330 {
			h.second()
			l := h.Page(false)
			delta, ok, err := changes.Delta(l)
			require.NoError(t, err)
			if !ok {
				l = h.Page(true)
				require.NoError(t, changes.Begin(l))
				delta, err = html.Snapshot(l)
				require.NoError(t, err)
				snapshots++
			}
			if points := b.apply(t, delta); second > 120 {
				most = max(most, points)
			}
		}
		for range 70 { // both runners have said all
			h.second()
			delta, _, err := changes.Delta(h.Page(false))
			require.NoError(t, err)
			b.apply(t, delta)
		}
		whole, err := html.Snapshot(h.Page(true))
		require.NoError(t, err)
		fresh := &browser{map[string]string{}, 0, map[string]map[string]map[int64]*float64{}}
		fresh.apply(t, whole)
		require.Equal(t, fresh.n, b.n)
		require.Equal(t, fresh.parts, b.parts)
		for chart, of := range fresh.points {
			for name, points := range of {
				require.Equal(t, points, b.points[chart][name], "%s of %s, every %v s", name, chart, interval)
			}
		}
		require.Less(t, snapshots, 12, "each time a line is new, and not otherwise")
		require.Less(t, most, 80, "a second brings the points of a second, however long the run is")
	}
}

func TestTheVerdictSoFar(t *testing.T) {
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
		h.Watch.Hear(1, &p)
		l := h.Page(true)
		require.Equal(t, want, l.Banner.Reasons[0])
		require.Equal(t, want[0] != 'n', l.Banner.Tone == html.Bad, want)
		h.Declared = true // its script does something to streams
		require.Equal(t, p.Missed()+p.Faults() > 0, h.Page(true).Banner.Tone == html.Bad, want)
	}
}

func TestStagesOfARun(t *testing.T) {
	t.Parallel()
	h := newHour(15)
	fresh := &View{Watch: new(Watch), About: h.About}
	require.Equal(t, "STARTING", fresh.Page(true).Banner.Word)
	for range 30 {
		h.second()
	}
	l := h.Page(true)
	require.Equal(t, []any{"RUNNING", "30 s of 1 h"}, []any{l.Banner.Word, l.Clock})
	require.InDelta(t, 30./3600, l.Share, .0001)
	h.Mark("deploy")
	h.Stage("JUDGING", "the runners have ended")
	l = h.Page(true)
	require.Equal(t, []string{"JUDGING", "the runners have ended"}, []string{l.Banner.Word, l.Banner.Reasons[1]})
	require.EqualValues(t, 1, l.Share)
	require.Equal(t, "deploy", l.Time.Lines[0].Name)
}

func TestLinksToPrometheus(t *testing.T) {
	t.Parallel()
	h := newHour(15)
	require.Empty(t, h.Page(true).Links)
	h.Prometheus = "http://127.0.0.1:9090/prometheus/"
	require.Len(t, h.Page(true).Links, 1)
	h.Written = true
	require.Equal(t, "http://127.0.0.1:9090/prometheus/graph?g0.expr=k6_soak_lateness_p99_seconds%7Btestid%3D%22t%22%7D&g0.range_input=1h&g0.tab=0", h.Page(true).Links[1].URL)
	h.Prometheus = "https://joe:sesame@prometheus.test?token=sesame"
	for _, link := range h.Page(true).Links {
		require.Contains(t, link.URL, "https://prometheus.test/")
		require.NotContains(t, link.URL, "sesame")
	}
	require.Len(t, h.Page(true).Links, 4)
	h.Prometheus = "javascript:alert(1)"
	require.Empty(t, h.Page(true).Links)
}

func BenchmarkSecondOfADay(b *testing.B) {
	h := newHour(15)
	for range 8 * 3600 {
		h.second()
	}
	var changes html.Changes
	require.NoError(b, changes.Begin(h.Page(true)))
	for b.Loop() {
		b.StopTimer()
		h.second()
		b.StartTimer()
		if _, _, err := changes.Delta(h.Page(false)); err != nil {
			b.Fatal(err)
		}
	}
}

// A run that checks no message never looks as if all were well with them.
func TestUncheckedMessagesAreNotShownAsGood(t *testing.T) {
	t.Parallel()
	h := newHour(15)
	require.Equal(t, []string{"nothing received yet"}, h.Page(true).Banner.Reasons)
	h.second()
	require.Equal(t, []string{"nothing lost yet"}, h.Page(true).Banner.Reasons)
	h.Plan.Service, h.Service = "sse", shard.Service{Counts: shard.CountsNothing}
	page := h.Page(true)
	require.Equal(t, html.Doubt, page.Banner.Tone)
	require.Equal(t, []string{"messages are not checked"}, page.Banner.Reasons)
	require.Equal(t, "not checked", page.Banner.Tiles[1].Value)
}

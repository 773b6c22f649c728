package suite

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/ledger"
	"github.com/sse-soak/sse-soak/resources"
	"github.com/sse-soak/sse-soak/shard"
	"github.com/sse-soak/sse-soak/verdict"
)

// holding adds n streams that were held for that long, and got a noop every second.
func (r *Run) holding(n int, held time.Duration) *Run {
	m := r.Rounds[0]
	m.Plan.NoopInterval, m.Plan.Seconds, m.Plan.LateMS, m.Plan.MaxLate, m.Plan.Prefix = 1, 60, 1000, -1, "d-"
	if m.Connect == nil {
		m.Connect, m.Lateness, m.FirstNoop = shard.NewHistogram(), shard.NewHistogram(), shard.NewHistogram()
		r.Server = verdict.ServerLedger{}
	}
	for range n {
		id := m.Plan.DeviceID(m.Plan.Connections)
		noops := uint64(held / time.Second)
		m.Plan.Connections++
		m.Connections = append(m.Connections, shard.Connection{Record: ledger.Record{
			ID: id, State: ledger.Completed, Numbered: true, Streams: 1, Attempts: 1, Held: held, Received: noops, Last: noops,
		}})
		r.Server[id] = verdict.ServerEntry{ID: id, First: 1, Last: noops, Sent: noops}
	}
	m.Checks = []shard.Check{{Name: "Get status was 200", Passes: int64(m.Plan.Connections)}}
	return r
}

func churning() *Run {
	r := runOf("churn", map[string]string{"CONNECTIONS": "10", "MEAN_HOLD": "4", "SECONDS": "60"}, shard.Stage{Name: "churn", Seconds: 60}).
		holding(20, 500*time.Millisecond).holding(30, 2500*time.Millisecond).holding(5, 40*time.Second)
	r.Rounds[0].Runners[0].EndedUS = began.Add(time.Minute).UnixMicro()
	for i := range int64(60) {
		r.Samples = append(r.Samples, resources.Sample{Unix: began.Unix() + i, BackendRSS: 20 << 20, Streams: 10, Files: 24, Goroutines: 12})
	}
	return r
}

func TestChurnWithoutAFault(t *testing.T) {
	t.Parallel()
	v := judged(churning())
	require.Equal(t, verdict.Pass, v.Verdict, v.Reasons)
	require.Equal(t, []string{"55 lives came and went, 260 of 260 noops received, nothing leaked"}, v.Reasons)
	require.Equal(t, 55, v.Connections.Completed)
	require.EqualValues(t, 260, v.Server.Sent)
	require.Equal(t, [][]string{
		{"under 1 interval", "20", "0", "0", "0", "0"}, {"1 to 3", "30", "60", "0", "0", "0"},
		{"3 to 10", "0", "0", "0", "0", "0"}, {"10 and more", "5", "200", "0", "0", "0"},
	}, table(v, "Lives by length").Rows)
	require.Equal(t, []string{"descriptors beside them", "14", "14"}, table(v, "The backend, early and late").Rows[1])
}

func TestChurnFindsFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		edit func(*Run)
		want verdict.Outcome
		says string
	}{
		{"a noop that the server sent as the last of a life", func(r *Run) {
			r.Server["d-3"] = verdict.ServerEntry{ID: "d-3", First: 1, Last: 1, Sent: 1}
		}, verdict.Fail, "d-3 missed noop 1: sent, by the server's ledger"},
		{"a life that nobody saw", func(r *Run) { r.Rounds[0].Connections = r.Rounds[0].Connections[1:] }, verdict.Invalid, "1 of 55 planned connections were not observed: d-0"},
		{"a life that was cut off", func(r *Run) {
			c := &r.Rounds[0].Connections[40]
			c.State = ledger.Dropped
			c.Findings = []ledger.Finding{{Kind: ledger.KindDropped, Note: "reset"}}
		}, verdict.Fail, "d-40 was dropped"},
		{"a check that failed", func(r *Run) { r.Rounds[0].Checks[0].Fails, r.Rounds[0].Checks[0].Passes = 1, 54 }, verdict.Fail, `the check "Get status was 200" failed 1 of 55 times`},
		{"descriptors leak", func(r *Run) {
			for i := range r.Samples {
				r.Samples[i].Files += 2 * i
			}
		}, verdict.Fail, "descriptors beside the streams of the backend grew from 60 to 120, and 32 are in order"},
		{"goroutines leak", func(r *Run) {
			for i := range r.Samples {
				r.Samples[i].Goroutines += 3 * i
			}
		}, verdict.Fail, "goroutines of the backend grew"},
		{"memory leaks", func(r *Run) {
			for i := range r.Samples {
				r.Samples[i].BackendRSS += uint64(i) << 20
			}
		}, verdict.Fail, "MiB of memory of the backend grew from 43 to 73, and 8 are in order"},
		{"no plan", func(r *Run) { r.Rounds[0].Plan.Connections, r.Rounds[0].Connections = 0, nil }, verdict.Invalid, "the script planned no stream"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := churning()
			c.edit(r)
			v := judged(r)
			require.Equal(t, c.want, v.Verdict, v.Reasons)
			require.Contains(t, fmt.Sprint(v.Reasons), c.says)
		})
	}
}

// climbing is a capacity run of these steps, of which each took 10 s.
func climbing(held ...int) *Run {
	var stages []shard.Stage
	for i, n := range held {
		stages = append(stages, shard.Stage{Name: fmt.Sprint("held-", n), Title: fmt.Sprint(n), Start: float64(10 * i), Seconds: 10, Concurrency: n})
	}
	r := runOf("capacity", map[string]string{"MIN_CONNECTIONS": "0"}, stages...)
	for i, n := range held {
		r.holding(n-r.Rounds[0].Plan.Connections, time.Duration(60-10*i)*time.Second)
		from := began.Add(time.Duration(10*i) * time.Second)
		r.Rounds[0].Metrics = append(r.Rounds[0].Metrics, shard.Metric{
			Name: "capacity_streams", Type: "gauge", Tags: map[string]string{shard.TagStage: stages[i].Name},
			FirstUS: from.UnixMicro(), LastUS: from.Add(10 * time.Second).UnixMicro(),
		})
	}
	h := shard.NewHistogram()
	h.Record(20 * time.Millisecond)
	r.Rounds[0].Series = []shard.Bucket{{Unix: began.Unix(), Lateness: h.Pack(), CPUPercent: 30}, {Unix: began.Unix() + 15, Lateness: h.Pack(), CPUPercent: 60}}
	return r
}

func TestCapacity(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		edit     func(*Run)
		want     verdict.Outcome
		breaks   string
		standard string
	}{
		{"it never breaks", func(*Run) {}, verdict.Pass, "not reached: 300 connections were sustained", "214"},
		{"a noop is late", func(r *Run) { r.counted("capacity_late", "held-300", 7) }, verdict.Pass, "between 200 and 300 connections (7 noops late)", "143"},
		{"a noop is missed, which is never the generator's", func(r *Run) {
			r.counted("capacity_missed", "held-200", 2)
			r.Rounds[0].Series[1].StallMS = 900
		}, verdict.Pass, "between 100 and 200 connections (2 noops missed)", "71"},
		{"a noop is late while the generator stood still", func(r *Run) {
			r.counted("capacity_late", "held-200", 2)
			r.Rounds[0].Series[1].StallMS = 900
		}, verdict.Pass, "not found: at 200 connections the generator was the limit", "71"},
		{"a starved generator gave streams up", func(r *Run) {
			r.counted("capacity_dropped", "held-200", 1).counted("capacity_missed", "held-200", 3)
			r.Rounds[0].Series[1].StallMS = 900
			c := &r.Rounds[0].Connections[7]
			c.State, c.Reason, c.ClosedAt = ledger.Dropped, "idle", 15*time.Second
		}, verdict.Pass, "not found: at 200 connections the generator was the limit", "71"},
		{"the server cut a stream off meanwhile", func(r *Run) {
			r.counted("capacity_dropped", "held-200", 1)
			r.Rounds[0].Series[1].StallMS = 900
			c := &r.Rounds[0].Connections[7]
			c.State, c.Reason, c.ClosedAt = ledger.Dropped, "reset", 15*time.Second
		}, verdict.Pass, "between 100 and 200 connections (1 streams dropped)", "71"},
		{"connects fail in the first step", func(r *Run) { r.counted("capacity_refused", "held-100", 50) }, verdict.Fail, "below 100 connections", "0"},
		{"less than is wanted", func(r *Run) {
			r.Rounds[0].Suite.Parameters["MIN_CONNECTIONS"] = "250"
			r.counted("capacity_dropped", "held-300", 1)
		}, verdict.Fail, "between 200 and 300", "143"},
		{"nothing was measured", func(r *Run) { r.Rounds[0].Metrics = nil }, verdict.Invalid, "", "0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := climbing(100, 200, 300)
			c.edit(r)
			v := judged(r)
			require.Equal(t, c.want, v.Verdict, v.Reasons)
			require.Contains(t, fact(v, "breaks"), c.breaks)
			require.Equal(t, c.standard, table(v, "Recommended maximum loads").Rows[1][2])
		})
	}
	v := judged(climbing(100, 200))
	require.Equal(t, []string{"100", "–", "–", "20.0", "20.0", "20.0", "0", "0", "0", "0", "good"}, table(v, "Steps").Rows[0])
	require.Equal(t, 200.0, v.Figures[0].Value)
}

// spreading is a fan-out of 10 broadcasts to each number of streams.
func spreading(to ...int) *Run {
	var stages []shard.Stage
	for _, n := range to {
		stages = append(stages, shard.Stage{Name: fmt.Sprint("to-", n), Title: fmt.Sprint(n), Seconds: 10, Concurrency: n, Requests: 10})
	}
	r := runOf("fanout", nil, stages...)
	for _, n := range to {
		name := fmt.Sprint("to-", n)
		r.holding(n-r.Rounds[0].Plan.Connections, 30*time.Second).counted("fanout_due", name, float64(10*n))
		latency := shard.Metric{Name: "fanout_latency", Tags: map[string]string{shard.TagStage: name}, Trend: shard.NewHistogram()}
		for range 10 * n {
			latency.Count++
			latency.Trend.Record(3 * time.Millisecond)
		}
		r.Rounds[0].Metrics = append(r.Rounds[0].Metrics, latency)
	}
	return r
}

func TestFanout(t *testing.T) {
	t.Parallel()
	v := judged(spreading(10, 50))
	require.Equal(t, verdict.Pass, v.Verdict, v.Reasons)
	require.Equal(t, "600", fact(v, "deliveries"))
	require.Equal(t, []string{"10", "100", "3.00", "3.00", "3.00", "3.00"}, table(v, "Broadcasts").Rows[0][:6])
	require.Equal(t, "p99 to 50", v.Figures[1].Name)
	for name, c := range map[string]struct {
		edit func(*Run)
		want verdict.Outcome
		says string
	}{
		"one delivery is missing": {func(r *Run) { r.counted("fanout_due", "to-10", 1) }, verdict.Fail, "100 of 101 deliveries arrived in time"},
		"one came twice":          {func(r *Run) { r.counted("fanout_wrong", "to-10", 1) }, verdict.Fail, "1 deliveries were not of the broadcast that was under way"},
		"the server left one out": {func(r *Run) { r.counted("fanout_short", "to-10", 1) }, verdict.Fail, "of 1 broadcasts the server itself says"},
		"there was none":          {func(r *Run) { r.Rounds[0].Metrics = nil }, verdict.Invalid, "broadcasts are everywhere"},
	} {
		r := spreading(10)
		c.edit(r)
		v := judged(r)
		require.Equal(t, c.want, v.Verdict, name)
		require.Contains(t, fmt.Sprint(v.Reasons), c.says, name)
	}
}

package suite

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// newMemoryRun returns a run of two runners with 1,000 open connections: 10 s without connections, 10 s of connects,
// and 20 s of responses. In these periods, each runner uses 20, 40 and 30 MiB, and the backend uses 10, 60 and 50 MiB.
func newMemoryRun() *Run {
	r := runOf("handshake", map[string]string{"MAX_FAILED_PERCENT": "1", "HOLD_SECONDS": "20"},
		shard.Stage{Name: "scale-1", Title: "1000", Kind: "held", Start: 10, Seconds: 100, Requests: 1000, Concurrency: 1000})
	m := r.Rounds[0]
	m.Runners = append(m.Runners, m.Runners[0])
	m.Checks = append(refusalChecks(), shard.ScriptCheck{Name: "open to the end", Passes: 1000})
	memory := func(second int64, before, opening, open uint64) uint64 {
		switch {
		case second <= 10:
			return before << 20
		case second <= 20:
			return opening << 20
		}
		return open << 20
	}
	at := start.Unix()
	for range 2 {
		for i := range int64(40) {
			m.Seconds = append(m.Seconds, shard.Second{FromUS: (at + i) * 1e6, ToUS: (at + i + 1) * 1e6, RSS: memory(i+1, 20, 40, 30)})
		}
	}
	for i := range int64(41) {
		r.Samples = append(r.Samples, resources.Sample{Unix: at + i, BackendRSS: memory(i, 10, 60, 50), Files: 1010, Host: resources.Host{TimeWait: int(i)}})
	}
	for i := range int64(8) {
		m.Series = append(m.Series, shard.Bucket{Unix: at + 5*i, ProcessUsage: shard.ProcessUsage{RSS: memory(5*i+5, 40, 80, 60), HeapLive: 8 << 20, Files: 1020}})
	}
	answers := shard.Metric{Name: "handshake_answer", Tags: map[string]string{shard.TagStage: "scale-1"}, Trend: shard.NewHistogram(), Count: 5000, LastUS: (at + 40) * 1e6}
	m.Metrics = append(m.Metrics, answers)
	for name, sum := range map[string]float64{"handshake_sent": 2.5e6, "handshake_received": 3e6, "handshake_tls_sent": 2e6, "handshake_tls_received": 1e6} {
		m.Metrics = append(m.Metrics, shard.Metric{Name: name, Tags: map[string]string{shard.TagStage: "scale-1"}, Count: 1000, Sum: sum})
	}
	r.addAnswers("scale-1", 1000, 10)
	for i := range m.Metrics {
		if m.Metrics[i].Name == shard.RequestDuration {
			m.Metrics[i].FirstUS, m.Metrics[i].LastUS = (at+10)*1e6, (at+20)*1e6
		}
	}
	return r
}

func TestMemoryAndBytesOfOpenConnections(t *testing.T) {
	t.Parallel()
	v := judge(newMemoryRun())
	require.Equal(t, verdict.Pass, v.Verdict, v.Reasons)
	require.Equal(t, [][]string{
		{"runners, together", "1,000", "40.0 MiB", "80.0 MiB", "60.0 MiB", "20.5"},
		{"backend", "1,000", "10.0 MiB", "60.0 MiB", "50.0 MiB", "41.0"},
	}, table(v, "Memory of open connections").Rows)
	require.Equal(t, [][]string{{"1,000", "2.4 MiB", "2.9 MiB", "–", "–", "2500", "3000", "2000", "1000"}}, table(v, "Bytes").Rows)
	rows := table(v, "Memory over time").Rows
	require.Len(t, rows, 8)
	require.Equal(t, []string{"0.08", "–", "40.0 MiB", "8.0 MiB", "1,020", "10.0 MiB", "1,010", "4"}, rows[0])
	require.Equal(t, []string{"0.67", "1000", "60.0 MiB", "8.0 MiB", "1,020", "50.0 MiB", "1,010", "39"}, rows[7])
	require.Equal(t, "runner, per held connection", v.Metrics[0].Name)
}

// Without a sample before the first connection, or without samples of a runner, the memory per connection is unknown.
func TestMemoryOfUnobservedConnections(t *testing.T) {
	t.Parallel()
	r := newMemoryRun()
	r.Rounds[0].Seconds = r.Rounds[0].Seconds[:40] // of one runner only
	r.Samples = r.Samples[15:]
	rows := table(judge(r), "Memory of open connections").Rows
	require.Equal(t, []string{"runners, together", "1,000", "–", "–", "–", "–"}, rows[0])
	require.Equal(t, []string{"backend", "1,000", "–", "60.0 MiB", "50.0 MiB", "–"}, rows[1])
}

// A run of 1.5 s may have two buckets of 5 s, because buckets begin at multiples of their width. The table of a long
// run has at most maxMemoryRows rows, each of which covers a longer time.
func TestMemoryOverTimeOfShortAndLongRuns(t *testing.T) {
	t.Parallel()
	r := newHandshakeRun()
	m := r.Rounds[0]
	series := m.Series
	m.Series = series[:2]
	m.Runners[0].StartedUS, m.Runners[0].EndedUS = start.Add(4500*time.Millisecond).UnixMicro(), start.Add(6*time.Second).UnixMicro()
	rows := table(judge(r), "Memory over time").Rows
	require.Equal(t, []string{"0.01", "0.03"}, []string{rows[0][0], rows[1][0]})

	for i := range int64(1000) {
		series = append(series, shard.Bucket{Unix: start.Add(120*time.Second).Unix() + 5*i, ProcessUsage: shard.ProcessUsage{RSS: 70 << 20}})
	}
	m.Series = series
	rows = table(judge(r), "Memory over time").Rows
	require.InDelta(t, maxMemoryRows, len(rows), 1)
	require.Equal(t, []string{"100, 1000", "70.0 MiB"}, rows[0][1:3])
}

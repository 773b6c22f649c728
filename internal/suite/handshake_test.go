package suite

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// newHandshakeRun returns a run of two scales, 100 connections in 10 s and 1,000 in 100 s, with the memory of runner
// and backend at each scale in MiB.
func newHandshakeRun(parameters map[string]string, runner, backend [2]uint64) *Run {
	all := map[string]string{"MAX_FAILED_PERCENT": "1", "HOLD_SECONDS": "0"}
	maps.Copy(all, parameters)
	r := runOf("handshake", all,
		shard.Stage{Name: "scale-1", Title: "100", Kind: "load", Seconds: 10, Requests: 100, Concurrency: 8},
		shard.Stage{Name: "scale-2", Title: "1000", Kind: "load", Start: 10, Seconds: 100, Requests: 1000, Concurrency: 8},
	)
	m := r.Rounds[0]
	m.Checks = []shard.Check{{Name: "refused with a foreign certificate", Passes: 1}, {Name: "refused without a certificate", Passes: 1}, {Name: "refused with a certificate of another authority of the same name", Passes: 1}}
	for i := range int64(22) {
		scale := 1
		if i < 2 {
			scale = 0
		}
		m.Series = append(m.Series, shard.Bucket{Unix: start.Unix() + 5*i, Process: shard.Process{RSS: runner[scale] << 20, CPUPercent: 50}})
		r.Samples = append(r.Samples, resources.Sample{Unix: start.Unix() + 5*i, BackendRSS: backend[scale] << 20, BackendCPU: float64(i)})
	}
	m.Metrics = append(m.Metrics, shard.Metric{Name: "handshake_open", Tags: map[string]string{shard.TagStage: "scale-2"}, Max: 8})
	tls := shard.Metric{Name: "handshake_tls", Tags: map[string]string{shard.TagStage: "scale-2"}, Trend: shard.NewHistogram(), Count: 2, Sum: 30}
	tls.Trend.Record(10 * time.Millisecond)
	tls.Trend.Record(20 * time.Millisecond)
	m.Metrics = append(m.Metrics, tls)
	return r
}

// acceptUntrusted makes the service respond to a client with a foreign certificate.
func acceptUntrusted(r *Run) *Run {
	r.Rounds[0].Checks[0].Fails, r.Rounds[0].Checks[0].Passes = 1, 0
	r.Rounds[0].Metrics = append(r.Rounds[0].Metrics, shard.Metric{Name: "handshake_answer", Count: 1, Tags: map[string]string{shard.TagStage: "untrusted with a foreign certificate"}})
	return r
}

func TestHandshakesPass(t *testing.T) {
	t.Parallel()
	v := judge(newHandshakeRun(nil, [2]uint64{60, 70}, [2]uint64{20, 20}).addAnswers("scale-1", 100, 15).addAnswers("scale-2", 1000, 15))
	require.Equal(t, verdict.Pass, v.Verdict, v.Reasons)
	require.Equal(t, "1,100 made, 1,100 good, 0 (0.00 %) failed", fact(v, "connections"))
	require.Equal(t, "none failed", fact(v, "failed by"))
	require.Equal(t, "8 connections open at the same time", fact(v, "peak"))
	require.Equal(t, []string{"1,000", "100.00 %", "10", "15.0", "15.0", "15.0", "8", "50.0", "20.0"}, table(v, "Scales").Rows[1])
	require.Equal(t, []string{"1000", "TLS handshake", "2", "15.0", "10.0", "20.0", "20.0"}, table(v, "Phases, ms").Rows[0])
	require.Equal(t, []string{"1000", "70.0 MiB", "20.0 MiB"}, table(v, "Memory by scale").Rows[1])
}

func TestHandshakesReceiveTheExpectedBytes(t *testing.T) {
	t.Parallel()
	r := newHandshakeRun(nil, [2]uint64{60, 70}, [2]uint64{20, 20}).addAnswers("scale-1", 100, 15).addAnswers("scale-2", 1000, 15)
	for stage, sum := range map[string]int64{"alone": 8000, "scale-1": 200_000, "scale-2": 1_900_000} {
		for _, name := range []string{"handshake_sent", "handshake_received"} {
			r.Rounds[0].Metrics = append(r.Rounds[0].Metrics, shard.Metric{Name: name, Type: "counter", Tags: map[string]string{shard.TagStage: stage}, Sum: float64(sum), Count: sum / 2000})
		}
	}
	rows := table(judge(r), "Bytes").Rows
	require.Equal(t, []string{"195.3 KiB", "195.3 KiB", "100.00 %"}, rows[0][2:5])
	require.Equal(t, []string{"1.8 MiB", "1.9 MiB", "95.00 %"}, rows[1][2:5])
}

func TestFailedHandshakes(t *testing.T) {
	t.Parallel()
	flat := [2]uint64{60, 60}
	for _, c := range []struct {
		name     string
		run      func() *Run
		want     verdict.Outcome
		wantText string
	}{
		{"more than a hundredth failed", func() *Run {
			r := newHandshakeRun(nil, flat, flat).addAnswers("scale-1", 100, 15).addAnswers("scale-2", 980, 15)
			return r.addAnswers("scale-2", 15, 1, shard.TagCode, "tls_timeout").addAnswers("scale-2", 5, 1, shard.TagCode, "no_ports")
		}, verdict.Fail, "of 1000 connections 2.00 % failed; main cause: no TLS handshake in time (15 of 20 failed)"},
		{"this host had no port left for more than a hundredth", func() *Run {
			r := newHandshakeRun(nil, flat, flat).addAnswers("scale-1", 100, 15).addAnswers("scale-2", 900, 15)
			return r.addAnswers("scale-2", 5, 1, shard.TagCode, "tls_timeout").addAnswers("scale-2", 95, 1, shard.TagCode, "no_ports")
		}, verdict.Invalid, "of 1000 connections 10.00 % failed; main cause: no ephemeral port left on this host (95 of 100 failed)"},
		{"exactly MAX_FAILED_PERCENT failed", func() *Run {
			r := newHandshakeRun(map[string]string{"MAX_FAILED_PERCENT": "0.7"}, flat, flat).addAnswers("scale-1", 100, 15).addAnswers("scale-2", 993, 15)
			return r.addAnswers("scale-2", 7, 1, shard.TagCode, "tls_timeout")
		}, verdict.Pass, "1,093 of 1,100 connections were made"},
		{"an untrusted client is accepted", func() *Run {
			r := newHandshakeRun(nil, flat, flat).addAnswers("scale-1", 100, 15).addAnswers("scale-2", 1000, 15)
			return acceptUntrusted(r)
		}, verdict.Fail, "a client with a foreign certificate received a response"},
		{"an untrusted client is accepted, and not all connections are tried", func() *Run {
			r := newHandshakeRun(nil, flat, flat).addAnswers("scale-1", 100, 15).addAnswers("scale-2", 400, 15)
			return acceptUntrusted(r)
		}, verdict.Fail, "a client with a foreign certificate received a response"},
		{"connections of an untrusted client are reset", func() *Run {
			r := newHandshakeRun(nil, flat, flat).addAnswers("scale-1", 100, 15).addAnswers("scale-2", 1000, 15)
			r.Rounds[0].Checks = r.Rounds[0].Checks[1:]
			r.Rounds[0].Metrics = append(r.Rounds[0].Metrics, shard.Metric{Name: "handshake_failed", Count: 5, Tags: map[string]string{shard.TagStage: "untrusted with a foreign certificate", "cause": "tls_reset"}})
			return r
		}, verdict.Invalid, "it is unknown whether a client with a foreign certificate is refused: the server closed the connection during the handshake"},
		{"the connection of an untrusted client was reset before its answer", func() *Run {
			r := newHandshakeRun(nil, flat, flat).addAnswers("scale-1", 100, 15).addAnswers("scale-2", 1000, 15)
			r.Rounds[0].Checks[0].Fails, r.Rounds[0].Checks[0].Passes = 1, 0
			r.Rounds[0].Metrics = append(r.Rounds[0].Metrics, shard.Metric{Name: "handshake_failed", Count: 1, Tags: map[string]string{shard.TagStage: "untrusted with a foreign certificate", "cause": "answer_reset"}})
			return r
		}, verdict.Invalid, "it is unknown whether a client with a foreign certificate is refused: the server closed the connection before the response"},
		{"no untrusted client was tried", func() *Run {
			r := newHandshakeRun(nil, flat, flat).addAnswers("scale-1", 100, 15).addAnswers("scale-2", 1000, 15)
			r.Rounds[0].Checks = nil
			return r
		}, verdict.Invalid, "untrusted certificates are refused"},
		{"the runner's memory grows", func() *Run {
			return newHandshakeRun(nil, [2]uint64{60, 100}, flat).addAnswers("scale-1", 100, 15).addAnswers("scale-2", 1000, 15)
		}, verdict.Fail, "memory of the runners is flat: 100.0 MiB, the limit is at most 91.0 MiB"},
		{"the backend's memory grows", func() *Run {
			return newHandshakeRun(nil, flat, [2]uint64{20, 60}).addAnswers("scale-1", 100, 15).addAnswers("scale-2", 1000, 15)
		}, verdict.Fail, "memory of the backend is flat"},
		{"an untrusted client was accepted late in the run", func() *Run {
			r := newHandshakeRun(nil, flat, flat).addAnswers("scale-1", 100, 15).addAnswers("scale-2", 1000, 15)
			r.Rounds[0].Checks[2].Fails, r.Rounds[0].Checks[2].Passes = 3, 8
			r.Rounds[0].Metrics = append(r.Rounds[0].Metrics, shard.Metric{Name: "handshake_answer", Count: 3, Tags: map[string]string{shard.TagStage: "untrusted with a certificate of another authority of the same name"}})
			return r
		}, verdict.Fail, "a client with a certificate of another authority of the same name received a response: 3 of 11 attempts"},
		{"one untrusted client was not tried", func() *Run {
			r := newHandshakeRun(nil, flat, flat).addAnswers("scale-1", 100, 15).addAnswers("scale-2", 1000, 15)
			r.Rounds[0].Checks = r.Rounds[0].Checks[:2]
			return r
		}, verdict.Invalid, "untrusted certificates are refused: not tried"},
		{"the rate is too low", func() *Run {
			return newHandshakeRun(map[string]string{"MIN_RATE": "20"}, flat, flat).addAnswers("scale-1", 100, 15).addAnswers("scale-2", 1000, 15)
		}, verdict.Fail, "1000 connections: 10/s, the limit is at least 20"},
		{"the rate is too low, and the generator stalled", func() *Run {
			r := newHandshakeRun(map[string]string{"MIN_RATE": "20"}, flat, flat).addAnswers("scale-1", 100, 15).addAnswers("scale-2", 1000, 15)
			r.Rounds[0].Series[5].StallMS = 900
			return r
		}, verdict.Invalid, "the load generator may be the cause: a runner stalled for 900 ms"},
		{"the mean time is too long", func() *Run {
			return newHandshakeRun(map[string]string{"MAX_MEAN_MS": "10"}, flat, flat).addAnswers("scale-1", 100, 9).addAnswers("scale-2", 1000, 15)
		}, verdict.Fail, "1000 connections: 15.0 ms, the limit is at most 10.0 ms"},
		{"the run was stopped early", func() *Run {
			return newHandshakeRun(nil, flat, flat).addAnswers("scale-1", 100, 15).addAnswers("scale-2", 400, 15)
		}, verdict.Invalid, "connections tried: 500, the limit is 1,100"},
		{"an open connection is lost", func() *Run {
			r := newHandshakeRun(map[string]string{"HOLD_SECONDS": "60"}, flat, flat).addAnswers("scale-1", 100, 15).addAnswers("scale-2", 1000, 15)
			r.Rounds[0].Checks = append(r.Rounds[0].Checks, shard.Check{Name: "open to the end", Passes: 1099, Fails: 1})
			return r
		}, verdict.Fail, "connections open to the end: 1,099, the limit is 1,100"},
		{"this host had no port left for an open connection", func() *Run {
			r := newHandshakeRun(map[string]string{"HOLD_SECONDS": "60"}, flat, flat).addAnswers("scale-1", 99, 15).addAnswers("scale-1", 1, 1, shard.TagCode, "no_ports").addAnswers("scale-2", 1000, 15)
			r.Rounds[0].Checks = append(r.Rounds[0].Checks, shard.Check{Name: "open to the end", Passes: 1099, Fails: 1})
			return r
		}, verdict.Invalid, "connections open to the end: 1,099, the limit is 1,100"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v := judge(c.run())
			require.Equal(t, c.want, v.Verdict, v.Reasons)
			require.Contains(t, fmt.Sprint(v.Reasons), c.wantText)
		})
	}
}

// The check is met if the first worker closes its connections after the last worker has opened its own.
func TestOpenConnectionsAreConcurrent(t *testing.T) {
	t.Parallel()
	for after, want := range map[time.Duration]verdict.Outcome{10500 * time.Millisecond: verdict.Pass, 8 * time.Second: verdict.Invalid} {
		r := runOf("handshake", map[string]string{"MAX_FAILED_PERCENT": "1", "HOLD_SECONDS": "1"},
			shard.Stage{Name: "scale-1", Title: "100", Kind: "held", Seconds: 10, Requests: 100, Concurrency: 100}).addAnswers("scale-1", 100, 15)
		m := r.Rounds[0]
		m.Checks = []shard.Check{{Name: "refused with a foreign certificate", Passes: 1}, {Name: "refused without a certificate", Passes: 1}, {Name: "refused with a certificate of another authority of the same name", Passes: 1}, {Name: "open to the end", Passes: 100}}
		require.Equal(t, verdict.Pass, judge(r).Verdict, "no connection was released")
		m.Metrics = append(m.Metrics, shard.Metric{Name: "handshake_released", Tags: map[string]string{shard.TagStage: "scale-1"}, Count: 2, Sum: 100, FirstUS: start.Add(after).UnixMicro()})
		v := judge(r)
		require.Equal(t, want, v.Verdict, v.Reasons)
		if want == verdict.Invalid {
			require.Contains(t, fmt.Sprint(v.Reasons), "the first connections were closed 2 s before the last one was open")
		}
		m.Runners = append(m.Runners, m.Runners[0])
		require.Contains(t, fact(judge(r), "peak"), "in one of 2 runners")
	}
}

// Every cause of k6/x/handshake has a text.
func TestCausesHaveText(t *testing.T) {
	t.Parallel()
	require.Len(t, causes, 19)
	require.Equal(t, "unlisted", causeText("unlisted"))
}

package suite

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// refusalChecks returns the checks of a script whose untrusted clients were all refused.
func refusalChecks() (out []shard.ScriptCheck) {
	for _, credentials := range untrustedClients {
		out = append(out, shard.ScriptCheck{Name: "refused " + credentials, Passes: 1})
	}
	return out
}

// newHandshakeRun returns a run of two scales: 100 connections in 10 s, and 1,000 in 100 s. Each connection takes 15
// ms. The runner uses 60 MiB of memory, the backend 20 MiB.
func newHandshakeRun() *Run {
	r := runOf("handshake", map[string]string{"MAX_FAILED_PERCENT": "1", "HOLD_SECONDS": "0"},
		shard.Stage{Name: "scale-1", Title: "100", Kind: "load", Seconds: 10, Requests: 100, Concurrency: 8},
		shard.Stage{Name: "scale-2", Title: "1000", Kind: "load", Start: 10, Seconds: 100, Requests: 1000, Concurrency: 8},
	).connect("scale-1", 100, 15).connect("scale-2", 1000, 15)
	m := r.Rounds[0]
	m.Checks = refusalChecks()
	r.addSeconds(0, 110, shard.Second{CPUSeconds: .5})
	for i := range int64(22) {
		m.Series = append(m.Series, shard.Bucket{Unix: start.Unix() + 5*i, ProcessUsage: shard.ProcessUsage{RSS: 60 << 20}})
		r.Samples = append(r.Samples, resources.Sample{Unix: start.Unix() + 5*i, BackendRSS: 20 << 20, BackendCPU: float64(i)})
	}
	tls := shard.Metric{Name: "handshake_tls", Tags: map[string]string{shard.TagStage: "scale-2"}, Trend: shard.NewHistogram(), Count: 2, Sum: 30}
	tls.Trend.Record(10 * time.Millisecond)
	tls.Trend.Record(20 * time.Millisecond)
	m.Metrics = append(m.Metrics, tls, shard.Metric{Name: "handshake_open", Tags: map[string]string{shard.TagStage: "scale-2"}, Max: 8})
	return r
}

// connect replaces the connections of a scale with n connections that took ms milliseconds.
func (r *Run) connect(scale string, n int, ms float64) *Run {
	m := r.Rounds[0]
	m.Metrics = slices.DeleteFunc(m.Metrics, func(v shard.Metric) bool { return v.Name == shard.RequestDuration && v.Tags[shard.TagStage] == scale })
	return r.addAnswers(scale, n, ms)
}

func (r *Run) failConnections(scale string, n int, cause string) *Run {
	return r.addAnswers(scale, n, 1, shard.TagCode, cause)
}

// tryUntrusted replaces the result of one kind of untrusted client. passes is the number of refused attempts, and fails
// is the number of all others. metric and cause record the outcome of the others.
func (r *Run) tryUntrusted(kind int, passes, fails int64, metric, cause string) {
	m := r.Rounds[0]
	m.Checks[kind].Passes, m.Checks[kind].Fails = passes, fails
	m.Metrics = append(m.Metrics, shard.Metric{Name: metric, Count: max(fails, 1), Tags: map[string]string{shard.TagStage: "untrusted " + untrustedClients[kind], "cause": cause}})
}

func TestHandshakesPass(t *testing.T) {
	t.Parallel()
	v := judge(newHandshakeRun())
	require.Equal(t, verdict.Pass, v.Verdict, v.Reasons)
	require.Equal(t, "1,100 tried, 1,100 good, 0 (0.00 %) failed", fact(v, "connections"))
	require.Equal(t, "none failed", fact(v, "main cause of failures"))
	require.Equal(t, "8 connections open at the same time", fact(v, "peak"))
	require.Equal(t, []string{"1,000", "100.00 %", "10", "15.0", "15.0", "15.0", "8", "50.0", "20.0"}, table(v, "Scales").Rows[1])
	require.Equal(t, []string{"1000", "TLS handshake", "2", "15.0", "10.0", "20.0", "20.0"}, table(v, "Phases, ms").Rows[0])
	require.Equal(t, []string{"1000", "60.0 MiB", "20.0 MiB"}, table(v, "Memory by scale").Rows[1])
}

func TestReceivedBytesAgainstASingleConnection(t *testing.T) {
	t.Parallel()
	r := newHandshakeRun()
	for stage, sum := range map[string]int64{"alone": 8000, "scale-1": 200_000, "scale-2": 1_900_000} {
		for _, name := range []string{"handshake_sent", "handshake_received"} {
			r.Rounds[0].Metrics = append(r.Rounds[0].Metrics, shard.Metric{Name: name, Type: "counter", Tags: map[string]string{shard.TagStage: stage}, Sum: float64(sum), Count: sum / 2000})
		}
	}
	rows := table(judge(r), "Bytes").Rows
	require.Equal(t, []string{"195.3 KiB", "195.3 KiB", "100.00 %"}, rows[0][2:5])
	require.Equal(t, []string{"1.8 MiB", "1.9 MiB", "95.00 %"}, rows[1][2:5])
}

func TestHandshakeFindsFaults(t *testing.T) {
	t.Parallel()
	judgeEdits(t, newHandshakeRun, []runEdit{
		{"over 1 % of the connections failed", func(r *Run) {
			r.connect("scale-2", 980, 15).failConnections("scale-2", 15, "tls_timeout").failConnections("scale-2", 5, "no_ports")
		}, verdict.Fail, "of 1000 connections, 2.00 % failed; main cause: no TLS handshake in time (15 of 20 failures)"},
		{"this host had no port left for over 1 % of the connections", func(r *Run) {
			r.connect("scale-2", 900, 15).failConnections("scale-2", 5, "tls_timeout").failConnections("scale-2", 95, "no_ports")
		}, verdict.Invalid, "of 1000 connections, 10.00 % failed; main cause: no ephemeral port left on this host (95 of 100 failures)"},
		{"exactly MAX_FAILED_PERCENT failed", func(r *Run) {
			r.set("MAX_FAILED_PERCENT", "0.7").connect("scale-2", 993, 15).failConnections("scale-2", 7, "tls_timeout")
		}, verdict.Pass, "1,093 of 1,100 connections were made"},
		{"an untrusted client is accepted", func(r *Run) { r.tryUntrusted(1, 0, 1, "handshake_answer", "") }, verdict.Fail, "a client with a foreign certificate received a response"},
		{"an untrusted client is accepted, and not all connections are tried", func(r *Run) {
			r.connect("scale-2", 400, 15).tryUntrusted(1, 0, 1, "handshake_answer", "")
		}, verdict.Fail, "a client with a foreign certificate received a response"},
		{"an untrusted client was accepted late in the run", func(r *Run) { r.tryUntrusted(2, 8, 3, "handshake_answer", "") },
			verdict.Fail, "a client with a certificate of another authority of the same name received a response: 3 of 11 attempts"},
		{"connections of an untrusted client are reset", func(r *Run) { r.tryUntrusted(1, 0, 0, "handshake_failed", "tls_reset") },
			verdict.Invalid, "it is unknown whether a client with a foreign certificate is refused: the server closed the connection during the handshake"},
		{"the connection of an untrusted client was reset before its response", func(r *Run) { r.tryUntrusted(1, 0, 1, "handshake_failed", "answer_reset") },
			verdict.Invalid, "it is unknown whether a client with a foreign certificate is refused: the server closed the connection before the response"},
		{"one untrusted client was not tried", func(r *Run) { r.Rounds[0].Checks = r.Rounds[0].Checks[:2] }, verdict.Invalid, "untrusted certificates are refused: not tried"},
		{"the runner's memory grows", func(r *Run) { r.Rounds[0].Series[21].RSS = 100 << 20 }, verdict.Fail, "memory of the runners is flat: 100.0 MiB (limit: at most 91.0 MiB)"},
		{"the backend's memory grows", func(r *Run) { r.Samples[21].BackendRSS = 60 << 20 }, verdict.Fail, "memory of the backend is flat"},
		{"the rate is too low", func(r *Run) { r.set("MIN_RATE", "20") }, verdict.Fail, "1000 connections: 10/s (limit: at least 20)"},
		{"the rate is too low, and the generator stalled", func(r *Run) {
			r.set("MIN_RATE", "20")
			r.addSeconds(0, 30, shard.Second{StallMS: 900})
		}, verdict.Invalid, "the load generator may be the cause: a runner stalled for 900 ms"},
		{"the rate is too low at both scales, and the generator stalled at one", func(r *Run) {
			r.set("MIN_RATE", "20")
			r.addSeconds(25, 5, shard.Second{StallMS: 900})
		}, verdict.Fail, "100 connections: 10/s (limit: at least 20)"},
		{"the mean time is too long", func(r *Run) { r.set("MAX_MEAN_MS", "10").connect("scale-1", 100, 9) }, verdict.Fail, "1000 connections: 15.0 ms (limit: at most 10.0 ms)"},
		{"the run was stopped early", func(r *Run) { r.connect("scale-2", 400, 15) }, verdict.Invalid, "connections tried: 500 (limit: 1,100)"},
		{"an open connection is lost", func(r *Run) { r.set("HOLD_SECONDS", "60").loseConnection() }, verdict.Fail, "connections open to the end: 1,099 (limit: 1,100)"},
		{"this host had no port left for an open connection", func(r *Run) {
			r.set("HOLD_SECONDS", "60").connect("scale-1", 99, 15).failConnections("scale-1", 1, "no_ports").loseConnection()
		}, verdict.Invalid, "connections open to the end: 1,099 (limit: 1,100)"},
	})
}

func (r *Run) loseConnection() {
	r.Rounds[0].Checks = append(r.Rounds[0].Checks, shard.ScriptCheck{Name: "open to the end", Passes: 1099, Fails: 1})
}

// The check is met if the first worker closes its connections after the last worker has opened its own.
func TestOpenConnectionsAreConcurrent(t *testing.T) {
	t.Parallel()
	for after, want := range map[time.Duration]verdict.Outcome{10500 * time.Millisecond: verdict.Pass, 8 * time.Second: verdict.Invalid} {
		r := runOf("handshake", map[string]string{"MAX_FAILED_PERCENT": "1", "HOLD_SECONDS": "1"},
			shard.Stage{Name: "scale-1", Title: "100", Kind: "held", Seconds: 10, Requests: 100, Concurrency: 100}).addAnswers("scale-1", 100, 15)
		m := r.Rounds[0]
		m.Checks = append(refusalChecks(), shard.ScriptCheck{Name: "open to the end", Passes: 100})
		require.Equal(t, verdict.Pass, judge(r).Verdict, "the check must not apply before a connection is closed")
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

package suite

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

var rampupParameters = map[string]string{
	"STAGES": "20,50", "MAX_FAILED_PERCENT": "1", "MAX_P95_MS": "500", "MIN_ANSWERED_PERCENT": "95", "SEARCH": "0", "MIN_RATE": "0",
}

// newRampRun returns a run with a warm-up, and a stage of 10 s for each rate. The responses in these stages took 10 ms.
func newRampRun(rates ...float64) *Run {
	stages := []shard.Stage{{Name: "warmup", Title: "warm-up", Kind: kindWarmup, Seconds: 5, Rate: 20}}
	for i, rate := range rates {
		stages = append(stages, shard.Stage{Name: fmt.Sprint("rate-", rate), Title: fmt.Sprint(rate, "/s"), Kind: kindLoad, Start: float64(10 + 20*i), Seconds: 10, Rate: rate, Connections: 100})
	}
	r := runOf("rampup", rampupParameters, stages...).addAnswers("warmup", 100, 900)
	for _, rate := range rates {
		r.addAnswers(fmt.Sprint("rate-", rate), int(rate)*10, 10)
	}
	return r
}

func TestRampupPasses(t *testing.T) {
	t.Parallel()
	v := judge(newRampRun(20, 50).addCounter("data_received", "rate-20", 3e6))
	require.Equal(t, verdict.Pass, v.Verdict, v.Reasons)
	require.Equal(t, "700 made, 700 good, 0 (0.00 %) failed, 0 not made", fact(v, "requests"), "the warm-up must not be counted")
	require.Equal(t, "3.0 MB", fact(v, "received"))
	require.Contains(t, fact(v, "breaking point"), "not reached: 50 requests/s were sustained")
	require.Equal(t, [][]string{
		{"20/s", "200", "0", "0", "20", "10.0", "good"}, {"50/s", "500", "0", "0", "50", "10.0", "good"},
	}, table(v, "Stages").Rows)
	require.Equal(t, []string{"all", "700", "10.0", "10.0", "0.00", "10.0", "10.0", "10.0", "10.0", "10.0"}, table(v, "Latency of good responses, ms").Rows[2])
	require.Equal(t, []string{"standard", "1.4×", "36", "everyday peaks"}, table(v, "Recommended maximum loads").Rows[1])
	require.Equal(t, []string{"responses/s", "20", "50", "+150.0 %"}, table(v, "Baseline against stress").Rows[0])
	require.Empty(t, table(v, "Errors").Rows)
	require.Equal(t, []string{"runners, together", "1.0 %", "45,000 µs", "9.0 MiB"}, table(v, "Processes").Rows[0])
	require.Equal(t, verdict.Metric{Name: "requests/s sustained", Unit: perSecond, Value: 50, HigherIsBetter: true}, v.Metrics[0])
}

func TestProcessesHaveTheMemoryOfAllRunners(t *testing.T) {
	t.Parallel()
	r := newRampRun(20)
	r.Rounds[0].Runners = append(r.Rounds[0].Runners, r.Rounds[0].Runners[0])
	require.Equal(t, "18.0 MiB", table(judge(r), "Processes").Rows[0][3])
}

func TestNumberOfCores(t *testing.T) {
	t.Parallel()
	for cores, want := range map[int]string{0: "the number of cores is unknown; waited", 1: "the machine has 1 core, which", 2: "the machine has 2 cores, which"} {
		r := newRampRun(20)
		r.Cores = cores
		require.Contains(t, table(judge(r), "CPU by stage, % of one core").Note, want)
	}
}

func TestRampupBreaks(t *testing.T) {
	t.Parallel()
	r := newRampRun(20, 50)
	r.Rounds[0].Suite.Stages = append(r.Rounds[0].Suite.Stages, shard.Stage{Name: "rate-100", Title: "100/s", Kind: kindLoad, Start: 60, Seconds: 10, Rate: 100, Connections: 100})
	r.addAnswers("rate-100", 600, 40).addAnswers("rate-100", 300, 1, shard.TagCode, "status-503").addAnswers("rate-100", 100, 10_000, shard.TagCode, "net-1050")
	v := judge(r)
	require.Equal(t, verdict.Pass, v.Verdict, "a limit of the service must not fail the run: %v", v.Reasons)
	require.Contains(t, fact(v, "breaking point"), "between 50 and 100 requests/s (40.00 % failed, mostly by status 503, 60.0 % answered)")
	require.Equal(t, "up to 36 requests/s", fact(v, "safe load"))
	require.Equal(t, []string{"100/s", "1,000", "400", "0", "60", "40.0", "bad"}, table(v, "Stages").Rows[2])
	require.Equal(t, [][]string{
		{"status-503", "status 503", "300", "75.00 %", "17.65 %"}, {"net-1050", "timeout", "100", "25.00 %", "5.88 %"},
	}, table(v, "Errors").Rows)
	require.Equal(t, "40.0", table(v, "Latency of good responses, ms").Rows[2][5], "failed requests must not count")
	require.Equal(t, [][]string{
		{"100/s", "status 503", "300", "1.00", "1.00", "1.00", "1.00"}, {"100/s", "timeout", "100", "10000", "10000", "10000", "10000"},
	}, table(v, "Duration of failed requests, ms").Rows)
	require.Equal(t, "the service refuses faster than it answers: at 100/s, the refusal (status 503) arrived after 1.00 ms (p50), a good response after 40.0 ms; "+
		"clients that retry immediately add to the load, so let them back off exponentially", fact(v, "refusals"))
	v = judge(r.set("MIN_RATE", "80"))
	require.Equal(t, verdict.Fail, v.Verdict)
	require.Contains(t, v.Reasons[0], "requests/s sustained: 50 (limit: at least 80)")
}

func TestCodeText(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"status-201": "status 201", "status-204": "status 204", "status-310": "status 310", "status-101": "status 101",
		"net-1201": "broken pipe", "net-1220": "connection reset", "net-1310": "certificate of an unknown authority",
		"net-1611": "HTTP/2 error", "net-1999": "k6's error 1999", "wrong": "wrong response",
		"net-1701": "content cannot be decompressed", "net-1050": "timeout", "1503": "unknown", "": "unknown",
	} {
		require.Equal(t, want, codeText(code), code)
	}
}

func TestFirstByteTime(t *testing.T) {
	t.Parallel()
	const title = "Time to the first byte of good responses, ms"
	r := newRampRun(20)
	first := r.addAnswers("rate-20", 600, 4).Rounds[0]
	first.Metrics[len(first.Metrics)-1].Name = shard.FirstByte
	failed := r.addAnswers("rate-20", 6, 900, shard.TagCode, "status-503").Rounds[0]
	failed.Metrics[len(failed.Metrics)-1].Name = shard.FirstByte
	v := judge(r)
	require.Equal(t, []string{"20/s", "600"}, table(v, title).Rows[0][:2])
	require.Equal(t, "4.00", table(v, title).Rows[0][3], "failed requests must not count")
	require.NotEqual(t, "4.00", table(v, "Latency of good responses, ms").Rows[0][3])
}

func TestWrongResponseFails(t *testing.T) {
	t.Parallel()
	add := func(code string, n int, stages ...string) func(*Run) {
		return func(r *Run) {
			for _, stage := range stages {
				r.addAnswers(stage, n, 5, shard.TagCode, code)
			}
		}
	}
	const noPorts = shard.CodeNoPort
	judgeEdits(t, func() *Run { return newRampRun(20, 50).set("MIN_RATE", "10") }, []runEdit{
		{"wrong", add(shard.CodeWrongContent, 1, "rate-50"), verdict.Fail, "responses are correct: 1 wrong"},
		{"wrong, in the warm-up too", add(shard.CodeWrongContent, 1, "rate-50", "warmup"), verdict.Fail, "responses are correct: 2 wrong, 1 of them in the warm-up"},
		{"wrong in the warm-up only", add(shard.CodeWrongContent, 1, "warmup"), verdict.Fail, "responses are correct: 1 wrong"},
		{"truncated", add(shard.CodeTruncated, 1, "rate-50"), verdict.Fail, "responses are correct: 1 wrong, 1 of them truncated"},
		{"unrequested bytes", func(r *Run) { r.addCounter(shard.UnrequestedBytes, "rate-50", 2) }, verdict.Fail, "responses are correct: 0 wrong, 2 cases of unrequested bytes"},
		{"no port left at the lowest load", add(noPorts, 10, "rate-20"), verdict.Invalid, "at the lowest load the load generator was saturated"},
		{"no port left at the lowest load, and a wrong response", func(r *Run) {
			add(noPorts, 10, "rate-20")(r)
			add(shard.CodeWrongContent, 1, "rate-20")(r)
		}, verdict.Fail, "responses are correct: 1 wrong"},
	})
}

func TestRunWithoutResultIsInvalid(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]*Run{
		"no stage":     runOf("rampup", rampupParameters),
		"warm-up only": newRampRun(),
		"no shard":     func() *Run { r := newRampRun(20); r.Rounds[0].Suite = nil; return r }(),
		"lost runner": func() *Run {
			r := newRampRun(20)
			r.Rounds[0].Problems = []string{"runner 2 left no shard"}
			return r
		}(),
	} {
		v := judge(r)
		require.Equal(t, verdict.Invalid, v.Verdict, name)
		require.NotEmpty(t, v.Reasons, name)
	}
}

// If the runners nearly filled the machine, slowness is not attributed to the service.
func TestFullMachineLimitsTheGenerator(t *testing.T) {
	t.Parallel()
	r := newRampRun(20)
	r.Rounds[0].Suite.Stages = append(r.Rounds[0].Suite.Stages, shard.Stage{Name: "rate-100", Title: "100/s", Kind: kindLoad, Start: 30, Seconds: 10, Rate: 100, Connections: 30})
	r.addAnswers("rate-100", 500, 600).addCounter(shard.DroppedIterations, "rate-100", 500)
	r.OneHost = true
	at := start.Unix() + 30
	for i := range int64(11) {
		r.Samples = append(r.Samples, resources.Sample{Unix: at + i, BackendCPU: .2 * float64(i), Host: resources.Host{BusySeconds: 1.95 * float64(i)}})
	}
	r.addSeconds(30, 10, shard.Second{CPUSeconds: 1.5})
	v := judge(r)
	require.Equal(t, verdict.Pass, v.Verdict, v.Reasons)
	require.Contains(t, fact(v, "breaking point"), "not found: at 100 requests/s the load generator was saturated")
	require.Contains(t, fact(v, "breaking point"), "the machine was full: the runners used 150 % of a core and the service 20 %, of 195 % in total")
	require.Len(t, v.Warnings, 1)
	require.Equal(t, []string{"100/s", "150", "0", "20", "195", "0", "0 ms"}, table(v, "CPU by stage, % of one core").Rows[1])
	r.Samples = nil // the service is on its own machine
	r.OneHost = false
	require.Contains(t, fact(judge(r), "breaking point"), "between 20 and 100")
}

// If a service is slow, many requests are in flight, so the runners wait for cores and drop requests. If the runners
// still wake up in time, the slowness is attributed to the service.
func TestSlownessWithTimelyRunners(t *testing.T) {
	t.Parallel()
	slowRun := func(edit func(*shard.Second), host float64) *Run {
		r := newRampRun(20)
		r.Rounds[0].Suite.Stages = append(r.Rounds[0].Suite.Stages, shard.Stage{Name: "rate-100", Title: "100/s", Kind: kindLoad, Start: 30, Seconds: 10, Rate: 100, Connections: 1000})
		r.addAnswers("rate-100", 900, 1100)
		r.OneHost, r.Cores = true, 2
		at := start.Unix() + 30
		for i := range int64(11) {
			r.Samples = append(r.Samples, resources.Sample{Unix: at + i, Host: resources.Host{BusySeconds: host * float64(i)}})
		}
		second := shard.Second{CPUSeconds: .2, RunDelayMS: 300, StallMS: 20}
		edit(&second)
		wait := time.Duration(second.WaitMS) * time.Millisecond
		return r.addSeconds(30, 10, second).withUndelayedTimes(wait).addCounter(shard.DroppedIterations, "rate-100", 100)
	}
	unchanged := func(*shard.Second) {}
	require.Contains(t, fact(judge(slowRun(unchanged, .6)), "breaking point"), "between 20 and 100 requests/s (p95 1.1 s")
	require.Contains(t, fact(judge(slowRun(func(s *shard.Second) { s.CPUSeconds, s.RunDelayMS = .9, 950 }, .6)), "breaking point"), "between 20 and 100", "the sum of the waits of threads must not count")
	require.Contains(t, fact(judge(slowRun(func(s *shard.Second) { s.StallMS, s.WaitMS = 115, 115 }, .6)), "breaking point"), "between 20 and 100")
	require.Contains(t, fact(judge(slowRun(unchanged, 1.9)), "breaking point"), "between 20 and 100", "a full machine must not explain the delay if no thread waited for long")
	for name, r := range map[string]*Run{
		"the runner woke up late": slowRun(func(s *shard.Second) { s.StallMS, s.WaitMS = 200, 200 }, .6),
		"the runner was busy":     slowRun(func(s *shard.Second) { s.CPUSeconds, s.WaitMS = .9, 200 }, .6),
		"the machine was full":    slowRun(func(s *shard.Second) { s.StallMS, s.WaitMS = 115, 115 }, 1.9),
	} {
		require.Contains(t, fact(judge(r), "breaking point"), "at 100 requests/s the load generator was saturated", name)
	}
}

func TestServerCount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		served uint64
		failed int
		want   verdict.Outcome
	}{
		{300, 0, verdict.Pass}, {299, 0, verdict.Invalid}, {301, 0, verdict.Invalid},
		{300, 1, verdict.Pass}, {301, 1, verdict.Pass}, {302, 1, verdict.Invalid},
		{0, 0, verdict.Pass}, // the backend reports no count
	} {
		r := newRampRun(20) // 100 requests of the warm-up and 200 of the stage
		if c.failed > 0 {
			r.addAnswers("rate-20", c.failed, 1, shard.TagCode, "net-1050")
		}
		r.OneHost, r.Samples = true, []resources.Sample{{Unix: 1}, {Unix: 2, Served: c.served}}
		v := judge(r)
		require.Equal(t, c.want, v.Verdict, "%+v %v", c, v.Reasons)
		r.OneHost = false
		require.Equal(t, verdict.Pass, judge(r).Verdict, "a remote service may have other clients, so its count must not matter")
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	r := newRampRun(20, 50).set("SEARCH", "1")
	require.Nil(t, searchRampup(r), "without a bad load, there must be no further round")
	r.addAnswers("rate-50", 500, 1, shard.TagCode, "status-500")
	require.Equal(t, map[string]string{"STAGES": "35", "CEILING": "0"}, searchRampup(r))
	second := newRampRun(35).set("SEARCH", "1")
	second.Rounds[0].Runners[0].EndedUS += time.Hour.Microseconds()
	r.Rounds = append(r.Rounds, second.Rounds[0])
	require.Equal(t, "42", searchRampup(r)["STAGES"])
	v := judge(r)
	require.InDelta(t, 7200, v.EndedUnix-v.StartedUnix, 1, "a run must end with its last round")
	require.Contains(t, fact(v, "breaking point"), "between 35 and 50")
	for len(r.Rounds) <= searchRounds {
		r.Rounds = append(r.Rounds, second.Rounds[0])
	}
	require.Nil(t, searchRampup(r), "the search must end after its maximum number of rounds")
	r = newRampRun(20, 50).addAnswers("rate-50", 500, 1, shard.TagCode, "status-500")
	require.Nil(t, searchRampup(r), "without SEARCH=1 there must be no further round")
}

// A service that gets slower with time is bad at any load at the end, so the search ends by repeating the good load.
func TestSearchRetriesTheGoodLoad(t *testing.T) {
	t.Parallel()
	brokenRun := func(minRate string, retries ...float64) *Run {
		r := newRampRun(20, 40, 43).set("MIN_RATE", minRate).set("SEARCH", "1").addAnswers("rate-43", 400, 1, shard.TagCode, "status-500")
		require.Equal(t, "40", searchRampup(r)["STAGES"])
		for _, rate := range retries {
			r.Rounds = append(r.Rounds, newRampRun(rate).Rounds[0])
		}
		return r
	}
	r := brokenRun("0", 40)
	require.Nil(t, searchRampup(r))
	v := judge(r)
	require.Equal(t, verdict.Pass, v.Verdict, v.Reasons)
	require.Contains(t, fact(v, "breaking point"), "between 40 and 43 requests/s")
	count := 0
	for _, m := range v.Metrics {
		if m.Name == "p95 at 40/s" {
			count++
		}
	}
	require.Equal(t, 1, count, "metrics of a repeated stage must be listed once")

	for minRate, want := range map[string]verdict.Outcome{"0": verdict.Pass, "30": verdict.Invalid, "40": verdict.Fail, "41": verdict.Fail} {
		r = brokenRun(minRate)
		last := newRampRun(40).addAnswers("rate-40", 400, 1, shard.TagCode, "status-500")
		r.Rounds = append(r.Rounds, last.Rounds[0])
		require.Nil(t, searchRampup(r))
		v = judge(r)
		require.Equal(t, want, v.Verdict, minRate)
		require.Equal(t, "not found: 40 requests/s were sustained at first, but not when they were repeated at the end (50.00 % failed, mostly by status 500); "+
			"the result also depends on time or on earlier load", fact(v, "breaking point"))
		require.Equal(t, "not known", fact(v, "safe load"))
		require.Empty(t, fact(v, "bottleneck"))
		require.Equal(t, "not known", table(v, "Recommended maximum loads").Rows[0][2])
	}
}

// addWaits adds n good responses whose requests waited for a connection. Both times are in milliseconds; duration
// excludes the wait.
func (r *Run) addWaits(stage string, n int, wait, duration float64) *Run {
	r.addAnswers(stage, n, wait+duration, shard.TagWaited, "yes")
	r.addAnswers(stage, n, duration).addAnswers(stage, n, wait)
	m := r.Rounds[0]
	last := m.Metrics[len(m.Metrics)-2:]
	last[0].Name, last[1].Name = shard.DurationWithoutWait, shard.ConnectionWait
	return r
}

// With enough connections, a service that always responds in 1.5 s sustains any rate, if the limit of p95 allows 1.5 s.
// A service that gets slower under load is saturated. A service that exceeds the limit even without the wait for a
// connection is too slow.
func TestTooFewConnectionsLimitTheGenerator(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fastest, duration, wait float64 // milliseconds: of the idle service, of the service in the stage, for a connection
		waiting                 int     // requests that wait
		failed                  int
		limit                   string // MAX_P95_MS
		status                  Status
	}{
		"too few connections":                {1500, 1600, 5000, 150, 0, "2000", ByGenerator},
		"too few, and any time is allowed":   {1500, 1600, 15000, 150, 0, "0", ByGenerator},
		"slower than the limit":              {1500, 1600, 5000, 150, 0, "500", Bad},
		"3 s, and the limit is 500 ms":       {3000, 3000, 5000, 150, 0, "500", Bad},
		"slower than at a lower load":        {10, 1600, 5000, 150, 0, "2000", Bad},
		"few waited":                         {1500, 1600, 5000, 5, 0, "1000", Bad},
		"responses fail, too":                {1500, 1600, 5000, 150, 50, "2000", Bad},
		"no request waits, and all are slow": {7000, 7000, 0, 0, 0, "2000", Bad},
	} {
		r := runOf("rampup", rampupParameters,
			shard.Stage{Name: "warmup", Kind: kindWarmup, Seconds: 10, Rate: 20, Connections: 20},
			shard.Stage{Name: "rate-20", Title: "20/s", Kind: kindLoad, Start: 20, Seconds: 10, Rate: 20, Connections: 20, Patience: 10}).set("MAX_P95_MS", c.limit)
		r.addAnswers("warmup", 1, c.fastest).addAnswers("rate-20", 170-c.waiting, c.duration).addWaits("rate-20", c.waiting, c.wait, c.duration)
		if c.failed > 0 {
			r.addAnswers("rate-20", c.failed, 10, shard.TagCode, "status-503")
		}
		all := r.stages()
		stages := filterKind(all, kindLoad)
		trials := r.limits().Trials(r.limits().levels(stages))
		require.Equal(t, c.status, trials[0].Status, "%s: %s", name, trials[0].Reason)
		bottleneck := findBottleneck(stages, findBreakingPoint(trials))
		if c.status == ByGenerator {
			require.Contains(t, trials[0].Reason, "the limit of 20 connections was reached, and with a connection a request took 1.6 s on average", name)
			require.Contains(t, bottleneck.String(), "connections of the load generator: full from 20/s on, 20 of 20 in use", name)
			require.Contains(t, bottleneck.advice(), "MAX_CONNECTIONS", name)
		} else {
			require.Empty(t, bottleneck.Full(), name)
			require.NotContains(t, bottleneck.advice(), "MAX_CONNECTIONS", name)
		}
	}
}

// If 150 of 200 responses per second arrive in the stage, the rate is 150 and the load is not sustained, even if the
// others arrive later. A service with 0.9 s per response has the responses of the last 0.9 s in flight at the end of
// the stage, and sustains the load.
func TestRateExcludesResponsesAfterTheStage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limit     string
		ms        float64
		late      int     // responses after the end of the stage
		lateness  float64 // ms after the end of the stage
		perSecond string
		status    Status
	}{
		"150/s, any time is allowed":           {"0", 10, 500, 1500, "150", Bad},
		"150/s, and p95 may be 5 s":            {"5000", 10, 500, 6000, "150", Bad},
		"always 900 ms, any time is allowed":   {"0", 900, 180, 450, "200", Good},
		"always 900 ms, and p95 may be 1 s":    {"1000", 900, 180, 450, "200", Good},
		"always 900 ms, and p95 may be 500 ms": {"500", 900, 180, 450, "200", Bad},
		"late by less than the limit of p95":   {"1000", 10, 180, 600, "182", Good},
		"late by more than the fastest time":   {"0", 10, 180, 600, "182", Bad},
	} {
		r := runOf("rampup", rampupParameters, shard.Stage{Name: "rate-200", Title: "200/s", Kind: kindLoad, Seconds: 10, Rate: 200, Connections: 200}).set("MAX_P95_MS", c.limit)
		r.addAnswers("rate-200", 2000, c.ms).delayAnswers("rate-200", c.late, c.lateness)
		row := table(judge(r), "Stages").Rows[0]
		require.Equal(t, []string{c.perSecond, string(c.status)}, []string{row[4], row[6]}, name)
	}
}

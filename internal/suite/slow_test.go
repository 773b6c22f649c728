package suite

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// newSlowRun returns a run of 100 streams. The client of every tenth stream does not read from 10 s until 40 s. The
// service closes 4 of these streams 12 to 15 s later. It keeps 6, whose clients have all messages in the end. Its
// memory grows by 50 MiB in between.
func newSlowRun() *Run {
	r := runOf("slow", map[string]string{
		"EVERY": "10", "SLOW_SECONDS": "30", "SLOW_KB": "0", "FILL_KB": "4096", "MAX_OPEN_LATE": "0", "MAX_GROWTH": "100", "CUT_SLOW": "-1", "GAUGE": "",
	}, shard.Stage{Name: "slow", Start: 10, Seconds: 30, Requests: 10}).addStreams(100, 40*time.Second)
	m := r.Rounds[0]
	for n := 0; n < 100; n += 10 {
		if c := r.stream(n); n < 40 {
			c.State, c.Reason = ledger.Dropped, "reset"
		}
	}
	m.Checks[0].Passes = 90
	for name, value := range map[string]float64{"started": 10, "accepted": 120, "due": 90 * 120, "arrived": 90 * 120, "filled": 10, "complete": 6} {
		r.addCounter("slow_"+name, "slow", value)
	}
	r.metric("slow_started").FirstUS = start.Add(10 * time.Second).UnixMicro()
	closed, backlog := shard.NewHistogram(), shard.NewHistogram()
	for range 4 {
		closed.Record(15 * time.Second)
	}
	for range 6 {
		backlog.Record(7680 * time.Millisecond)
	}
	in := map[string]string{shard.TagStage: "slow"}
	m.Metrics = append(m.Metrics,
		shard.Metric{Name: "slow_closed", Type: "trend", Tags: in, Trend: closed, Count: 4, Min: 12_000, Max: 15_000},
		shard.Metric{Name: "slow_backlog", Type: "trend", Tags: in, Trend: backlog, Count: 6, Min: 7680, Max: 7680})
	for i := range int64(60) {
		rss := uint64(20)
		switch {
		case i >= 45:
			rss = 30
		case i >= 20:
			rss = 70
		}
		r.Samples = append(r.Samples, resources.Sample{Unix: start.Unix() + i, BackendRSS: rss << 20, Streams: 100})
	}
	return r
}

func (r *Run) metric(name string) *shard.Metric {
	metrics := r.Rounds[0].Metrics
	for i := range metrics {
		if metrics[i].Name == name {
			return &metrics[i]
		}
	}
	panic("no metric " + name)
}

func TestSlow(t *testing.T) {
	t.Parallel()
	r := newSlowRun()
	r.Rounds[0].Connections.Edit(0).MaxLateness, r.Rounds[0].Connections.Edit(1).MaxLateness = 30*time.Second, 20*time.Millisecond
	v := judge(r)
	require.Equal(t, verdict.Pass, v.Verdict, v.Reasons)
	require.Equal(t, "at most 20.0 ms on the other streams", fact(v, "lateness"))
	const outcome = "4 disconnected, the first after 12.0 s, the last after 15.0 s; 6 still open, with all messages at the end"
	require.Equal(t, []string{"10 clients that read nothing: " + outcome + "; the other clients received all messages"}, v.Reasons)
	require.Equal(t, outcome, fact(v, "outcome"))
	require.Equal(t, "20 MiB before, +50 MiB at most, +10 MiB at the end", fact(v, "memory"))
	require.Equal(t, [][]string{{"10", "4", "12.0", "15.0", "0", "4 × reset", "6", "0", "7680", "7680"}}, table(v, "Slow streams").Rows)
	require.Equal(t, 90, v.Connections.Planned, "only the streams that are read at full speed must be judged")
	rows := table(v, "Memory of the service").Rows
	require.Equal(t, []string{"before", "20.0"}, rows[0])
	require.Equal(t, []string{"50.0", "30.0"}, rows[len(rows)-1])
}

// The final sample of a run may be from the same second as the one before it.
func TestSlowListsEachSecondOfTheMemoryOnce(t *testing.T) {
	t.Parallel()
	r := newSlowRun()
	final := r.Samples[len(r.Samples)-1]
	final.BackendRSS = 31 << 20
	r.Samples = append(r.Samples, final)
	rows := table(judge(r), "Memory of the service").Rows
	require.Equal(t, []string{"50.0", "31.0"}, rows[len(rows)-1])
	require.NotEqual(t, "50.0", rows[len(rows)-2][0])
}

// A client that does not read does not detect that the service closed the stream. The gauge of our backend shows it.
func TestSlowClientsDetectDisconnectsLater(t *testing.T) {
	t.Parallel()
	r := newSlowRun()
	r.metric("slow_closed").Count, r.metric("slow_complete").Sum = 0, 0
	r.addCounter("slow_closed_later", "slow", 9)
	for i := 25; i < len(r.Samples); i++ {
		r.Samples[i].Streams = 90
	}
	v := judge(r)
	require.Equal(t, verdict.Pass, v.Verdict, v.Reasons)
	require.Equal(t, "9 disconnected within 16 s (detected by the clients only after the slow phase); 1 still open, with messages missing at the end", fact(v, "outcome"))
	i := slices.IndexFunc(v.Checks, func(c verdict.Check) bool { return c.ID == CheckSlowComplete })
	require.Equal(t, verdict.Warned, v.Checks[i].State())
}

// Only messages that were published while some clients were slow count.
func TestMessagesWithSlowClients(t *testing.T) {
	t.Parallel()
	at := func(seconds float64) int64 {
		return start.Add(time.Duration(seconds * float64(time.Second))).UnixMicro()
	}
	log := shard.NewPublishLog([]string{"a", "b"}, 1, at(0), 60)
	for i, state := range map[float64]shard.MessageState{5: shard.Refused, 12: shard.Confirmed, 20: shard.Open, 41: shard.Open} {
		log.Settle(0, log.Begin(0, at(i)), shard.PublishOutcome{State: state, SentUS: at(i), AtUS: at(i) + 1000})
	}
	s := slowStreams{duration: 30 * time.Second}
	s.count(log.Published(true), at(10))
	require.Equal(t, []int{1, 1}, []int{s.confirmed, s.unconfirmed})
	require.Equal(t, []string{"the service did not accept 1 of 2 messages while some clients were slow"}, s.checkAccepted()[0].Reasons)
}

func TestSlowFindsFaults(t *testing.T) {
	t.Parallel()
	sum := func(name string, value float64) func(*Run) { return func(r *Run) { r.metric(name).Sum = value } }
	judgeEdits(t, newSlowRun, []runEdit{
		{"a stream was not slow", sum("slow_started", 9), verdict.Invalid, "only 9 of 10 clients were slow"},
		{"most buffers were not filled", sum("slow_filled", 3), verdict.Invalid, "7 of 10 slow streams were neither disconnected nor 4,096 KB"},
		{"compressed messages did not fill buffers", func(r *Run) {
			sum("slow_filled", 3)(r)
			r.Rounds[0].Codings = []shard.Coding{{Name: "gzip", Streams: 90}}
		}, verdict.Invalid, "the messages were compressed; set ACCEPT_ENCODING=none"},
		{"the service has no broadcasts", func(r *Run) {
			sum("slow_accepted", 0)(r)
			r.addCounter("slow_rejected", "slow", 120)
		}, verdict.Invalid, "the service accepted none of the messages"},
		{"the service refuses messages while clients are slow", func(r *Run) { r.addCounter("slow_rejected", "slow", 2) }, verdict.Fail, "the service did not accept 2 of 122 messages while some clients were slow"},
		{"other clients miss large messages", sum("slow_arrived", 10_790), verdict.Fail, "10 of 10,800 large messages did not arrive on the other streams"},
		{"other clients receive large messages twice", func(r *Run) { r.addCounter("slow_repeated", "slow", 3) }, verdict.Fail, "3 large messages arrived twice, or after a later one, on the other streams"},
		{"a stream that is read is late", func(r *Run) { r.delayNoops(7, 1, 30*time.Second) }, verdict.Fail, "d-7"},
		{"a stream that is read is disconnected", func(r *Run) { r.endEarly(7, 30*time.Second, "reset") }, verdict.Fail, "d-7 was disconnected"},
		{"no buffer was filled, and a stream that is read is disconnected", func(r *Run) {
			sum("slow_filled", 0)(r)
			r.endEarly(7, 30*time.Second, "reset")
		}, verdict.Fail, "d-7 was disconnected"},
		{"memory grows", func(r *Run) { r.set("MAX_GROWTH", "49") }, verdict.Fail, "the service's memory grew by 50.0 MiB while clients were slow (limit: 49 MiB, MAX_GROWTH); at the end the growth was +10.0 MiB"},
		{"memory is unknown", func(r *Run) { r.Samples = nil }, verdict.Invalid, "the service's memory is unknown"},
		{"memory is a counter", func(r *Run) {
			r.set("GAUGE", "allocated_bytes_total")
			for i := range r.Samples {
				r.Samples[i].Counter = true
			}
		}, verdict.Invalid, "allocated_bytes_total is a counter, which never falls; set GAUGE to a gauge of the service's memory"},
		{"memory grows by the limit", func(r *Run) { r.set("MAX_GROWTH", "50") }, verdict.Pass, "10 clients that read nothing"},
		{"memory is unknown before", func(r *Run) { r.Samples = r.Samples[12:] }, verdict.Invalid, "the service's memory is unknown"},
		{"memory is unknown while clients are slow", func(r *Run) { r.Samples = append(r.Samples[:5], r.Samples[len(r.Samples)-3:]...) }, verdict.Invalid, "the service's memory is unknown"},
		{"memory is unknown for most of the time while clients are slow", func(r *Run) {
			for i := 12; i < 39; i++ {
				r.Samples[i].BackendRSS = 0
			}
		}, verdict.Invalid, "the service's memory is unknown"},
		{"memory is unknown for two seconds", func(r *Run) { r.Samples[25].BackendRSS, r.Samples[26].BackendRSS = 0, 0 }, verdict.Pass, "10 clients that read nothing"},
		{"memory is unknown afterward", func(r *Run) { r.Samples = r.Samples[:30] }, verdict.Invalid, "the service's memory is unknown"},
		{"memory is unknown, and has no limit", func(r *Run) {
			r.Samples = nil
			r.set("MAX_GROWTH", "-1")
		}, verdict.Pass, "10 clients that read nothing"},
		{"memory is measured by a gauge", func(r *Run) {
			r.set("GAUGE", "rss")
			for i := range r.Samples {
				v := float64(i) * (10 << 20)
				r.Samples[i].Gauge = &v
			}
		}, verdict.Fail, "grew by 500.0 MiB"},
		{"slow streams must be disconnected", func(r *Run) { r.set("CUT_SLOW", "1") }, verdict.Fail, "the service did not disconnect 6 of 10 slow streams within 30 s, but it must (CUT_SLOW=1)"},
		{"slow streams must not be disconnected", func(r *Run) { r.set("CUT_SLOW", "0") }, verdict.Fail, "4 of 10 slow streams (4 × reset), but it must not (CUT_SLOW=0)"},
	})
}

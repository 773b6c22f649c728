package suite

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// addStreams adds n streams that stayed open for the given duration, and received a noop every second.
func (r *Run) addStreams(n int, duration time.Duration) *Run {
	m := r.Rounds[0]
	m.Plan.NoopInterval, m.Plan.Seconds, m.Plan.LateMS, m.Plan.MaxLate, m.Plan.Prefix = 1, 60, 1000, -1, "d-"
	if m.Connect == nil {
		m.Connect, m.Lateness, m.FirstMessage = shard.NewHistogram(), shard.NewHistogram(), shard.NewHistogram()
		r.Server = verdict.ServerLedger{}
	}
	for range n {
		id := m.Plan.ClientID(m.Plan.Connections)
		noops := uint64(duration / time.Second)
		m.Plan.Connections++
		m.Connections.Add(&shard.Connection{Record: ledger.Record{
			ID: id, State: ledger.Completed, Numbered: true, Streams: 1, Attempts: 1, StreamTime: duration, OpenTime: duration, Last: noops,
			Counts: ledger.Counts{Received: noops},
		}})
		r.Server[id] = verdict.ServerEntry{ID: id, First: 1, Last: noops, Sent: noops}
	}
	m.Checks = []shard.ScriptCheck{{Name: "Get status was 200", Passes: int64(m.Plan.Connections)}}
	return r
}

func newChurnRun() *Run {
	r := runOf("churn", map[string]string{"CONNECTIONS": "10", "MEAN_HOLD": "4", "SECONDS": "60"}, shard.Stage{Name: "churn", Seconds: 60}).
		addStreams(20, 500*time.Millisecond).addStreams(30, 2500*time.Millisecond).addStreams(5, 40*time.Second)
	r.Rounds[0].Runners[0].EndedUS = start.Add(time.Minute).UnixMicro()
	for i := range int64(60) {
		r.Samples = append(r.Samples, resources.Sample{Unix: start.Unix() + i, BackendRSS: 20 << 20, Streams: 10, Files: 24, Goroutines: 12})
	}
	return r
}

// If MEAN_HOLD is half of the run, the number of open streams grows until the middle of the run. That is not a leak.
func TestChurnComparesTheBackendWithAllStreamsOpen(t *testing.T) {
	t.Parallel()
	r := newChurnRun()
	r.set("MEAN_HOLD", "30")
	for i := range r.Samples {
		streams := min(10*i, 300)
		r.Samples[i].Streams, r.Samples[i].Files, r.Samples[i].Goroutines, r.Samples[i].BackendRSS = streams, streams+14, streams+2, uint64(20<<20+streams<<15)
	}
	v := judge(r)
	require.Equal(t, verdict.Pass, v.Verdict, v.Reasons)
	require.Equal(t, []string{"streams", "300", "300"}, table(v, "The backend, early and late").Rows[0])
	for i := range r.Samples {
		r.Samples[i].Goroutines += 3 * i
	}
	require.Equal(t, verdict.Fail, judge(r).Verdict)
}

func TestChurnPasses(t *testing.T) {
	t.Parallel()
	v := judge(newChurnRun())
	require.Equal(t, verdict.Pass, v.Verdict, v.Reasons)
	require.Equal(t, []string{"55 streams were opened and closed, 260 of 260 noops received, and the backend leaked no resources"}, v.Reasons)
	require.Equal(t, "55 streams, 10 at a time, 5.2 s each on average", fact(v, "lifetimes"))
	require.Equal(t, "1 connects/s, and as many disconnects", fact(v, "churn"))
	require.Equal(t, 55, v.Connections.Completed)
	require.EqualValues(t, 260, v.Server.Sent)
	require.Equal(t, [][]string{
		{"under 1 interval", "20", "0", "0", "0", "0"}, {"1 to 3", "30", "60", "0", "0", "0"},
		{"3 to 10", "0", "0", "0", "0", "0"}, {"10 or more", "5", "200", "0", "0", "0"},
	}, table(v, "Streams by lifetime").Rows)
	require.Equal(t, []string{"other descriptors", "14", "14"}, table(v, "The backend, early and late").Rows[1])
}

func TestChurnFindsFaults(t *testing.T) {
	t.Parallel()
	judgeEdits(t, newChurnRun, []runEdit{
		{"without samples late in the run, leaks are unknown", func(r *Run) { r.Samples = r.Samples[:10] }, verdict.Pass, "[55 streams were opened and closed, 260 of 260 noops received]"},
		{"a noop that the server sent as the last of a stream", func(r *Run) {
			r.Server["d-3"] = verdict.ServerEntry{ID: "d-3", First: 1, Last: 1, Sent: 1}
		}, verdict.Fail, "d-3 missed noop 1: nothing arrived before the stream closed"},
		{"an unobserved connection", func(r *Run) { r.Rounds[0].Connections = connectionsBetween(r.Rounds[0], 1, 1000) }, verdict.Invalid, "1 of 55 planned clients was not observed: d-0"},
		{"a disconnected connection", func(r *Run) {
			c := r.Rounds[0].Connections.Edit(40)
			c.State = ledger.Dropped
			c.Findings = []ledger.Finding{{Kind: ledger.KindDropped, Note: "reset"}}
		}, verdict.Fail, "d-40 was disconnected"},
		{"a check that failed", func(r *Run) { r.Rounds[0].Checks[0].Fails, r.Rounds[0].Checks[0].Passes = 1, 54 }, verdict.Fail, `the check "Get status was 200" failed 1 of 55 times`},
		{"descriptors leak", func(r *Run) {
			for i := range r.Samples {
				r.Samples[i].Files += 2 * i
			}
		}, verdict.Fail, "the backend's descriptors (without streams) grew from 60 to 120; growth by up to 32 is normal"},
		{"goroutines leak", func(r *Run) {
			for i := range r.Samples {
				r.Samples[i].Goroutines += 3 * i
			}
		}, verdict.Fail, "the backend's goroutines grew"},
		{"memory leaks", func(r *Run) {
			for i := range r.Samples {
				r.Samples[i].BackendRSS += uint64(i) << 20
			}
		}, verdict.Fail, "the backend's memory (MiB) grew from 43 to 73; growth by up to 8 is normal"},
		{"all connections are shorter than the interval", func(r *Run) {
			m := r.Rounds[0]
			m.Connections, m.Plan.Connections = connectionsBetween(m, 0, 20), 20
			m.Checks[0].Passes = 20
		}, verdict.Invalid, "no noop was received"},
		{"no plan", func(r *Run) { r.Rounds[0].Plan.Connections, r.Rounds[0].Connections = 0, shard.Connections{} }, verdict.Invalid, "the script planned no stream"},
	})
}

// newCapacityRun returns a capacity run with steps of 10 s, and a noop every second on each stream. steps has the
// number of streams in each step.
func newCapacityRun(steps ...int) *Run {
	var stages []shard.Stage
	for i, n := range steps {
		stages = append(stages, shard.Stage{Name: fmt.Sprint("held-", n), Title: fmt.Sprint(n), Start: float64(10 * i), Seconds: 10, Concurrency: n})
	}
	r := runOf("capacity", map[string]string{}, stages...)
	m := r.Rounds[0]
	total := time.Duration(len(steps)) * 10 * time.Second
	for i, n := range steps {
		opened := time.Duration(i) * 10 * time.Second
		r.addStreams(n-m.Connections.Len(), total-opened)
		for k := range m.Connections.Len() {
			if c := m.Connections.Edit(k); c.LastAt == 0 {
				c.OpenedAt, c.LastAt, c.ClosedAt = opened, total, total
			}
		}
		from := start.Add(opened)
		m.Metrics = append(m.Metrics, shard.Metric{
			Name: "capacity_streams", Type: "gauge", Tags: map[string]string{shard.TagStage: stages[i].Name},
			FirstUS: from.UnixMicro(), LastUS: from.Add(10 * time.Second).UnixMicro(),
		})
	}
	m.Checks = nil
	h := shard.NewHistogram()
	h.Record(20 * time.Millisecond)
	m.Series = []shard.Bucket{{Unix: start.Unix(), Lateness: h.Pack(), ProcessUsage: shard.ProcessUsage{CPUPercent: 30}}, {Unix: start.Unix() + 15, Lateness: h.Pack(), ProcessUsage: shard.ProcessUsage{CPUPercent: 60}}}
	return r
}

// stream returns the nth stream of a run. It removes the stream from the server's ledger, which would not agree with
// faults that the caller adds.
func (r *Run) stream(n int) *shard.Connection {
	c := r.Rounds[0].Connections.Edit(n)
	delete(r.Server, c.ID)
	return c
}

// delayNoops makes count noops of a stream late, starting with the one due at the given instant.
func (r *Run) delayNoops(n, count int, due time.Duration) {
	c := r.Rounds[0].Connections.Edit(n)
	for i := range count {
		c.Late++
		at := due + time.Duration(i)*time.Second
		c.Findings = append(c.Findings, ledger.Finding{Kind: ledger.KindLate, From: 3, At: at + 2*time.Second, Lateness: 2 * time.Second})
	}
}

// silence removes the noops that a stream receives after an instant.
func (r *Run) silence(n int, after time.Duration) {
	c := r.Rounds[0].Connections.Edit(n)
	c.LastAt = max(after, c.OpenedAt)
	c.Tail = uint64((c.ClosedAt - c.LastAt) / time.Second)
	c.Received -= c.Tail
	c.Last = c.Received
	c.Findings = append(c.Findings, ledger.Finding{Kind: ledger.KindTail, From: c.Received + 1, Count: c.Tail, At: c.ClosedAt})
	r.Server[c.ID] = verdict.ServerEntry{ID: c.ID, First: 1, Last: c.Last, Sent: c.Last}
}

func (r *Run) endEarly(n int, at time.Duration, reason string) {
	c := r.Rounds[0].Connections.Edit(n)
	c.State, c.Reason, c.ClosedAt, c.StreamTime = ledger.Dropped, reason, at, at-c.OpenedAt
	c.Findings = append(c.Findings, ledger.Finding{Kind: ledger.KindDropped, At: at, Note: reason})
	c.Received = uint64(c.StreamTime / time.Second)
	c.Last, c.LastAt = c.Received, at
	r.Server[c.ID] = verdict.ServerEntry{ID: c.ID, First: 1, Last: c.Last, Sent: c.Last}
}

func (r *Run) refuse(n int) {
	c := r.Rounds[0].Connections.Edit(n)
	delete(r.Server, c.ID)
	c.Record = ledger.Record{ID: c.ID, State: ledger.Refused, Reason: "status 503", Attempts: 1, ClosedAt: c.OpenedAt}
}

// connectionsBetween returns the connections at the indexes i with from ≤ i < to.
func connectionsBetween(m *shard.Merged, from, to int) (selected shard.Connections) {
	for i, c := range m.Connections.All() {
		if i >= from && i < to {
			selected.Add(c)
		}
	}
	return selected
}

func (r *Run) removeSteps(n int) {
	m := r.Rounds[0]
	m.Connections = connectionsBetween(m, 0, m.Suite.Stages[n-1].Concurrency)
	m.Metrics = m.Metrics[:n]
}

// The summary describes the load, because the finding of one client does not.
func TestCapacitySummaryDescribesTheLowestLoad(t *testing.T) {
	t.Parallel()
	r := newCapacityRun(100, 200, 300)
	r.silence(3, 5*time.Second)
	r.removeSteps(1)
	require.Contains(t, judge(r).Summary(), "FAIL: the lowest load was not sustained: 25 noops missed")
}

func TestCapacity(t *testing.T) {
	t.Parallel()
	second := time.Second
	for _, c := range []struct {
		name     string
		edit     func(*Run)
		want     verdict.Outcome
		breaking string // the breaking point
		standard string // the standard recommendation
	}{
		{"no step breaks", func(*Run) {}, verdict.Pass, "not reached: 300 streams were sustained", "214"},
		{"the generator has no port left", func(r *Run) {
			for n := 250; n < 300; n++ {
				c := r.Rounds[0].Connections.Edit(n)
				c.Record = ledger.Record{ID: c.ID, State: ledger.Refused, Refusals: []ledger.Refusal{{Reason: ledger.ReasonNoPort, Count: 1}}}
				delete(r.Server, c.ID)
			}
		}, verdict.Invalid, "not found: at 300 streams the load generator was saturated (50 connects failed; the load generator had no port, descriptor or IPv6 address)", "143"},
		{"a noop is late", func(r *Run) { r.delayNoops(3, 7, 21*second) }, verdict.Pass, "between 200 and 300 streams (7 noops late)", "143"},
		{"a late noop was due before the step in which it arrived", func(r *Run) { r.delayNoops(3, 1, 19*second) }, verdict.Pass, "between 100 and 200 streams (1 noop late)", "71"},
		{"a noop is missed while the generator stalled", func(r *Run) {
			r.silence(3, 28*second)
			r.addSeconds(15, 5, shard.Second{WaitMS: 900})
		}, verdict.Pass, "between 200 and 300 streams (2 noops missed)", "143"},
		{"missed noops count at their due times, not at the end of the stream", func(r *Run) { r.silence(3, 18*second) }, verdict.Pass, "between 100 and 200 streams (1 noop missed)", "71"},
		{"a skipped noop counts at its due time, not at the arrival of the next one", func(r *Run) {
			c := r.stream(3)
			c.Lost, c.Received = 4, c.Received-4
			c.Findings = []ledger.Finding{{Kind: ledger.KindLost, From: 18, To: 21, Count: 4, At: 22 * second}}
			r.Server[c.ID] = verdict.ServerEntry{ID: c.ID, First: 1, Last: c.Last, Sent: c.Received}
		}, verdict.Pass, "between 100 and 200 streams (2 noops missed)", "71"},
		{"the last noops in the server's ledger", func(r *Run) {
			r.Server["d-250"] = verdict.ServerEntry{ID: "d-250", First: 1, Last: 12, Sent: 12}
		}, verdict.Pass, "between 200 and 300 streams (2 noops missed)", "143"},
		{"an unlisted miss counts for the step of the last listed one", func(r *Run) {
			r.silence(3, 25*second)
			c := r.Rounds[0].Connections.Edit(3)
			c.Unsent, c.Received, c.Unlisted = 1, c.Received-1, 1
		}, verdict.Pass, "between 200 and 300 streams (6 noops missed)", "143"},
		{"all streams beyond 100 are silent", func(r *Run) {
			for n := 100; n < 200; n++ {
				r.silence(n, 0)
			}
			r.removeSteps(2)
		}, verdict.Pass, "between 100 and 200 streams (2,000 noops missed)", "71"},
		{"a noop is late while the load generator stalled", func(r *Run) {
			r.delayNoops(3, 2, 16*second)
			r.addSeconds(15, 5, shard.Second{WaitMS: 900})
		}, verdict.Pass, "not found: at 200 streams the load generator was saturated", "71"},
		{"a saturated load generator closed an idle stream", func(r *Run) {
			r.silence(7, 12*second)
			c := r.Rounds[0].Connections.Edit(7)
			c.State, c.Reason = ledger.Dropped, "idle"
			r.removeSteps(2)
			r.addSeconds(15, 5, shard.Second{WaitMS: 6000})
		}, verdict.Pass, "not found: at 200 streams the load generator was saturated", "71"},
		{"the server closed a stream while the generator stalled", func(r *Run) {
			r.addSeconds(15, 5, shard.Second{WaitMS: 900})
			r.endEarly(7, 15*second, "reset")
		}, verdict.Pass, "between 100 and 200 streams (1 stream dropped)", "71"},
		{"connects fail in the first step", func(r *Run) {
			for n := range 50 {
				r.refuse(n)
			}
		}, verdict.Fail, "below 100 streams, the lowest load that was tried (50 connects failed)", "0"},
		{"a stream opened in the next step", func(r *Run) { r.Rounds[0].Connections.Edit(150).OpenedAt = 21 * second }, verdict.Pass, "between 100 and 200 streams (1 connect failed)", "71"},
		{"a noop is missed at the first step", func(r *Run) { r.silence(3, 5*second); r.removeSteps(1) }, verdict.Fail, "below 100 streams", "0"},
		{"more than the sustained load is required", func(r *Run) {
			r.set("MIN_CONNECTIONS", "250")
			r.endEarly(7, 25*second, "reset")
		}, verdict.Fail, "between 200 and 300", "143"},
		{"there are no metrics", func(r *Run) { r.Rounds[0].Metrics = nil }, verdict.Invalid, "", "0"},
		{"a step was not tried", func(r *Run) { r.removeSteps(2) }, verdict.Invalid, "", "143"},
		{"an unobserved stream", func(r *Run) { r.Rounds[0].Connections = connectionsBetween(r.Rounds[0], 1, 1000) }, verdict.Invalid, "", "214"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newCapacityRun(100, 200, 300)
			c.edit(r)
			v := judge(r)
			require.Equal(t, c.want, v.Verdict, v.Reasons)
			require.Contains(t, fact(v, "breaking point"), c.breaking)
			require.Equal(t, c.standard, table(v, "Recommended maximum loads").Rows[1][2])
		})
	}
	v := judge(newCapacityRun(100, 200))
	require.Equal(t, []string{"100", "–", "–", "20.0", "20.0", "20.0", "0", "0", "0", "0", "0", "good"}, table(v, "Steps").Rows[0])
	require.Equal(t, 200.0, v.Metrics[0].Value)
}

// A correct service sends no wrong messages at any load, so they fail the run even at a step that is not sustained.
func TestCapacityFailsOnFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		edit     func(*Run, *shard.Connection)
		wantText string
	}{
		"a noop arrived twice": {func(_ *Run, c *shard.Connection) {
			c.Duplicated = 1
			c.Findings = []ledger.Finding{{Kind: ledger.KindDuplicated, From: 3, At: 24 * time.Second}}
		}, "d-250 received noop 3 twice"},
		"a noop was damaged": {func(_ *Run, c *shard.Connection) {
			c.Corrupted, c.Received = 1, c.Received-1
			c.Findings = []ledger.Finding{{Kind: ledger.KindCorrupted, From: 3, At: 24 * time.Second, Note: "1"}}
		}, "d-250 received noop 3 corrupted"},
		"a noop arrived out of order": {func(_ *Run, c *shard.Connection) {
			c.Reordered = 1
			c.Findings = []ledger.Finding{{Kind: ledger.KindReordered, From: 3, At: 24 * time.Second}}
		}, "d-250 received noop 3 out of order"},
		"the server counts more noops": {func(r *Run, c *shard.Connection) {
			r.Server[c.ID] = verdict.ServerEntry{ID: c.ID, First: 1, Last: c.Last, Sent: c.Last + 3}
		}, "the server's ledger lists 13 noops as sent to d-250, but 10 arrived"},
		"the server has no entry for a stream": {func(r *Run, c *shard.Connection) { delete(r.Server, c.ID) }, "the server's ledger has no entry for d-250"},
		"a stream stays open":                  {func(_ *Run, c *shard.Connection) { c.State = ledger.Unfinished }, "1 of 300 sustained streams stayed open"},
	} {
		r := newCapacityRun(100, 200, 300)
		c.edit(r, r.Rounds[0].Connections.Edit(250))
		v := judge(r)
		require.Equal(t, verdict.Fail, v.Verdict, name)
		require.Contains(t, fmt.Sprint(v.Reasons), c.wantText, name)
		if strings.HasPrefix(name, "a noop") {
			require.Contains(t, fact(v, "breaking point"), "between 200 and 300 streams (1 noop duplicated, reordered or corrupted)", name)
		}
	}
	r := newCapacityRun(100, 200, 300)
	r.silence(299, 25*time.Second) // missed messages of one stream do not explain the server's count of another
	r.Server["d-7"] = verdict.ServerEntry{ID: "d-7", First: 1, Last: 30, Sent: 31}
	v := judge(r)
	require.Equal(t, verdict.Fail, v.Verdict)
	require.Contains(t, fmt.Sprint(v.Reasons), "the server's ledger lists 31 noops as sent to d-7, but 30 arrived")
}

// newFanoutRun returns a fan-out of 10 broadcasts to each number of streams.
func newFanoutRun(streams ...int) *Run {
	var stages []shard.Stage
	for _, n := range streams {
		stages = append(stages, shard.Stage{Name: fmt.Sprint("to-", n), Title: fmt.Sprint(n), Seconds: 10, Concurrency: n, Requests: 10})
	}
	r := runOf("fanout", nil, stages...)
	for _, n := range streams {
		name := fmt.Sprint("to-", n)
		r.addStreams(n-r.Rounds[0].Plan.Connections, 30*time.Second).addCounter("fanout_due", name, float64(10*n)).addCounter("fanout_arrived", name, float64(10*n))
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
	v := judge(newFanoutRun(10, 50))
	require.Equal(t, verdict.Pass, v.Verdict, v.Reasons)
	require.Equal(t, "600", fact(v, "deliveries"))
	require.Equal(t, []string{"10", "100", "3.00", "3.00", "3.00", "3.00"}, table(v, "Broadcasts").Rows[0][:6])
	require.Equal(t, "p99 to 50", v.Metrics[1].Name)
	judgeEdits(t, func() *Run { return newFanoutRun(10) }, []runEdit{
		{"one delivery is missing", func(r *Run) { r.addCounter("fanout_due", "to-10", 1) }, verdict.Fail, "100 of 101 deliveries arrived in time, 0 later"},
		{"one is a duplicate, and one is missing", func(r *Run) { r.addCounter("fanout_due", "to-10", 1).addCounter("fanout_duplicated", "to-10", 1) }, verdict.Fail, "1 delivery repeated a broadcast that the subscriber had already received"},
		{"one arrived after the time limit", func(r *Run) { r.addCounter("fanout_due", "to-10", 1).addCounter("fanout_overdue", "to-10", 1) }, verdict.Fail, "100 of 101 deliveries arrived in time, 1 later"},
		{"one arrived twice", func(r *Run) { r.addCounter("fanout_duplicated", "to-10", 1) }, verdict.Fail, "1 delivery repeated a broadcast that the subscriber had already received"},
		{"one arrived that was not sent", func(r *Run) { r.addCounter("fanout_unexpected", "", 1) }, verdict.Fail, "1 delivery did not match any broadcast sent to the subscriber"},
		{"one has no send time, and one is lost", func(r *Run) { r.addCounter("fanout_untimed", "to-10", 1).addCounter("fanout_due", "to-10", 1) }, verdict.Fail, "deliveries arrived in time"},
		{"one has no send time", func(r *Run) { r.addCounter("fanout_untimed", "to-10", 1) }, verdict.Invalid, "1 delivery lacked a send time"},
		{"the server did not confirm one", func(r *Run) { r.addCounter("fanout_short", "to-10", 1) }, verdict.Fail, "the server did not confirm that it sent 1 broadcast to every stream]"},
		{"the server refused two", func(r *Run) {
			r.addCounter("fanout_short", "to-10", 3)
			r.addCounter("fanout_short", "to-10", 2)
			m := r.Rounds[0].Metrics
			m[len(m)-1].Tags[shard.TagCode] = "status-503"
		}, verdict.Fail, "the server did not confirm that it sent 5 broadcasts to every stream (2 × status 503)"},
		{"lost broadcasts left no time for others", func(r *Run) { r.addCounter("fanout_due", "to-10", -60).addCounter("fanout_arrived", "to-10", -60) }, verdict.Invalid, "6 of 10 broadcasts were not sent before the end of their level"},
		{"no broadcast", func(r *Run) { r.Rounds[0].Metrics = nil }, verdict.Invalid, "broadcasts delivered"},
	})
}

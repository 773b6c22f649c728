package suite

import (
	"fmt"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

var churn = Suite{
	Name:   "churn",
	Short:  "open and close streams continuously, and check all their messages",
	Script: []string{"load-tests", "sse", "churn.js"},
	Target: Target{Streams: true},
	Page:   Page{Doc: "docs/suites.md"},
	Assess: assessChurn,
}

func assessChurn(r *Run) verdict.Assessment {
	m, streams := r.Rounds[0], r.streams()
	planned, messages := streams.Connections.Planned, streams.Messages
	a := verdict.Assessment{
		Streams: streams,
		Facts: append([]verdict.Fact{{Name: "lifetimes", Value: sentence("%v streams, %v at a time, %v s each on average",
			planned, r.number("CONNECTIONS"), meanStreamTime(streams).Seconds())}}, streamFacts(streams, m)...),
		Passed: []string{sentence("%v streams were opened and closed, %v of %v noops received", planned, messages.Received, messages.Expected)},
		Checks: slices.Concat([]verdict.Check{checkObserved(m)}, streams.FaultChecks(), streams.AgreementChecks()),
		Tables: []verdict.Table{lifetimeTable(m, streams)},
		Metrics: []verdict.Metric{
			{Name: "connect p99", Unit: "ms", Value: streams.ConnectMS.P99}, {Name: LatenessP99, Unit: "ms", Value: streams.LatenessMS.P99},
		},
	}
	if leak, table, ok := checkLeaks(r, m, planned); ok {
		a.Checks, a.Tables = append(a.Checks, leak), append(a.Tables, table)
		a.Passed[0] += ", and the backend leaked no resources"
	}
	if seconds := m.Plan.Hold().Seconds(); seconds > 0 {
		a.Facts = append(a.Facts, verdict.Fact{Name: "churn", Value: sentence("%v connects/s, and as many disconnects", float64(planned)/seconds)})
	}
	return a
}

// meanStreamTime returns the mean time for which a client had a stream open, over all clients that opened one.
func meanStreamTime(streams *verdict.Streams) time.Duration {
	sum, n := time.Duration(0), 0
	for _, c := range streams.Records() {
		if c.Streams > 0 {
			sum, n = sum+c.StreamTime, n+1
		}
	}
	return sum / time.Duration(max(n, 1))
}

func lifetimeTable(m *shard.Merged, streams *verdict.Streams) verdict.Table {
	interval := m.Plan.Interval()
	t := newTable("Streams by lifetime", "", "noop intervals|streams|noops received|missed|duplicated|not completed")
	from := time.Duration(0)
	add := func(title string, maximum time.Duration) {
		var sum ledger.Counts
		connections, bad := 0, 0
		for _, c := range streams.Records() {
			if c.StreamTime < from || c.StreamTime >= maximum {
				continue
			}
			connections++
			sum.Add(c.Counts)
			if c.State != ledger.Completed {
				bad++
			}
		}
		t.Add(row(title, connections, sum.Received, sum.Missed(), sum.Duplicated, bad)...)
		from = maximum
	}
	add("under 1 interval", interval)
	add("1 to 3", 3*interval)
	add("3 to 10", 10*interval)
	add("10 or more", 1<<62)
	return t
}

// Growth of a backend up to these limits does not count as a leak. The backend keeps a ledger entry per stream.
const (
	leakFiles      = 32
	leakGoroutines = 32
	leakMemory     = 8 << 20 // bytes
	ledgerEntry    = 400     // bytes
)

// earlyEnd returns the end of the early part of the run, as a share of the run's duration. By then, all concurrent
// clients have started their first streams: they start within MEAN_HOLD or half of the run, whichever is shorter
// (load-tests/sse/churn.js).
func (r *Run) earlyEnd() float64 {
	return max(.4, min(r.number("MEAN_HOLD")/r.number("SECONDS"), .5)+.1)
}

// checkLeaks returns the check that the backend's resources grow at most by the limits above between the early and the
// late part of the run. ok is false if the usage of the backend is unknown in one of these parts.
func checkLeaks(r *Run, m *shard.Merged, streams int) (c verdict.Check, t verdict.Table, ok bool) {
	earlyEnd := r.earlyEnd()
	early, isEarly := peakUsage(r.Samples, m, .2, earlyEnd)
	late, isLate := peakUsage(r.Samples, m, .6, .9)
	if !isEarly || !isLate {
		return c, t, false
	}
	var reasons []string
	compare := func(name string, from, to, tolerance int) {
		if to > from+tolerance {
			reasons = append(reasons, fmt.Sprintf("%s grew from %d to %d; growth by up to %d is normal", name, from, to, tolerance))
		}
	}
	compare("the backend's descriptors (without streams)", early.Files, late.Files, leakFiles)
	compare("the backend's goroutines", early.Goroutines, late.Goroutines, leakGoroutines)
	compare("the backend's memory (MiB)", int(early.BackendRSS>>20), int(late.BackendRSS>>20), (leakMemory+ledgerEntry*streams)>>20)
	c = check(CheckLeaks, "growth of the backend", "none", append(reasons, "none")[0], len(reasons) == 0, reasons...)
	t = newTable("The backend, early and late",
		fmt.Sprintf("maximum from 20 to %.0f %% of the run, and from 60 to 90 %%; the backend's ledger may keep %d bytes per stream", 100*earlyEnd, ledgerEntry), "|early|late")
	t.Add(row("streams", early.Streams, late.Streams)...)
	t.Add(row("other descriptors", early.Files, late.Files)...)
	t.Add(row("goroutines", early.Goroutines, late.Goroutines)...)
	t.Add("memory", format.Bytes(early.BackendRSS), format.Bytes(late.BackendRSS))
	return c, t, true
}

// peakUsage returns the maximum usage of the backend in a part of the run. from and to are shares of the run's
// duration. Files excludes the descriptors of streams.
func peakUsage(samples []resources.Sample, m *shard.Merged, from, to float64) (u resources.Sample, ok bool) {
	if len(m.Runners) == 0 {
		return u, false
	}
	begin, length := m.Runners[0].Started(), float64(m.Runners[0].EndedUS-m.Runners[0].StartedUS)/1e6
	for _, s := range samples {
		at := time.Unix(s.Unix, 0).Sub(begin).Seconds() / length
		if at < from || at >= to || s.BackendRSS == 0 {
			continue
		}
		ok = true
		u.Files, u.Goroutines = max(u.Files, s.Files-s.Streams), max(u.Goroutines, s.Goroutines)
		u.BackendRSS, u.Streams = max(u.BackendRSS, s.BackendRSS), max(u.Streams, s.Streams)
	}
	return u, ok
}

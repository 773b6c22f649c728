package suite

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/resources"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

var churn = Suite{
	Name:   "churn",
	Short:  "let event streams come and go all the time, and account for every noop of each",
	Script: []string{"load-tests", "sse", "churn.js"},
	Settings: slices.Concat([]Setting{
		{"CONNECTIONS", "streams at a time"},
		{"MEAN_HOLD", "seconds that a stream is held, on average (exponential)"},
		{"SECONDS", "length of the run"},
	}, streamSettings, []Setting{{"SEED", "seed of the random hold times: the same seed draws the same ones"}}),
	Target: Target{Streams: true},
	Page:   Page{Doc: "docs/suites.md"},
	Assess: assessChurn,
}

func assessChurn(r *Run) verdict.Assessment {
	m, streams := r.Rounds[0], r.streams()
	planned := streams.Connections.Planned
	a := verdict.Assessment{
		Streams: streams,
		Facts: append([]verdict.Fact{
			{Name: "lifetimes", Value: fmt.Sprintf("%s connections, %s at a time, %v s each on average", format.Thousands(planned), count(r.number("CONNECTIONS")), r.number("MEAN_HOLD"))},
		}, streamFacts(streams, m)...),
		Passed: []string{fmt.Sprintf("%s connections came and went, %s of %s noops received", format.Thousands(planned), format.Thousands(streams.Messages.Received), format.Thousands(streams.Messages.Expected))},
		Checks: slices.Concat([]verdict.Check{everyStream(m)}, streams.Faults(), streams.Agreement()),
		Tables: []verdict.Table{lifetimeTable(m, streams)},
		Metrics: []verdict.Metric{
			{Name: "connect p99", Unit: "ms", Value: streams.ConnectMS.P99}, {Name: "lateness p99", Unit: "ms", Value: streams.LatenessMS.P99},
		},
	}
	if leak, table, ok := leaks(r, m, planned); ok {
		a.Checks, a.Tables = append(a.Checks, leak), append(a.Tables, table)
		a.Passed[0] += ", nothing leaked"
	}
	if seconds := r.number("SECONDS"); seconds > 0 {
		a.Facts = append(a.Facts, verdict.Fact{Name: "churn", Value: fmt.Sprintf("%s connects and as many disconnects per second", count(float64(planned)/seconds))})
	}
	return a
}

// lifetimeTable shows that noops of short connections are counted as well as those of long ones.
func lifetimeTable(m *shard.Merged, streams *verdict.Streams) verdict.Table {
	interval := m.Plan.Interval()
	t := verdict.Table{Title: "Connections by lifetime", Columns: []string{"noop intervals", "connections", "noops received", "missed", "duplicated", "not ended well"}}
	from := time.Duration(0)
	for _, group := range []struct {
		title string
		below time.Duration
	}{{"under 1 interval", interval}, {"1 to 3", 3 * interval}, {"3 to 10", 10 * interval}, {"10 and more", 1 << 62}} {
		var sum ledger.Counts
		connections, bad := 0, 0
		for c := range streams.Records() {
			if c.Held < from || c.Held >= group.below {
				continue
			}
			connections++
			sum.Add(c.Counts)
			if c.State != ledger.Completed {
				bad++
			}
		}
		t.Add(group.title, format.Thousands(connections), format.Thousands(sum.Received), format.Thousands(sum.Missed()), format.Thousands(sum.Duplicated), format.Thousands(bad))
		from = group.below
	}
	return t
}

// How much more a backend may use late in a run than early. ofEachStream is for its ledger, which keeps an entry per
// stream.
const (
	leakFiles      = 32
	leakGoroutines = 32
	leakMemory     = 8 << 20
	ofEachStream   = 400
)

// leaks compares what the backend uses late in the run with what it uses early, both while all streams are open. It is
// not ok if the backend does not report its usage.
func leaks(r *Run, m *shard.Merged, streams int) (c verdict.Check, t verdict.Table, ok bool) {
	early, some := most(r.Samples, m, .2, .4)
	late, more := most(r.Samples, m, .6, .9)
	if !some || !more {
		return c, t, false
	}
	c = verdict.Check{ID: CheckLeaks, Name: "nothing leaks", Limit: "no growth", Why: "what is left of each connection adds up until the service falls over"}
	grew := func(what string, from, to, more int) {
		if to > from+more {
			c.Reasons = append(c.Reasons, fmt.Sprintf("%s of the backend grew from %d to %d, and %d are in order", what, from, to, more))
		}
	}
	grew("descriptors beside the streams", early.Files, late.Files, leakFiles)
	grew("goroutines", early.Goroutines, late.Goroutines, leakGoroutines)
	grew("MiB of memory", int(early.BackendRSS>>20), int(late.BackendRSS>>20), (leakMemory+ofEachStream*streams)>>20)
	c.Pass, c.Actual = len(c.Reasons) == 0, cmp.Or(append(c.Reasons, "none")...)
	t = verdict.Table{
		Title:   "The backend, early and late",
		Note:    fmt.Sprintf("the most from 20 to 40 %% of the run, and from 60 to 90 %%; its ledger may keep %d bytes of each stream", ofEachStream),
		Columns: []string{"", "early", "late"},
		Rows: [][]string{
			{"streams", format.Thousands(early.Streams), format.Thousands(late.Streams)},
			{"descriptors beside them", format.Thousands(early.Files), format.Thousands(late.Files)},
			{"goroutines", format.Thousands(early.Goroutines), format.Thousands(late.Goroutines)},
			{"memory", format.Bytes(early.BackendRSS), format.Bytes(late.BackendRSS)},
		},
	}
	return c, t, true
}

// most is the largest usage of the backend between two shares of the run. Files leaves out the descriptors of streams.
func most(samples []resources.Sample, m *shard.Merged, from, to float64) (u resources.Sample, ok bool) {
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

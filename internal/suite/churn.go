package suite

import (
	"fmt"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/resources"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// noopIntervalSetting is of every suite that holds streams: the backend that soak starts has it too.
var noopIntervalSetting = Setting{"NOOP_INTERVAL", "seconds between two noops of one stream"}

var churn = Suite{
	Name:   "churn",
	Short:  "let event streams come and go all the time, and account for every noop of each",
	Script: []string{"load-tests", "sse", "churn.js"},
	Settings: []Setting{
		{"CONNECTIONS", "streams at a time"},
		{"MEAN_HOLD", "seconds that a stream is held, on average (exponential)"},
		{"SECONDS", "length of the run"},
		noopIntervalSetting,
		{"LATE_MS", "milliseconds above which a noop counts as late"},
		{"END_TIMEOUT", "seconds that a stream may take to end after the server answered the DELETE"},
		{"SEED", "seed of the random hold times: the same seed draws the same ones"},
	},
	Streams: true, Runners: 2, Doc: "docs/stream-suites.md",
	Assess: assessChurn,
}

func assessChurn(r *Run) verdict.Assessment {
	m, account := r.Rounds[0], r.streams()
	lives := account.Connections.Planned
	seconds := r.number("SECONDS")
	a := verdict.Assessment{
		Streams: account,
		Facts: append([]verdict.Fact{
			{Name: "lives", Value: fmt.Sprintf("%s, %s at a time, %v s each on average", format.Thousands(lives), count(r.number("CONNECTIONS")), r.number("MEAN_HOLD"))},
		}, streamFacts(account, m)...),
		Passed:   []string{fmt.Sprintf("%s lives came and went, %s of %s noops received, nothing leaked", format.Thousands(lives), format.Thousands(account.Noops.Received), format.Thousands(account.Noops.Expected))},
		Criteria: append([]verdict.Criterion{everyStream(m)}, slices.Concat(account.Faults(), account.Agreement())...),
		Tables:   []verdict.Table{lifeTable(m, account)},
	}
	if leak, table, ok := leaks(r, m, lives); ok {
		a.Criteria, a.Tables = append(a.Criteria, leak), append(a.Tables, table)
	}
	a.Metrics = []verdict.Metric{
		{Name: "connect p99", Unit: "ms", Value: account.ConnectMS.P99}, {Name: "lateness p99", Unit: "ms", Value: account.LatenessMS.P99},
	}
	if seconds > 0 {
		a.Facts = append(a.Facts, verdict.Fact{Name: "churn", Value: fmt.Sprintf("%s connects and as many disconnects per second", count(float64(lives)/seconds))})
	}
	return a
}

// lifeTable shows that short lives are accounted for as well as long ones.
func lifeTable(m *shard.Merged, account *verdict.Streams) verdict.Table {
	interval := m.Plan.Interval()
	groups := []struct {
		title string
		below time.Duration
	}{{"under 1 interval", interval}, {"1 to 3", 3 * interval}, {"3 to 10", 10 * interval}, {"10 and more", 1 << 62}}
	t := verdict.Table{Title: "Lives by length", Columns: []string{"noop intervals", "lives", "noops received", "missed", "duplicated", "not ended well"}}
	sums := make([]struct{ lives, received, missed, duplicated, bad uint64 }, len(groups))
	for c := range account.Records() {
		i := 0
		for c.Held >= groups[i].below {
			i++
		}
		s := &sums[i]
		s.lives++
		s.received += c.Received
		s.missed += c.Missed()
		s.duplicated += c.Duplicated
		if c.State != "completed" {
			s.bad++
		}
	}
	for i, s := range sums {
		t.Rows = append(t.Rows, []string{
			groups[i].title, format.Thousands(s.lives), format.Thousands(s.received), format.Thousands(s.missed), format.Thousands(s.duplicated), format.Thousands(s.bad),
		})
	}
	return t
}

// What a backend may take more at the end than in the beginning: its ledger remembers each life.
const (
	leakFiles      = 32
	leakGoroutines = 32
	leakMemory     = 8 << 20
	memoryOfALife  = 400
)

// A usage is what the backend has beside its open streams.
type usage struct {
	files, goroutines int
	rss               uint64
	streams           int
}

// leaks holds the backend's usage late in the run against that early in it, both while the streams
// were at their full number. It is not ok where the backend does not show it.
func leaks(r *Run, m *shard.Merged, lives int) (c verdict.Criterion, t verdict.Table, ok bool) {
	early, late, ok := earlyAndLate(r.Samples, m)
	if !ok {
		return c, t, false
	}
	allowed := uint64(leakMemory + memoryOfALife*lives)
	var reasons []string
	grew := func(what string, from, to, more int64) {
		if to > from+more {
			reasons = append(reasons, fmt.Sprintf("%s of the backend grew from %d to %d, and %d are in order", what, from, to, more))
		}
	}
	grew("descriptors beside the streams", int64(early.files), int64(late.files), leakFiles)
	grew("goroutines", int64(early.goroutines), int64(late.goroutines), leakGoroutines)
	grew("MiB of memory", int64(early.rss>>20), int64(late.rss>>20), int64(allowed>>20))
	c = verdict.Criterion{
		Name: "nothing leaks", Limit: "no growth", Actual: first(reasons, "none"), Pass: len(reasons) == 0,
		Why:     "what is left of each connection adds up until the service falls over",
		Reasons: reasons,
	}
	t = verdict.Table{
		Title:   "The backend, early and late",
		Note:    fmt.Sprintf("the most from 20 to 40 %% of the run, and from 60 to 90 %%; its ledger may keep %d bytes of each life", memoryOfALife),
		Columns: []string{"", "early", "late"},
		Rows: [][]string{
			{"streams", format.Thousands(early.streams), format.Thousands(late.streams)},
			{"descriptors beside them", format.Thousands(early.files), format.Thousands(late.files)},
			{"goroutines", format.Thousands(early.goroutines), format.Thousands(late.goroutines)},
			{"memory", format.Bytes(early.rss), format.Bytes(late.rss)},
		},
	}
	return c, t, true
}

func earlyAndLate(samples []resources.Sample, m *shard.Merged) (early, late usage, ok bool) {
	if len(m.Runners) == 0 {
		return early, late, false
	}
	begin := m.Runners[0].Started()
	length := float64(m.Runners[0].EndedUS-m.Runners[0].StartedUS) / 1e6
	most := func(from, to float64) (u usage, n int) {
		for _, s := range samples {
			share := time.Unix(s.Unix, 0).Sub(begin).Seconds() / length
			if share < from || share >= to || s.BackendRSS == 0 {
				continue
			}
			n++
			u.files, u.goroutines = max(u.files, s.Files-s.Streams), max(u.goroutines, s.Goroutines)
			u.rss, u.streams = max(u.rss, s.BackendRSS), max(u.streams, s.Streams)
		}
		return u, n
	}
	early, n := most(.2, .4)
	late, k := most(.6, .9)
	return early, late, n > 0 && k > 0
}

func first(list []string, otherwise string) string {
	if len(list) == 0 {
		return otherwise
	}
	return list[0]
}

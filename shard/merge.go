package shard

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/ledger"
	"github.com/sse-soak/sse-soak/plan"
)

// Merged is what all runners saw together. Adding shards is exact: the order and the
// grouping do not matter.
type Merged struct {
	Plan        plan.Plan
	Suite       *Suite   // nil of a soak
	Runners     []Runner // by index
	Connect     *Histogram
	FirstNoop   *Histogram
	Lateness    *Histogram
	Latency     *Latency // Offset 0: each difference above the fastest of its own runner, plus Min where the clocks agree
	Series      []Bucket // by time; sums over the runners, RSS and CPU as well
	Checks      []Check
	Metrics     []Metric
	Connections []Connection // by runner, in the order they were made
	// Problems are sentences that say why the shards are not the whole account of the plan.
	// With a single one the run can be no pass.
	Problems []string
}

// A Connection is a record and the runner whose instants it counts in.
type Connection struct {
	ledger.Record
	Runner int // index into Merged.Runners
}

// Merge adds up the shards of a run. What does not fit the plan becomes a problem; nothing is
// left out silently.
func Merge(p plan.Plan, shards []*Shard) *Merged {
	m := &Merged{Plan: p, Connect: NewHistogram(), FirstNoop: NewHistogram(), Lateness: NewHistogram()}
	shards = slices.Clone(shards)
	slices.SortStableFunc(shards, func(a, b *Shard) int { return cmp.Compare(a.Runner.Index, b.Runner.Index) })
	m.checkRunners(shards)
	if p.Suite != "" {
		m.checkSuite(shards)
	}
	metrics := map[string]*Metric{}
	buckets := map[int64]*bucketSum{}
	for i, s := range shards {
		m.Runners = append(m.Runners, s.Runner)
		m.Connect.Merge(s.Connect)
		m.FirstNoop.Merge(s.FirstNoop)
		m.Lateness.Merge(s.Lateness)
		m.addLatency(s.Latency)
		m.addChecks(s.Checks)
		addMetrics(metrics, s.Metrics)
		for _, r := range s.Connections {
			m.Connections = append(m.Connections, Connection{Record: r, Runner: i})
		}
		m.addSeries(buckets, s)
	}
	m.Series = sortedBuckets(buckets)
	m.Metrics = sortedMetrics(metrics)
	if p.Suite == "" {
		m.checkConnections()
	}
	return m
}

func (m *Merged) problem(format string, args ...any) {
	m.Problems = append(m.Problems, fmt.Sprintf(format, args...))
}

// checkRunners holds the shards against each other and against the plan: all there, each
// once, each ended, of one run and one script, and their segments tile 0 to 1.
func (m *Merged) checkRunners(shards []*Shard) {
	seen := map[int]bool{}
	for _, s := range shards {
		r := s.Runner
		if seen[r.Index] {
			m.problem("runner %d left two shards", r.Index)
		}
		seen[r.Index] = true
		if r.Index > m.Plan.Runners {
			m.problem("runner %d is not one of the %d runners of the plan", r.Index, m.Plan.Runners)
		}
		if r.State != Finished {
			m.problem("runner %d on %s did not finish: %s", r.Index, r.Host, describe(r))
		}
		if m.Plan.TestID != "" && r.TestID != m.Plan.TestID {
			m.problem("the shard of runner %d is of the run %q, not of %q", r.Index, r.TestID, m.Plan.TestID)
		}
		if first := shards[0]; r.ScriptHash != first.Runner.ScriptHash {
			m.problem("runner %d ran another script than runner %d", r.Index, first.Runner.Index)
		}
		if diff := planDifference(m.Plan, s.Plan); m.Plan.Suite == "" && diff != "" {
			m.problem("runner %d ran another plan: %s", r.Index, diff)
		}
	}
	for i := 1; i <= m.Plan.Runners; i++ {
		if !seen[i] {
			m.problem("runner %d of %d left no shard", i, m.Plan.Runners)
		}
	}
	if len(shards) > 0 {
		if gap := tile(shards); gap != "" {
			m.problem("the execution segments do not cover the plan once: %s", gap)
		}
	}
}

func describe(r Runner) string {
	what := map[RunState]string{
		Running:     "it was killed; this is its last checkpoint, " + time.UnixMicro(r.EndedUS).UTC().Format(time.TimeOnly) + " UTC",
		Interrupted: "it was interrupted", Aborted: "it was aborted",
	}[r.State]
	if what == "" {
		what = fmt.Sprintf("its state is %q", r.State)
	}
	if r.Error != "" {
		what += " (" + r.Error + ")"
	}
	return what
}

// planDifference names the first thing in which a script understood the plan differently.
func planDifference(want, got plan.Plan) string {
	for _, f := range []struct {
		name      string
		want, got any
	}{
		{"CONNECTIONS", want.Connections, got.Connections}, {"SECONDS", want.Seconds, got.Seconds},
		{"NOOP_INTERVAL", want.NoopInterval, got.NoopInterval}, {"PREFIX", want.Prefix, got.Prefix},
		{"LATE_MS", want.LateMS, got.LateMS}, {"RECONNECT", want.Reconnect, got.Reconnect},
		{"BACKEND_URL", strings.TrimSuffix(want.BackendURL, "/"), strings.TrimSuffix(got.BackendURL, "/")},
	} {
		if f.want != f.got {
			return fmt.Sprintf("%s is %v, planned was %v", f.name, f.got, f.want)
		}
	}
	return ""
}

// tile says where the segments leave a gap or overlap, "" if they do neither.
func tile(shards []*Shard) string {
	type segment struct{ from, to *big.Rat }
	var all []segment
	for _, s := range shards {
		from, to, ok := strings.Cut(s.Runner.Segment, ":")
		f, fOK := new(big.Rat).SetString(from)
		t, tOK := new(big.Rat).SetString(to)
		if !ok || !fOK || !tOK {
			return fmt.Sprintf("runner %d has the segment %q", s.Runner.Index, s.Runner.Segment)
		}
		all = append(all, segment{f, t})
	}
	slices.SortFunc(all, func(a, b segment) int { return a.from.Cmp(b.from) })
	at := new(big.Rat)
	for _, s := range all {
		if c := s.from.Cmp(at); c != 0 {
			return fmt.Sprintf("%s between %s and %s", map[bool]string{true: "a gap", false: "an overlap"}[c > 0], at.RatString(), s.from.RatString())
		}
		at = s.to
	}
	if at.Cmp(big.NewRat(1, 1)) != 0 {
		return fmt.Sprintf("they end at %s, not at 1", at.RatString())
	}
	return ""
}

// checkConnections holds the ids against the plan: each planned one exactly once.
func (m *Merged) checkConnections() {
	seen := make(map[string]int, len(m.Connections))
	for _, c := range m.Connections {
		seen[c.ID]++
	}
	var missing, twice []string
	for i := range m.Plan.Connections {
		id := m.Plan.DeviceID(i)
		switch seen[id] {
		case 0:
			missing = append(missing, id)
		case 1:
		default:
			twice = append(twice, id)
		}
		delete(seen, id)
	}
	if len(missing) > 0 {
		m.problem("%d of %d planned connections were not observed: %s", len(missing), m.Plan.Connections, some(missing))
	}
	if len(twice) > 0 {
		m.problem("%d connections were observed twice: %s", len(twice), some(twice))
	}
	if len(seen) > 0 {
		foreign := make([]string, 0, len(seen))
		for id := range seen {
			foreign = append(foreign, id)
		}
		slices.Sort(foreign)
		m.problem("%d connections are not of this plan: %s", len(foreign), some(foreign))
	}
}

func some(ids []string) string {
	const most = 5
	if len(ids) <= most {
		return strings.Join(ids, ", ")
	}
	return strings.Join(ids[:most], ", ") + ", …"
}

// addLatency keeps the differences above the fastest noop of each runner, whose clock is one:
// clocks of two hosts cannot be compared more closely than that.
func (m *Merged) addLatency(l *Latency) {
	if l == nil || l.Histogram.Count() == 0 {
		return
	}
	if m.Latency == nil {
		m.Latency = &Latency{MinUS: l.MinUS, Histogram: NewHistogram()}
	}
	m.Latency.MinUS = min(m.Latency.MinUS, l.MinUS)
	m.Latency.Histogram.MergeShifted(l.Histogram, -time.Duration(l.OffsetUS+l.MinUS)*time.Microsecond)
}

func (m *Merged) addChecks(checks []Check) {
	for _, c := range checks {
		i := slices.IndexFunc(m.Checks, func(have Check) bool { return have.Name == c.Name })
		if i < 0 {
			m.Checks = append(m.Checks, c)
			continue
		}
		m.Checks[i].Passes += c.Passes
		m.Checks[i].Fails += c.Fails
	}
	slices.SortFunc(m.Checks, func(a, b Check) int { return cmp.Compare(a.Name, b.Name) })
}

func addMetrics(sums map[string]*Metric, all []Metric) {
	for _, n := range all {
		key := n.key()
		have := sums[key]
		if have == nil {
			if n.Trend != nil {
				own := NewHistogram()
				own.Merge(n.Trend)
				n.Trend = own
			}
			sums[key] = &n
			continue
		}
		have.Sum += n.Sum
		have.Squares += n.Squares
		have.Min, have.Max = min(have.Min, n.Min), max(have.Max, n.Max)
		have.FirstUS, have.LastUS = min(have.FirstUS, n.FirstUS), max(have.LastUS, n.LastUS)
		have.Count += n.Count
		if have.Trend != nil {
			have.Trend.Merge(n.Trend)
		}
	}
}

func sortedMetrics(sums map[string]*Metric) []Metric {
	out := make([]Metric, 0, len(sums))
	for _, key := range slices.Sorted(maps.Keys(sums)) {
		out = append(out, *sums[key])
	}
	return out
}

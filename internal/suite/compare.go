package suite

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// The two targets of a comparison.
const (
	single  = "single"
	cluster = "cluster"
)

var compare = Suite{
	Name:    "compare",
	Short:   "hold one backend against several behind one address, at the same loads",
	Script:  []string{"load-tests", "http", "compare.js"},
	Cluster: true,
	Settings: append([]Setting{
		{"LEVELS", "requests at a time, with commas between"},
		{"LEVEL_REQUESTS", "requests of each level, to each target"},
		{"WARMUP_REQUESTS", "requests of the warm-up, which is not counted"},
		{"SLOWEST", "requests/s that any service reaches: a stage lasts as long as its requests take at this rate"},
		{"CLUSTER_SIZE", "backends of the cluster (3), at --cluster-url or started here"},
	}, limitSettings...),
	Apart:  true,
	Assess: assessCompare,
}

// A Side is what one target did at all levels.
type Side struct {
	Peak        float64 // answers/s at its best level
	P95         float64 // mean of the levels' 95th percentiles, milliseconds
	FailedShare float64 // of all requests
	Evenness    float64 // fewest ÷ most requests of its servers, 1 for one server, 0 where one of them got none
	Limited     bool    // the load generator was saturated at its best level, or may have been: it could do more
	Saturated   bool    // the same at any level: its latencies may be the generator's
}

// ofCluster is how many backends a cluster has where nothing else is said.
const ofCluster = 3

// even is the difference below which nobody wins: that much two runs of the same differ.
const even = .1

// Winner says who is better at a figure, and by how many percent; lower tells that less is better.
func Winner(one, many float64, lower bool) (who, by string) {
	better, worse, who := one, many, single
	if (many > one) != lower {
		better, worse, who = many, one, cluster
	}
	if lower {
		better, worse = worse, better
	}
	switch {
	case one == many, worse > 0 && better/worse-1 < even:
		return "even", "–"
	case worse == 0:
		return who, "–"
	}
	return who, fmt.Sprintf("%.0f %%", 100*(better/worse-1))
}

// Deployment recommends one of the two by these rules, the first that holds:
//
//  1. One fails more than the other by over a percent of its requests: the other.
//  2. The cluster spreads its requests unevenly (the least server gets under 80 % of the most): mend that first.
//  3. The generator was saturated at the lower peak, or may have been: throughput decides nothing; a single backend,
//     unless it must not be lost.
//  4. One peak is over a fifth higher: that one.
//  5. The generator was saturated at the cluster's peak, or may have been: as 3.
//  6. Else a single backend: the cluster buys availability only, for three times the processes.
func Deployment(one, many Side) (choice, why string) {
	switch {
	case many.FailedShare > one.FailedShare+.01:
		return single, fmt.Sprintf("the cluster failed %s of its requests, the single backend %s", percentOf(many.FailedShare), percentOf(one.FailedShare))
	case one.FailedShare > many.FailedShare+.01:
		return cluster, fmt.Sprintf("the single backend failed %s of its requests, the cluster %s", percentOf(one.FailedShare), percentOf(many.FailedShare))
	case many.Evenness < .8:
		return "neither yet", fmt.Sprintf("the cluster's least busy server got %.0f %% of what its busiest got: mend the balancing first", 100*many.Evenness)
	case !peaksTell(one, many):
		return single, undecided
	case many.Peak > 1.2*one.Peak:
		return cluster, fmt.Sprintf("it answers %.0f %% more a second", 100*(many.Peak/one.Peak-1))
	case one.Peak > 1.2*many.Peak:
		return single, fmt.Sprintf("it answers %.0f %% more a second; the cluster only where a backend must be able to fail", 100*(one.Peak/many.Peak-1))
	}
	if many.Limited {
		return single, undecided
	}
	return single, "the cluster is not over a fifth faster; the cluster only where a backend must be able to fail"
}

const undecided = "the load generator was saturated, or may have been, so throughput decides nothing; the cluster only where a backend must be able to fail"

// peaksTell says that the higher of two peaks is the better one: the lower is the most that its
// side can do. The higher may be a lower bound.
func peaksTell(one, many Side) bool {
	if one.Peak < many.Peak {
		return !one.Limited
	}
	return !many.Limited
}

// sideOf sums up what a target of so many servers did. One that never named itself got none.
func sideOf(stages []StageResult, size int) (s Side, sum Total) {
	sum = total(stages)
	s.FailedShare, s.Evenness = sum.FailedShare(), 1
	for _, st := range stages {
		s.P95 += quantile(st.OK, .95) / float64(len(stages))
		limit, _ := st.Machine.Limit()
		s.Saturated = s.Saturated || limit != NoLimit
	}
	if best, ok := peak(stages); ok {
		limit, _ := best.Machine.Limit()
		s.Peak, s.Limited = best.PerSecond(), limit != NoLimit
	}
	switch {
	case len(sum.Servers) == 0:
	case len(sum.Servers) < size:
		s.Evenness = 0
	default:
		counts := slices.Sorted(maps.Values(sum.Servers))
		s.Evenness = share(counts[0], counts[len(counts)-1])
	}
	return s, sum
}

func assessCompare(r *Run) verdict.Assessment {
	every := r.stages()
	all, by := of(every, kindLoad), map[string][]StageResult{}
	for _, st := range all {
		by[st.Target] = append(by[st.Target], st)
	}
	size := cmp.Or(int(r.number("CLUSTER_SIZE")), ofCluster)
	one, oneTotal := sideOf(by[single], 1)
	many, manyTotal := sideOf(by[cluster], size)
	sum, limits := total(all), r.limits()
	choice, why := Deployment(one, many)
	return verdict.Assessment{
		Facts: []verdict.Fact{
			sum.fact(),
			{Name: "peak", Value: fmt.Sprintf("single %s answers/s, cluster %s", count(one.Peak), count(many.Peak))},
			{Name: "deploy", Value: choice + ": " + why},
		},
		Criteria: append([]verdict.Criterion{
			rightAnswers(sum), firstGood("the lowest load is sustained", limits.Try(fixedLevels(by[single]))), everyServer(by[cluster], manyTotal, size), notTheGenerator(all),
		}, r.accounted(every)...),
		Passed: []string{fmt.Sprintf("single %s answers/s, cluster %s; deploy %s: %s", count(one.Peak), count(many.Peak), choice, why)},
		Tables: slices.Concat([]verdict.Table{
			levelTable(by), sideTable(one, many, size), serverTable(oneTotal, manyTotal), fixedTable("Single", limits, by[single]), fixedTable("Cluster", limits, by[cluster]),
		}, endpointTables(all), failures(all, sum), r.resourceTables(every, all)),
		Metrics: []verdict.Metric{
			{Name: "peak answers/s, single", Unit: perSecond, Value: one.Peak, HigherIsBetter: true},
			{Name: "peak answers/s, cluster", Unit: perSecond, Value: many.Peak, HigherIsBetter: true},
			{Name: "p95, single", Unit: "ms", Value: one.P95}, {Name: "p95, cluster", Unit: "ms", Value: many.P95},
		},
	}
}

// everyServer fails a cluster of which a server got nothing, at any level, or whose answers do not say
// which it was.
func everyServer(levels []StageResult, q Total, size int) verdict.Criterion {
	named := slices.Sorted(maps.Keys(q.Servers))
	c := verdict.Criterion{
		Name: "every server of the cluster answers", Limit: fmt.Sprint(size), Actual: fmt.Sprintf("%d named themselves", len(named)), Pass: len(named) == size,
		Why: "a cluster of which one server does all is none; servers name themselves by X-Server",
	}
	switch {
	case len(named) < size && len(named) > 0:
		c.Reasons = []string{fmt.Sprintf("only %d of the %d servers of the cluster answered (%s): CLUSTER_SIZE says how many there are", len(named), size, strings.Join(named, ", "))}
	case len(named) > size:
		c.Invalid = true
		c.Reasons = []string{fmt.Sprintf("%d servers answered (%s), CLUSTER_SIZE says that there are %d: it is wrong, or one took the place of another", len(named), strings.Join(named, ", "), size)}
	}
	for _, st := range levels {
		if st.OK.Count() < leastOfServer*int64(size) {
			continue // so few may all have gone to others
		}
		for _, server := range named {
			if st.Servers[server] == 0 {
				c.Pass = false
				c.Actual += fmt.Sprintf(", %s was silent at %d at a time", server, st.Concurrency)
				c.Reasons = append(c.Reasons, fmt.Sprintf("%s answered none of %s requests to the cluster at %d at a time", server, format.Thousands(st.OK.Count()), st.Concurrency))
			}
		}
	}
	return c
}

// leastOfServer is how many answers for each server make it plain that one got none.
const leastOfServer = 30

// duel adds a row that compares the two; sure says whether a winner can be named.
func duel(t *verdict.Table, sure bool, one, many float64, lower bool, text func(float64) string, name ...string) {
	who, by := Winner(one, many, lower)
	if !sure {
		who, by = "unsure", "–"
	}
	t.Add(append(name, text(one), text(many), who, by)...)
}

// levelTable compares the two level by level.
func levelTable(of map[string][]StageResult) verdict.Table {
	t := verdict.Table{
		Title: "Level by level", Note: fmt.Sprintf("the winner by at least %.0f %%, else even; unsure where the load generator was saturated at one of the two, or may have been", 100*even),
		Columns: []string{"at a time", "figure", single, cluster, "winner", "by"},
	}
	for _, st := range of[single] {
		i := slices.IndexFunc(of[cluster], func(other StageResult) bool { return other.Concurrency == st.Concurrency })
		if i < 0 {
			continue
		}
		other, at := of[cluster][i], fmt.Sprint(st.Concurrency)
		oneLimit, _ := st.Machine.Limit()
		manyLimit, _ := other.Machine.Limit()
		sure := oneLimit == NoLimit && manyLimit == NoLimit
		duel(&t, sure, st.PerSecond(), other.PerSecond(), false, count, at, "answers/s")
		duel(&t, sure, quantile(st.OK, .5), quantile(other.OK, .5), true, ms, at, "p50")
		duel(&t, sure, quantile(st.OK, .95), quantile(other.OK, .95), true, ms, at, "p95")
		duel(&t, true, st.FailedShare(), other.FailedShare(), true, percentOf, at, "failed")
	}
	return t
}

// sideTable is what one gains and what one pays.
func sideTable(one, many Side, size int) verdict.Table {
	t := verdict.Table{Title: "In all: what is gained and what is paid", Columns: []string{"figure", single, cluster, "winner", "by"}}
	duel(&t, peaksTell(one, many), one.Peak, many.Peak, false, count, "throughput: peak answers/s")
	duel(&t, !one.Saturated && !many.Saturated, one.P95, many.P95, true, ms, "latency: mean of the p95")
	duel(&t, true, one.FailedShare, many.FailedShare, true, percentOf, "reliability: failed")
	t.Add("evenness: least ÷ most", "–", percentOf(many.Evenness), "–", "–")
	t.Add("backends to run", "1", fmt.Sprint(size), single, "–")
	t.Add("backends that may fail", "0", fmt.Sprint(size-1), cluster, "–")
	return t
}

// serverTable is who answered how many.
func serverTable(one, many Total) verdict.Table {
	t := verdict.Table{Title: "Answers by server", Note: "as servers name themselves (X-Server)", Columns: []string{"target", "server", "answers", "share"}}
	add := func(target string, q Total) {
		var sum int64
		for _, n := range q.Servers {
			sum += n
		}
		for _, server := range slices.Sorted(maps.Keys(q.Servers)) {
			t.Add(target, server, format.Thousands(q.Servers[server]), percentOf(share(q.Servers[server], sum)))
		}
	}
	add(single, one)
	add(cluster, many)
	return t
}

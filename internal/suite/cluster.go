package suite

import (
	"cmp"
	"fmt"
	"maps"
	"math"
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

var clusterSuite = Suite{
	Name:   "cluster",
	Short:  "hold one backend against several behind one address, at the same loads",
	Script: []string{"load-tests", "http", "cluster.js"},
	Settings: append([]Setting{
		{"LEVELS", "requests at a time, with commas between"},
		{"ROUNDS", "rounds of all levels, in each of which both targets have their turn"},
		{"ROUND_SECONDS", "seconds of each level, target and round; under 2 nobody knows what was the limit"},
		{"WARMUP_SECONDS", "seconds of the warm-up of each target, which is not counted"},
		{"CLUSTER_SIZE", "backends of the cluster (3), at --cluster-url or started here"},
	}, limitSettings...),
	Target: Target{Kind: Cluster, OwnCores: true},
	Page:   Page{Doc: httpDoc},
	Assess: assessCompare,
}

// A Side is what one target did at all levels.
type Side struct {
	Peak        float64 // answers/s at its best level
	P95         float64 // mean of the levels' 95th percentiles, milliseconds
	FailedShare float64 // of all requests
	Evenness    float64 // fewest ÷ most requests of its servers, 1 for one server, 0 where one of them got none

	best   roundLevel   // its best level
	levels []roundLevel // all of them
}

// ofCluster is how many backends a cluster has where nothing else is said.
const ofCluster = 3

// Deployment recommends one of the two by these rules, the first that holds; peaks is the contest of the answers/s at each one's
// best level:
//
//  1. One fails more than the other by over a percent of its requests: the other.
//  2. The cluster spreads its requests unevenly (the least server gets under 80 % of the most): fix that first.
//  3. The cluster's peak wins, and is over a fifth higher: the cluster.
//  4. Else a single backend: the cluster buys availability only, for three times the processes.
func Deployment(one, many Side, peaks Contest) (choice, why string) {
	const unless = "; the cluster only where a backend must be able to fail"
	switch {
	case many.FailedShare > one.FailedShare+much:
		return single, fmt.Sprintf("the cluster failed %s of its requests, the single backend %s", percentOf(many.FailedShare), percentOf(one.FailedShare))
	case one.FailedShare > many.FailedShare+much:
		return cluster, fmt.Sprintf("the single backend failed %s of its requests, the cluster %s", percentOf(one.FailedShare), percentOf(many.FailedShare))
	case many.Evenness < .8:
		return "neither yet", fmt.Sprintf("the cluster's least busy server got %.0f %% of what its busiest got: fix the balancing first", 100*many.Evenness)
	case peaks.Winner == cluster && many.Peak > 1.2*one.Peak:
		return cluster, fmt.Sprintf("it answers %s more a second", peaks.By)
	case peaks.Winner == cluster:
		return single, "the cluster is not over a fifth faster" + unless
	case peaks.Winner == single:
		return single, fmt.Sprintf("it answers %s more a second%s", peaks.By, unless)
	}
	return single, "throughput decides nothing" + unless
}

// much is how much more of its requests one has to fail than the other to be the worse one.
const much = .01

// sideOf sums up what a target of so many servers did. One that never named itself got none.
func sideOf(stages []StageResult, size int) (s Side, sum Total) {
	sum, s.levels = total(stages), byLevel(stages)
	s.FailedShare, s.Evenness = sum.FailedShare(), 1
	for _, level := range s.levels {
		s.P95 += quantile(level.OK, .95) / float64(len(s.levels))
		if level.PerSecond() > s.Peak {
			s.Peak, s.best = level.PerSecond(), level
		}
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

// stages are the levels, all rounds of each together.
func (s *Side) stages() (out []StageResult) {
	for _, level := range s.levels {
		out = append(out, level.StageResult)
	}
	return out
}

// p95s are, of each round, the mean of the levels' 95th percentiles.
func (s *Side) p95s() (out []float64) {
	for _, level := range s.levels {
		for i, p95 := range level.values(p95) {
			if i == len(out) {
				out = append(out, 0)
			}
			out[i] += p95 / float64(len(s.levels))
		}
	}
	return out
}

func p50(st *StageResult) float64         { return quantile(st.OK, .5) }
func p95(st *StageResult) float64         { return quantile(st.OK, .95) }
func perSecondOf(st *StageResult) float64 { return st.PerSecond() }

// anyUnfit is the first reason why some level of the two cannot be compared.
func anyUnfit(one, many Side) Unfit {
	for i := range min(len(one.levels), len(many.levels)) {
		if no := unfit(one.levels[i].Machine, many.levels[i].Machine); no.Why != "" {
			return no
		}
	}
	return Unfit{}
}

func assessCompare(r *Run) verdict.Assessment {
	every := r.stages()
	loads, by := of(every, kindLoad), map[string][]StageResult{}
	for _, st := range loads {
		by[st.Target] = append(by[st.Target], st)
	}
	size := cmp.Or(int(r.number("CLUSTER_SIZE")), ofCluster)
	one, oneTotal := sideOf(by[single], 1)
	many, manyTotal := sideOf(by[cluster], size)
	all := append(one.stages(), many.stages()...)
	sum, limits := total(loads), r.limits()
	peaks := Decide(one.best.values(perSecondOf), many.best.values(perSecondOf), false, unfit(one.best.Machine, many.best.Machine))
	choice, why := Deployment(one, many, peaks)
	ofOne, ofMany := StageResult{Requests: oneTotal.Requests}, StageResult{Requests: manyTotal.Requests}
	return verdict.Assessment{
		Facts: []verdict.Fact{
			sum.fact(),
			{Name: "peak", Value: fmt.Sprintf("single %s answers/s%s; cluster %s%s", count(one.Peak), atPeak(one), count(many.Peak), atPeak(many))},
			{Name: "winner", Value: peaks.Sentence()},
			{Name: "deploy", Value: choice + ": " + why},
		},
		Checks: append([]verdict.Check{
			rightAnswers(sum, every), firstGood("the lowest load is sustained", limits.Try(limits.fixedLevels(one.stages()))), everyServer(many.stages(), manyTotal, size), notTheGenerator(all),
		}, r.accounted(every)...),
		Passed: []string{fmt.Sprintf("single %s answers/s, cluster %s; %s; deploy %s: %s", count(one.Peak), count(many.Peak), peaks.Sentence(), choice, why)},
		Tables: slices.Concat([]verdict.Table{
			levelTable(one, many), sideTable(one, many, peaks, size), serverTable(oneTotal, manyTotal), fixedTable("Single", limits, one.stages()), fixedTable("Cluster", limits, many.stages()),
		}, endpointTables(loads), failureTables(all, sum), r.resourceTables(every, all)),
		Metrics: slices.Concat([]verdict.Metric{one.rate("peak answers/s, single"), many.rate("peak answers/s, cluster")},
			ofOne.timeMetrics("of single", false), ofMany.timeMetrics("of cluster", false)),
	}
}

// rate is the side's peak, to be compared with other runs.
func (s *Side) rate(name string) verdict.Metric {
	if s.Peak == 0 {
		return verdict.Metric{Name: name, Unit: perSecond, HigherIsBetter: true}
	}
	return s.best.rateMetric(name)
}

// atPeak says with how many at a time a side was at its peak, and what the peak is worth.
func atPeak(s Side) string {
	if s.Peak == 0 {
		return ""
	}
	return fmt.Sprintf(" with %d at a time%s", s.best.Concurrency, bound(s.best.StageResult))
}

// everyServer fails a cluster of which a server got nothing, at any level, or whose answers do not say
// which it was.
func everyServer(levels []StageResult, q Total, size int) verdict.Check {
	named := slices.Sorted(maps.Keys(q.Servers))
	c := verdict.Check{
		ID: CheckServers, Name: "every server of the cluster answers", Limit: fmt.Sprint(size), Actual: fmt.Sprintf("%d named themselves", len(named)), Pass: len(named) == size,
		Why: "a cluster of which one server does all is none; servers name themselves by X-Server",
	}
	switch {
	case len(named) < size && len(named) > 0:
		c.Reasons = []string{fmt.Sprintf("only %d of the %d servers of the cluster answered (%s): CLUSTER_SIZE says how many there are", len(named), size, few(named))}
	case len(named) > size:
		c.Severity = verdict.SeverityInconclusive
		c.Reasons = []string{fmt.Sprintf("%d servers answered (%s), CLUSTER_SIZE says that there are %d: it is wrong, or one took the place of another", len(named), few(named), size)}
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

// few are names in a sentence, in which thousands have no place.
func few(names []string) string {
	const most = 20
	if len(names) > most {
		return fmt.Sprintf("%s and %s more", strings.Join(names[:most], ", "), format.Thousands(len(names)-most))
	}
	return strings.Join(names, ", ")
}

// leastOfServer is how many answers for each server make it plain that one got none.
const leastOfServer = 30

// columns of a table that compares the two, behind what is compared.
var duels = []string{single, cluster, "difference", "winner", "by"}

// row is who won, and with which figures.
func (c Contest) row(one, many string) []string {
	if c.Winner == "" {
		return []string{one, many, c.Interval, "none", c.Briefly}
	}
	return []string{one, many, c.Interval, c.Winner, c.By}
}

// fewerFailed compares shares of requests that failed, of which chance is no part.
func fewerFailed(one, many float64) Contest {
	c := Contest{Interval: "–", Briefly: "little"}
	if math.Abs(one-many) > much {
		c.Winner, c.By = cluster, percentOf(one-many)
		if many > one {
			c.Winner, c.By = single, percentOf(many-one)
		}
	}
	return c
}

// levelTable compares the two level by level.
func levelTable(one, many Side) verdict.Table {
	t := verdict.Table{
		Title: "Level by level",
		Note: fmt.Sprintf("difference: of the cluster from the single backend, %.0f %% interval by Student's t over the rounds; a winner is better by %.0f %% or more "+
			"(else little), the interval leaves 0 out (else chance), and the load generator was the limit of neither; failed: by over %.0f %% of the requests", 100*confidence, 100*even, 100*much),
		Columns: append([]string{"at a time", "figure"}, duels...),
	}
	for _, a := range one.levels {
		i := slices.IndexFunc(many.levels, func(other roundLevel) bool { return other.Concurrency == a.Concurrency })
		if i < 0 {
			continue
		}
		b, at := many.levels[i], fmt.Sprint(a.Concurrency)
		no := unfit(a.Machine, b.Machine)
		add := func(name string, c Contest, x, y string) { t.Add(append([]string{at, name}, c.row(x, y)...)...) }
		add("answers/s", Decide(a.values(perSecondOf), b.values(perSecondOf), false, no), count(a.PerSecond()), count(b.PerSecond()))
		add("p50", Decide(a.values(p50), b.values(p50), true, no), ms(p50(&a.StageResult)), ms(p50(&b.StageResult)))
		add("p95", Decide(a.values(p95), b.values(p95), true, no), ms(p95(&a.StageResult)), ms(p95(&b.StageResult)))
		add("failed", fewerFailed(a.FailedShare(), b.FailedShare()), percentOf(a.FailedShare()), percentOf(b.FailedShare()))
	}
	return t
}

// sideTable is what one gains and what one pays.
func sideTable(one, many Side, peaks Contest, size int) verdict.Table {
	t := verdict.Table{Title: "In all: what is gained and what is paid", Columns: append([]string{"figure"}, duels...)}
	add := func(name string, c Contest, x, y string) { t.Add(append([]string{name}, c.row(x, y)...)...) }
	add("peak answers/s", peaks, count(one.Peak), count(many.Peak))
	add("mean of the p95", Decide(one.p95s(), many.p95s(), true, anyUnfit(one, many)), ms(one.P95), ms(many.P95))
	add("failed", fewerFailed(one.FailedShare, many.FailedShare), percentOf(one.FailedShare), percentOf(many.FailedShare))
	t.Add("least ÷ most busy", "–", percentOf(many.Evenness), "–", "–", "–")
	t.Add("backends", "1", fmt.Sprint(size), "–", single, "–")
	t.Add("may fail", "0", fmt.Sprint(size-1), "–", cluster, "–")
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

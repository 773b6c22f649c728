package suite

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/aclements/go-moremath/stats"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// The two targets that are compared.
const (
	single  = "single"
	cluster = "cluster"
)

var clusterSuite = Suite{
	Name:   "cluster",
	Short:  "compare one backend with several behind one address, at the same loads",
	Script: []string{"load-tests", "http", "cluster.js"},
	Settings: append([]Setting{
		{"LEVELS", "numbers of concurrent requests, separated by commas"},
		{"ROUNDS", "number of rounds; in each, both targets run all levels in turn"},
		{"ROUND_SECONDS", "duration of each level, target and round in seconds; below 2 the limit is unknown"},
		{"WARMUP_SECONDS", "duration of the warm-up of each target in seconds, which is not counted"},
		{"CLUSTER_SIZE", "number of backends of the cluster (3), at --cluster-url or started here"},
	}, limitSettings...),
	Target: Target{Kind: Cluster, OwnCores: true},
	Page:   Page{Doc: httpDoc},
	Assess: assessCluster,
}

const (
	clusterSize   = 3   // backends, unless CLUSTER_SIZE is set
	minGain       = .1  // difference that a winner has to exceed, however certain it is
	confidence    = .95 // of the interval of a difference
	failureMargin = .01 // share of the requests by which a worse target fails more of them
	minEven       = .8  // requests of the least busy server ÷ those of the busiest
	worthCluster  = 1.2 // peak of a cluster ÷ peak of a single backend that makes up for its costs
)

// A Side is one target at all levels.
type Side struct {
	Peak        float64 // answers/s at its best level
	P95         float64 // mean of the levels' 95th percentiles, milliseconds
	FailedShare float64 // of all requests
	Evenness    float64 // fewest ÷ most requests of its servers, 1 for one server, 0 if one of them got none

	bestLevel roundLevel // its best level
	levels    []roundLevel
}

// sideOf sums up a target of size servers. A server that never named itself got no request.
func sideOf(stages []StageResult, size int) (s Side, sum Total) {
	sum, s.levels = total(stages), byLevel(stages)
	s.FailedShare, s.Evenness = sum.FailedShare(), 1
	for _, level := range s.levels {
		s.P95 += p95(&level.StageResult) / float64(len(s.levels))
		if level.PerSecond() > s.Peak {
			s.Peak, s.bestLevel = level.PerSecond(), level
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

// stages returns the levels, each with all of its rounds.
func (s *Side) stages() (out []StageResult) {
	for _, level := range s.levels {
		out = append(out, level.StageResult)
	}
	return out
}

// p95s returns, for each round, the mean of the levels' 95th percentiles.
func (s *Side) p95s() (out []float64) {
	for _, level := range s.levels {
		for i, v := range level.values(p95) {
			if i == len(out) {
				out = append(out, 0)
			}
			out[i] += v / float64(len(s.levels))
		}
	}
	return out
}

// peakMetric returns the peak, to be compared with other runs.
func (s *Side) peakMetric(name string) verdict.Metric {
	if s.Peak == 0 {
		return verdict.Metric{Name: name, Unit: perSecond, HigherIsBetter: true}
	}
	return s.bestLevel.rateMetric(name)
}

// peakText states the concurrency of the peak, and what limited it.
func (s *Side) peakText() string {
	if s.Peak == 0 {
		return ""
	}
	return fmt.Sprintf(" with %d at a time%s", s.bestLevel.Concurrency, boundText(s.bestLevel.StageResult))
}

func p50(st *StageResult) float64         { return quantile(st.OK, .5) }
func p95(st *StageResult) float64         { return quantile(st.OK, .95) }
func perSecondOf(st *StageResult) float64 { return st.PerSecond() }

// A Comparison states which of the two targets is better at a figure, if that can be told.
//
// Both are measured in rounds that alternate. The difference of a round is that of the logarithms, so that the order of the two
// does not matter, and conditions that both shared in a round cancel out. Its mean over the rounds has an interval by Student's
// t: as in benchstat, many short rounds are better than a long one, and a difference that chance explains is none. The limit of
// the load generator comes first.
type Comparison struct {
	Winner   string // single or cluster; "": none
	Margin   string // how much better the winner is
	Interval string // difference of the cluster from the single backend, 95 %
	None     Reason // why there is no winner
}

// A Reason is a cause as a sentence, and in a word for a table.
type Reason struct{ Sentence, Word string }

// Compare names the better one of two by a figure of each round; lower: less is better. A reason why the two cannot be compared,
// if there is one, outranks any difference.
func Compare(one, several []float64, lower bool, incomparable Reason) Comparison {
	n := min(len(one), len(several))
	logs := make([]float64, 0, n)
	for i := range n {
		if one[i] > 0 && several[i] > 0 {
			logs = append(logs, math.Log(several[i]/one[i]))
		}
	}
	if len(logs) < 2 || len(logs) < n {
		return Comparison{Interval: "–", None: Reason{"a difference requires two rounds or more, with an answer in each", "few rounds"}}
	}
	mean, low, high := stats.MeanCI(logs, confidence)
	c := Comparison{Interval: signedPercent(low) + " … " + signedPercent(high)}
	factor := math.Exp(math.Abs(mean))
	switch {
	case incomparable.Sentence != "":
		c.None = incomparable
	case low <= 0 && high >= 0:
		c.None = Reason{"chance explains it", "chance"}
	case factor-1 < minGain:
		c.None = Reason{"under " + percent(minGain), "little"}
	default:
		c.Margin = percent(factor - 1)
		if c.Winner = cluster; (mean > 0) == lower {
			c.Winner = single
		}
	}
	return c
}

// compareFailures compares shares of failed requests, which do not vary by chance.
func compareFailures(one, several float64) Comparison {
	switch {
	case one-several > failureMargin:
		return Comparison{Interval: "–", Winner: cluster, Margin: percentOf(one - several)}
	case several-one > failureMargin:
		return Comparison{Interval: "–", Winner: single, Margin: percentOf(several - one)}
	}
	return Comparison{Interval: "–", None: Reason{Word: "little"}}
}

// signedPercent formats a difference of logarithms in percent.
func signedPercent(log float64) string {
	share := 100 * (math.Exp(log) - 1)
	if math.IsInf(share, 0) || share >= 1000 {
		return ">+999 %"
	}
	return fmt.Sprintf("%+.0f %%", share)
}

// Sentence names the winner, or the reason why there is none.
func (c Comparison) Sentence() string {
	switch {
	case c.Winner != "":
		return fmt.Sprintf("winner: %s by %s (interval of the difference: %s)", c.Winner, c.Margin, c.Interval)
	case c.Interval == "–":
		return "no winner: " + c.None.Sentence
	}
	return fmt.Sprintf("no winner: the interval of the difference is %s; %s", c.Interval, c.None.Sentence)
}

// incomparable returns the reason why some level cannot be compared: the load generator was saturated, or may have been.
func incomparable(one, several []roundLevel) Reason {
	for i := range min(len(one), len(several)) {
		for _, side := range []struct {
			name  string
			level roundLevel
		}{{"the single backend", one[i]}, {"the cluster", several[i]}} { // #nosec G602 -- i is below both lengths
			switch limit, reason := side.level.Machine.Limit(); limit {
			case LimitGenerator:
				return Reason{fmt.Sprintf("the load generator was saturated at %s (%s)", side.name, reason), "generator"}
			case LimitUnknown:
				return Reason{fmt.Sprintf("the limit at %s is not known (%s)", side.name, reason), "not known"}
			}
		}
	}
	return Reason{}
}

// Deployment recommends one of the two by the first of these rules that holds:
//
//  1. One fails over a percent more of its requests: the other.
//  2. The cluster spreads its requests unevenly (the least busy server gets under 80 % of the busiest): fix that first.
//  3. The cluster's peak wins, and is over a fifth higher: the cluster.
//  4. Else a single backend: the cluster buys availability only, for several times the processes.
func Deployment(one, several Side, peaks Comparison) (choice, reason string) {
	const unless = "; the cluster only where a backend must be able to fail"
	failures := compareFailures(one.FailedShare, several.FailedShare)
	switch {
	case failures.Winner == single:
		return single, fmt.Sprintf("the cluster failed %s of its requests, the single backend %s", percentOf(several.FailedShare), percentOf(one.FailedShare))
	case failures.Winner == cluster:
		return cluster, fmt.Sprintf("the single backend failed %s of its requests, the cluster %s", percentOf(one.FailedShare), percentOf(several.FailedShare))
	case several.Evenness < minEven:
		return "neither yet", fmt.Sprintf("the cluster's least busy server got %s of what its busiest got: fix the balancing first", percent(several.Evenness))
	case peaks.Winner == cluster && several.Peak > worthCluster*one.Peak:
		return cluster, fmt.Sprintf("it answers %s more a second", peaks.Margin)
	case peaks.Winner == cluster:
		return single, "the cluster is not over a fifth faster" + unless
	case peaks.Winner == single:
		return single, fmt.Sprintf("it answers %s more a second%s", peaks.Margin, unless)
	}
	return single, "throughput decides nothing" + unless
}

func assessCluster(r *Run) verdict.Assessment {
	stages := r.stages()
	loads, by := ofKinds(stages, kindLoad), map[string][]StageResult{}
	for _, st := range loads {
		by[st.Target] = append(by[st.Target], st)
	}
	size := cmp.Or(int(r.number("CLUSTER_SIZE")), clusterSize)
	one, oneTotal := sideOf(by[single], 1)
	several, manyTotal := sideOf(by[cluster], size)
	all := append(one.stages(), several.stages()...)
	sum, limits := total(loads), r.limits()
	peaks := Compare(one.bestLevel.values(perSecondOf), several.bestLevel.values(perSecondOf), false, incomparable([]roundLevel{one.bestLevel}, []roundLevel{several.bestLevel}))
	choice, reason := Deployment(one, several, peaks)
	ofOne, ofMany := StageResult{Requests: oneTotal.Requests}, StageResult{Requests: manyTotal.Requests}
	return verdict.Assessment{
		Facts: []verdict.Fact{
			sum.fact(),
			{Name: "peak", Value: sentence("single %v answers/s%s; cluster %v%s", one.Peak, one.peakText(), several.Peak, several.peakText())},
			{Name: "winner", Value: peaks.Sentence()},
			{Name: "deploy", Value: choice + ": " + reason},
		},
		Checks: append([]verdict.Check{
			checkResponses(sum, stages), lowestSustained("the lowest load is sustained", limits.Trials(limits.fixedLevels(one.stages()))),
			everyServer(several.stages(), manyTotal, size), checkGeneratorOfStages(all),
		}, r.checkServerCount(stages)...),
		Passed: []string{sentence("single %v answers/s, cluster %v; %s; deploy %s: %s", one.Peak, several.Peak, peaks.Sentence(), choice, reason)},
		Tables: slices.Concat([]verdict.Table{
			levelTable(one, several), sideTable(one, several, peaks, size), serverTable(oneTotal, manyTotal),
			fixedTable("Single", limits, one.stages()), fixedTable("Cluster", limits, several.stages()),
		}, endpointTables(loads), failureTables(all, sum), r.resourceTables(stages, all)),
		Metrics: slices.Concat([]verdict.Metric{one.peakMetric("peak answers/s, single"), several.peakMetric("peak answers/s, cluster")},
			ofOne.timeMetrics("of single", false), ofMany.timeMetrics("of cluster", false)),
	}
}

// answersPerServer is the number of answers for each server that makes it certain that a silent one got none.
const answersPerServer = 30

// everyServer fails a cluster of which a server got no request at some level, or whose answers do not name the server.
func everyServer(levels []StageResult, q Total, size int) verdict.Check {
	servers := slices.Sorted(maps.Keys(q.Servers))
	c := check(CheckServers, "every server of the cluster answers", fmt.Sprint(size), fmt.Sprintf("%d named themselves", len(servers)), len(servers) == size)
	switch {
	case len(servers) < size && len(servers) > 0:
		c.Reasons = []string{fmt.Sprintf("only %d of the %d servers of the cluster answered (%s): CLUSTER_SIZE has their number", len(servers), size, shortList(servers))}
	case len(servers) > size:
		c = inconclusive(c)
		c.Reasons = []string{fmt.Sprintf("%d servers answered (%s), CLUSTER_SIZE is %d: it is wrong, or one server replaced another",
			len(servers), shortList(servers), size)}
	}
	for _, st := range levels {
		if st.OK.Count() < answersPerServer*int64(size) {
			continue
		}
		for _, server := range servers {
			if st.Servers[server] == 0 {
				c.Pass = false
				c.Actual += fmt.Sprintf(", %s was silent at %d at a time", server, st.Concurrency)
				c.Reasons = append(c.Reasons, sentence("%s answered none of %v requests to the cluster at %v at a time", server, st.OK.Count(), st.Concurrency))
			}
		}
	}
	return c
}

// shortList writes at most 20 names.
func shortList(names []string) string {
	const most = 20
	if len(names) > most {
		return sentence("%s and %v more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

const comparedColumns = "|single|cluster|difference|winner|by"

// row returns the cells for comparedColumns.
func (c Comparison) row(one, several string) []string {
	if c.Winner == "" {
		return []string{one, several, c.Interval, "none", c.None.Word}
	}
	return []string{one, several, c.Interval, c.Winner, c.Margin}
}

// levelTable compares the two level by level.
func levelTable(one, several Side) verdict.Table {
	t := newTable("Level by level", fmt.Sprintf("difference: of the cluster from the single backend, %s interval by Student's t over the rounds; "+
		"a winner is better by %s or more (else little), the interval leaves 0 out (else chance), and the load generator was the limit of neither; "+
		"failed: by over %s of the requests", percent(confidence), percent(minGain), percent(failureMargin)), "at a time|figure"+comparedColumns)
	for _, a := range one.levels {
		i := slices.IndexFunc(several.levels, func(rest roundLevel) bool { return rest.Concurrency == a.Concurrency })
		if i < 0 {
			continue
		}
		b := several.levels[i]
		reason := incomparable([]roundLevel{a}, []roundLevel{b})
		add := func(name string, c Comparison, x, y string) {
			t.Add(append([]string{fmt.Sprint(a.Concurrency), name}, c.row(x, y)...)...)
		}
		compare := func(name string, lower bool, text func(float64) string, figure func(*StageResult) float64) {
			add(name, Compare(a.values(figure), b.values(figure), lower, reason), text(figure(&a.StageResult)), text(figure(&b.StageResult)))
		}
		compare("answers/s", false, count, perSecondOf)
		compare("p50", true, ms, p50)
		compare("p95", true, ms, p95)
		add("failed", compareFailures(a.FailedShare(), b.FailedShare()), percentOf(a.FailedShare()), percentOf(b.FailedShare()))
	}
	return t
}

// sideTable compares gains and costs.
func sideTable(one, several Side, peaks Comparison, size int) verdict.Table {
	t := newTable("In all: gains and costs", "", "figure"+comparedColumns)
	add := func(name string, c Comparison, x, y string) { t.Add(append([]string{name}, c.row(x, y)...)...) }
	add("peak answers/s", peaks, count(one.Peak), count(several.Peak))
	add("mean of the p95", Compare(one.p95s(), several.p95s(), true, incomparable(one.levels, several.levels)), ms(one.P95), ms(several.P95))
	add("failed", compareFailures(one.FailedShare, several.FailedShare), percentOf(one.FailedShare), percentOf(several.FailedShare))
	t.Add("least ÷ most busy", "–", percentOf(several.Evenness), "–", "–", "–")
	t.Add("backends", "1", fmt.Sprint(size), "–", single, "–")
	t.Add("may fail", "0", fmt.Sprint(size-1), "–", cluster, "–")
	return t
}

func serverTable(one, several Total) verdict.Table {
	t := newTable("Answers by server", "as servers name themselves (X-Server)", "target|server|answers|share")
	add := func(target string, q Total) {
		var sum int64
		for _, n := range q.Servers {
			sum += n
		}
		for _, server := range slices.Sorted(maps.Keys(q.Servers)) {
			t.Add(row(target, server, q.Servers[server], percentOf(share(q.Servers[server], sum)))...)
		}
	}
	add(single, one)
	add(cluster, several)
	return t
}

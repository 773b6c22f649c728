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

// The names of the two targets that are compared.
const (
	single  = "single"
	cluster = "cluster"
)

var clusterSuite = Suite{
	Name:   "cluster",
	Short:  "compare one backend with several behind one address, at the same loads",
	Script: []string{"load-tests", "http", "cluster.js"},
	Target: Target{Kind: Cluster, SeparateCores: true},
	Page:   Page{Doc: httpDoc},
	Assess: assessCluster,
}

const (
	clusterSize   = 3   // backends, unless CLUSTER_SIZE is set
	minGain       = .1  // minimum advantage of a winner
	confidence    = .95 // confidence level of the interval of a difference
	failureMargin = .01 // minimum difference between the shares of failed requests
	minEvenness   = .8  // minimum Side.Evenness
	minPeakRatio  = 1.2 // peak of a cluster ÷ peak of a single backend above which the cluster is worth its costs
)

// A Side holds the results of one target at all levels.
type Side struct {
	Peak        float64 // responses/s at its best level
	P95         float64 // mean of the levels' 95th percentiles, in milliseconds
	FailedShare float64 // failed share of all requests, 0 to 1
	// Evenness is the number of good responses of the least busy server ÷ the number of the busiest. It is 0 if a
	// server sent none, and 1 if there is only one server or responses do not name their servers.
	Evenness float64

	bestLevel roundLevel // the level of the peak
	levels    []roundLevel
	total     *Requests
}

// sideOf sums up the stages of a target with the given number of servers.
func sideOf(stages []StageResult, servers int) Side {
	sum := total(stages)
	s := Side{total: sum, levels: groupByLevel(stages), FailedShare: sum.FailedShare(), Evenness: 1}
	for _, level := range s.levels {
		s.P95 += p95(&level.StageResult) / float64(len(s.levels))
		if level.PerSecond() > s.Peak {
			s.Peak, s.bestLevel = level.PerSecond(), level
		}
	}
	switch {
	case len(sum.Servers) == 0:
	case len(sum.Servers) < servers:
		s.Evenness = 0
	default:
		counts := slices.Sorted(maps.Values(sum.Servers))
		s.Evenness = share(counts[0], counts[len(counts)-1])
	}
	return s
}

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

func (s *Side) peakMetric(name string) verdict.Metric {
	if s.Peak == 0 {
		return verdict.Metric{Name: name, Unit: perSecond, HigherIsBetter: true}
	}
	return s.bestLevel.rateMetric(name)
}

func (s *Side) peakText() string {
	if s.Peak == 0 {
		return ""
	}
	return fmt.Sprintf(" with %d at a time%s", s.bestLevel.Concurrency, boundText(s.bestLevel.StageResult))
}

func p50(st *StageResult) float64 { return quantile(st.OK, .5) }
func p95(st *StageResult) float64 { return quantile(st.OK, .95) }

// A Comparison states which of the two targets is better in one figure.
//
// In each round, the targets are measured one after the other, so that other load on the machine affects both. The
// difference of a round is the difference of the logarithms of the two figures. Its size does not depend on the order
// of the targets. The mean over the rounds has a confidence interval by Student's t. There is no winner with too few
// rounds, if the interval contains 0, if the difference is under minGain, or if the load generator may have been the
// limit.
type Comparison struct {
	Winner   string // single or cluster; "" if neither won
	Margin   string // difference between the winner and the other target
	Interval string // confidence interval of the difference between cluster and single backend; "–" if it is unknown
	NoWinner Reason // why there is no winner; the zero Reason if there is one
}

// A Reason is a cause, as a sentence for texts and in a short form for tables.
type Reason struct{ Sentence, Short string }

// Compare compares two targets by their figures of each round. If obstacle is not zero, there is no winner.
func Compare(ofSingle, ofCluster []float64, lowerIsBetter bool, obstacle Reason) Comparison {
	n := min(len(ofSingle), len(ofCluster))
	logs := make([]float64, 0, n)
	for i := range n {
		if ofSingle[i] > 0 && ofCluster[i] > 0 {
			logs = append(logs, math.Log(ofCluster[i]/ofSingle[i]))
		}
	}
	if len(logs) < 2 || len(logs) < n {
		return Comparison{Interval: "–", NoWinner: Reason{"a comparison requires at least two rounds, with a response in each", "too few rounds"}}
	}
	mean, low, high := stats.MeanCI(logs, confidence)
	c := Comparison{Interval: signedPercent(low) + " … " + signedPercent(high)}
	factor := math.Exp(math.Abs(mean))
	switch {
	case obstacle.Sentence != "":
		c.NoWinner = obstacle
	case low <= 0 && high >= 0:
		c.NoWinner = Reason{"the difference is not significant", "not significant"}
	case factor-1 < minGain:
		c.NoWinner = Reason{"the difference is under " + percent(minGain), "too small"}
	default:
		c.Margin = percent(factor - 1)
		if c.Winner = cluster; (mean > 0) == lowerIsBetter {
			c.Winner = single
		}
	}
	return c
}

// compareFailures compares shares of failed requests, without a confidence interval.
func compareFailures(ofSingle, ofCluster float64) Comparison {
	switch {
	case ofSingle-ofCluster > failureMargin:
		return Comparison{Interval: "–", Winner: cluster, Margin: percentOf(ofSingle - ofCluster)}
	case ofCluster-ofSingle > failureMargin:
		return Comparison{Interval: "–", Winner: single, Margin: percentOf(ofCluster - ofSingle)}
	}
	return Comparison{Interval: "–", NoWinner: Reason{Short: "too small"}}
}

func signedPercent(log float64) string {
	share := 100 * (math.Exp(log) - 1)
	if math.IsInf(share, 0) || share >= 1000 {
		return ">+999 %"
	}
	return fmt.Sprintf("%+.0f %%", share)
}

// Sentence names the winner, or the reason why neither side won.
func (c Comparison) Sentence() string {
	switch {
	case c.Winner != "":
		return fmt.Sprintf("winner: %s by %s (interval of the difference: %s)", c.Winner, c.Margin, c.Interval)
	case c.Interval == "–":
		return "no winner: " + c.NoWinner.Sentence
	}
	return fmt.Sprintf("no winner: the interval of the difference is %s; %s", c.Interval, c.NoWinner.Sentence)
}

// saturationReason returns why levels cannot be compared: the generator was, or may have been, saturated. It returns
// the zero Reason if they can be compared.
func saturationReason(ofSingle, ofCluster []roundLevel) Reason {
	for i := range min(len(ofSingle), len(ofCluster)) {
		for _, side := range []struct {
			name  string
			level roundLevel
		}{{"the single backend", ofSingle[i]}, {"the cluster", ofCluster[i]}} { // #nosec G602 -- i is below both lengths
			switch limit, reason := side.level.Machine.Limit(); limit {
			case LimitGenerator:
				return Reason{fmt.Sprintf("the load generator was saturated while it tested %s (%s)", side.name, reason), "load generator"}
			case LimitUnknown:
				return Reason{fmt.Sprintf("it is unknown what limited %s (%s)", side.name, reason), "not known"}
			}
		}
	}
	return Reason{}
}

// Deployment recommends one of the two targets by the first of these rules that applies:
//
//  1. If the failed share of one target is over one percentage point higher: the other target.
//  2. If the least busy server of the cluster receives under 80 % of the requests of the busiest: neither yet.
//  3. If the peak of the cluster wins, and is over a fifth higher: the cluster.
//  4. Otherwise: the single backend, because the cluster adds only availability, and needs several times the processes.
func Deployment(ofSingle, ofCluster Side, peaks Comparison) (choice, reason string) {
	const exception = "; use the cluster only if the service must survive the failure of a backend"
	failures := compareFailures(ofSingle.FailedShare, ofCluster.FailedShare)
	switch {
	case failures.Winner == single:
		return single, fmt.Sprintf("the cluster failed %s of its requests, the single backend %s", percentOf(ofCluster.FailedShare), percentOf(ofSingle.FailedShare))
	case failures.Winner == cluster:
		return cluster, fmt.Sprintf("the single backend failed %s of its requests, the cluster %s", percentOf(ofSingle.FailedShare), percentOf(ofCluster.FailedShare))
	case ofCluster.Evenness < minEvenness:
		return "neither yet", fmt.Sprintf("the least busy server of the cluster received %s of the requests of the busiest; fix the balancing first", percent(ofCluster.Evenness))
	case peaks.Winner == cluster && ofCluster.Peak > minPeakRatio*ofSingle.Peak:
		return cluster, fmt.Sprintf("it answers %s more requests per second", peaks.Margin)
	case peaks.Winner == cluster:
		return single, "the cluster is not over a fifth faster" + exception
	case peaks.Winner == single:
		return single, fmt.Sprintf("it answers %s more requests per second%s", peaks.Margin, exception)
	}
	return single, "neither has a provably higher throughput" + exception
}

func assessCluster(r *Run) verdict.Assessment {
	stages := r.stages()
	loads, byTarget := filterKind(stages, kindLoad), map[string][]StageResult{}
	for _, st := range loads {
		byTarget[st.Target] = append(byTarget[st.Target], st)
	}
	size := cmp.Or(int(r.number("CLUSTER_SIZE")), clusterSize)
	ofSingle, ofCluster := sideOf(byTarget[single], 1), sideOf(byTarget[cluster], size)
	all := append(ofSingle.stages(), ofCluster.stages()...)
	sum, limits := total(loads), r.limits()
	peaks := Compare(ofSingle.bestLevel.values((*StageResult).PerSecond), ofCluster.bestLevel.values((*StageResult).PerSecond), false, saturationReason([]roundLevel{ofSingle.bestLevel}, []roundLevel{ofCluster.bestLevel}))
	choice, reason := Deployment(ofSingle, ofCluster, peaks)
	lowest := checkLowestLoad("the cluster sustains the lowest load", limits.Trials(limits.levels(ofCluster.stages())))
	for i := range lowest.Reasons {
		lowest.Reasons[i] = "cluster: " + lowest.Reasons[i]
	}
	return verdict.Assessment{
		Facts: []verdict.Fact{
			sum.fact(),
			{Name: "peak", Value: sentence("single %v responses/s%s; cluster %v%s", ofSingle.Peak, ofSingle.peakText(), ofCluster.Peak, ofCluster.peakText())},
			{Name: "winner", Value: peaks.Sentence()},
			{Name: "deploy", Value: choice + ": " + reason},
		},
		Checks: append([]verdict.Check{
			checkResponses(sum, stages), checkLowestLoad("the lowest load is sustained", limits.Trials(limits.levels(ofSingle.stages()))), lowest,
			checkAnsweringServers(ofCluster.stages(), ofCluster.total, size), checkGeneratorOfStages(all),
		}, r.checkServerCount(stages)...),
		Passed: []string{sentence("single %v responses/s, cluster %v; %s; deploy %s: %s", ofSingle.Peak, ofCluster.Peak, peaks.Sentence(), choice, reason)},
		Tables: slices.Concat([]verdict.Table{
			levelTable(ofSingle, ofCluster), sideTable(ofSingle, ofCluster, peaks, size), serverTable(ofSingle.total, ofCluster.total),
			fixedTable("Single", limits, ofSingle.stages()), fixedTable("Cluster", limits, ofCluster.stages()),
		}, endpointTables(loads), failureTables(all, sum), r.resourceTables(stages, all)),
		Metrics: slices.Concat([]verdict.Metric{ofSingle.peakMetric("peak responses/s, single"), ofCluster.peakMetric("peak responses/s, cluster")},
			ofSingle.total.timeMetrics("of single", false), ofCluster.total.timeMetrics("of cluster", false)),
	}
}

// responsesPerServer is the minimum number of responses per server at a level for a check of that level.
const responsesPerServer = 30

// checkAnsweringServers returns the check that every server of the cluster answered requests, by the header X-Server.
// It also checks each level with at least responsesPerServer responses per server.
func checkAnsweringServers(levels []StageResult, sum *Requests, size int) verdict.Check {
	servers := slices.Sorted(maps.Keys(sum.Servers))
	c := check(CheckServers, "every server of the cluster answers", fmt.Sprint(size), fmt.Sprintf("%d answered", len(servers)), len(servers) == size)
	switch {
	case len(servers) == 0 && sum.OK.Count() > 0:
		c.Actual = "not known"
		c.Reasons = []string{"no response of the cluster has the header X-Server, so it is unknown which servers answered"}
		c = c.AsDoubt()
	case len(servers) < size && len(servers) > 0:
		c.Reasons = []string{fmt.Sprintf("only %d of the %d servers of the cluster answered (%s); check the load balancer, or CLUSTER_SIZE", len(servers), size, shortList(servers))}
	case len(servers) > size:
		c = invalidateIfUnmet(c)
		c.Reasons = []string{fmt.Sprintf("%d servers answered (%s), but CLUSTER_SIZE is %d: CLUSTER_SIZE is wrong, or one server replaced another",
			len(servers), shortList(servers), size)}
	}
	for _, st := range levels {
		if st.OK.Count() < responsesPerServer*int64(size) {
			continue
		}
		for _, server := range servers {
			if st.Servers[server] == 0 {
				c.Pass = false
				c.Actual += fmt.Sprintf(", %s did not answer with %d at a time", server, st.Concurrency)
				c.Reasons = append(c.Reasons, sentence("%s answered none of %v requests to the cluster with %v at a time", server, st.OK.Count(), st.Concurrency))
			}
		}
	}
	return c
}

func shortList(names []string) string {
	const limit = 20
	if len(names) > limit {
		return sentence("%s and %v more", strings.Join(names[:limit], ", "), len(names)-limit)
	}
	return strings.Join(names, ", ")
}

const comparedColumns = "|single|cluster|difference|winner|by"

func (c Comparison) row(ofSingle, ofCluster string) []string {
	if c.Winner == "" {
		return []string{ofSingle, ofCluster, c.Interval, "none", c.NoWinner.Short}
	}
	return []string{ofSingle, ofCluster, c.Interval, c.Winner, c.Margin}
}

func levelTable(ofSingle, ofCluster Side) verdict.Table {
	t := newTable("Level by level", fmt.Sprintf("difference: from the single backend to the cluster, as a %s interval by Student's t over the rounds; "+
		"a winner is better by at least %s (failed: by over %s of the requests), the interval excludes 0, and the load generator limited neither; "+
		"by: the margin, or the reason why there is no winner", percent(confidence), percent(minGain), percent(failureMargin)), "at a time|figure"+comparedColumns)
	for _, a := range ofSingle.levels {
		i := slices.IndexFunc(ofCluster.levels, func(level roundLevel) bool { return level.Concurrency == a.Concurrency })
		if i < 0 {
			continue
		}
		b := ofCluster.levels[i]
		reason := saturationReason([]roundLevel{a}, []roundLevel{b})
		add := func(name string, c Comparison, x, y string) {
			t.Add(append([]string{fmt.Sprint(a.Concurrency), name}, c.row(x, y)...)...)
		}
		compare := func(name string, lowerIsBetter bool, text func(float64) string, figure func(*StageResult) float64) {
			add(name, Compare(a.values(figure), b.values(figure), lowerIsBetter, reason), text(figure(&a.StageResult)), text(figure(&b.StageResult)))
		}
		compare("responses/s", false, count, (*StageResult).PerSecond)
		compare("p50", true, ms, p50)
		compare("p95", true, ms, p95)
		add("failed", compareFailures(a.FailedShare(), b.FailedShare()), percentOf(a.FailedShare()), percentOf(b.FailedShare()))
	}
	return t
}

func sideTable(ofSingle, ofCluster Side, peaks Comparison, size int) verdict.Table {
	t := newTable("Total: gains and costs", "", "figure"+comparedColumns)
	add := func(name string, c Comparison, x, y string) { t.Add(append([]string{name}, c.row(x, y)...)...) }
	add("peak responses/s", peaks, count(ofSingle.Peak), count(ofCluster.Peak))
	add("mean of the p95", Compare(ofSingle.p95s(), ofCluster.p95s(), true, saturationReason(ofSingle.levels, ofCluster.levels)), ms(ofSingle.P95), ms(ofCluster.P95))
	add("failed", compareFailures(ofSingle.FailedShare, ofCluster.FailedShare), percentOf(ofSingle.FailedShare), percentOf(ofCluster.FailedShare))
	t.Add("least ÷ most busy", "–", percentOf(ofCluster.Evenness), "–", "–", "–")
	t.Add("backends", "1", fmt.Sprint(size), "–", single, "–")
	t.Add("tolerated failures", "0", fmt.Sprint(size-1), "–", cluster, "–")
	return t
}

func serverTable(ofSingle, ofCluster *Requests) verdict.Table {
	t := newTable("Responses by server", "by the header X-Server", "target|server|responses|share")
	add := func(target string, q *Requests) {
		var sum int64
		for _, n := range q.Servers {
			sum += n
		}
		for _, server := range slices.Sorted(maps.Keys(q.Servers)) {
			t.Add(row(target, server, q.Servers[server], percentOf(share(q.Servers[server], sum)))...)
		}
	}
	add(single, ofSingle)
	add(cluster, ofCluster)
	return t
}

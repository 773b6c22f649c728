package compare

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/aclements/go-moremath/stats"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// An Outcome is the result of comparing a metric.
type Outcome string

// A metric is Worse if its median got worse by more than the tolerance, by more than negligibleChange, and by more than
// chance explains. A fault that no old run had is always Worse. A comparison with a Worse metric is a regression.
const (
	Same   Outcome = "same"
	Better Outcome = "better"
	Worse  Outcome = "worse"
	// Unsure is the outcome of a metric that may have gotten worse because of the load generator, not the service. The
	// metric is a time that includes the generator's delay, or a rate that the generator limited.
	Unsure Outcome = "unsure"
)

// A Change is one metric in old and in new runs.
type Change struct {
	verdict.Metric
	Old, New Summary
	Difference
	Outcome Outcome
}

// Relative returns the change of the median as a share of the old median. It is infinite if only the old median is 0.
func (c Change) Relative() float64 {
	if c.Old.Median == c.New.Median {
		return 0
	}
	return (c.New.Median - c.Old.Median) / math.Abs(c.Old.Median)
}

// A Comparison is two sets of runs of one plan.
type Comparison struct {
	Old, New     []Run
	Tolerance    float64 // share of the old median
	Changes      []Change
	Warnings     []string
	Undetectable []string // possible changes that no metric shows

	saturated bool // a load generator was saturated
}

// Minimum numbers of runs. Two old runs have a spread, with which a new run can be compared.
const (
	minOld = 2
	minAll = 3
)

// Tolerance is the default maximum by which a metric may get worse, as a share of the old median.
const Tolerance = .1

// Compare compares new runs with old ones of the same plan.
func Compare(old, recent []Run, tolerance float64) (*Comparison, error) {
	allRuns := append(slices.Clone(old), recent...)
	switch {
	case len(allRuns) < minAll || len(old) < minOld:
		return nil, fmt.Errorf("a comparison needs at least %d runs of one plan, at least %d of them old ones", minAll, minOld)
	case len(recent) == 0:
		return nil, errors.New("name at least one new run after --")
	case !(tolerance >= 0):
		return nil, fmt.Errorf("the tolerance must be at least 0, got %v", tolerance)
	}
	if err := checkPlans(allRuns); err != nil {
		return nil, err
	}
	c := &Comparison{Old: old, New: recent, Tolerance: tolerance}
	c.warn(allRuns)
	oldByName, newByName := metricsByName(old), metricsByName(recent)
	for _, metric := range suite.Metrics(recent[0].Verdict) {
		if slices.Contains(sendingMetrics, metric.Name) && !oneClock(allRuns) {
			c.Warnings = append(c.Warnings, metric.Name+" counts from the time of sending in some runs and not in others, so it is omitted")
			continue
		}
		oldMetrics, newMetrics := oldByName[metric.Name], newByName[metric.Name]
		if len(oldMetrics) != len(old) || len(newMetrics) != len(recent) {
			c.Warnings = append(c.Warnings, metric.Name+" is unknown for some runs, so it is omitted")
			continue
		}
		oldValues := valuesOf(oldMetrics)
		change, err := changeOf(metric, oldValues, valuesOf(newMetrics), tolerance)
		if err != nil {
			return nil, err
		}
		switch {
		case change.Outcome != Worse:
		case metric.Unit == suite.OfRequests && isChance(oldMetrics, newMetrics):
			change.Outcome = Same
		case c.isGeneratorsDelay(metric, oldValues, newMetrics) || c.isBound(newMetrics):
			change.Outcome = Unsure
		}
		c.Changes = append(c.Changes, change)
	}
	c.Undetectable = c.undetectableChanges()
	return c, nil
}

// isGeneratorsDelay reports whether a time may have gotten worse because of the load generator: without the
// generator's maximum delay, the new runs would not be worse. If that delay is unknown, isGeneratorsDelay reports
// whether a generator was saturated.
func (c *Comparison) isGeneratorsDelay(metric verdict.Metric, old []float64, recent []verdict.Metric) bool {
	if metric.Unit != "ms" {
		return false
	}
	var undelayed []float64
	for _, m := range recent {
		if m.Undelayed == nil {
			return c.saturated
		}
		undelayed = append(undelayed, *m.Undelayed)
	}
	change, err := changeOf(metric, old, undelayed, c.Tolerance)
	return err != nil || change.Outcome != Worse
}

// checkPlans rejects runs of several plans. It also rejects a repeated run, because copies of a run have no spread.
func checkPlans(runs []Run) error {
	byKey := map[string]string{}
	for _, r := range runs {
		key := fmt.Sprint(r.Verdict.TestID, r.Verdict.StartedUnix)
		if other, ok := byKey[key]; ok {
			return fmt.Errorf("%s and %s are the same run", other, r.Dir)
		}
		byKey[key] = r.Dir
		if err := SamePlan(runs[0], r); err != nil {
			return err
		}
	}
	return nil
}

// warn adds warnings about different machines and saturated load generators. It also sets saturated.
func (c *Comparison) warn(allRuns []Run) {
	for _, r := range allRuns {
		if hosts, first := r.hosts(), allRuns[0].hosts(); hosts != first {
			c.Warnings = append(c.Warnings, fmt.Sprintf("%s ran on %s, %s on %s; the machines may cause the differences", allRuns[0].Dir, first, r.Dir, hosts))
			break
		}
	}
	var dirs []string
	for _, r := range allRuns {
		if r.Verdict.Generator.Saturated {
			dirs = append(dirs, r.Dir)
		}
	}
	if c.saturated = len(dirs) > 0; c.saturated {
		c.Warnings = append(c.Warnings, fmt.Sprintf("times are not comparable: the load generator was saturated in %s; run again on a machine with more free cores", strings.Join(dirs, ", ")))
	}
}

// isBound reports whether at least half of the new runs have only a lower bound of a metric, because their load
// generator was the limit. In that case the service may be as good as before, so isBound adds a warning. Lower bounds
// in old runs do not matter, because the actual values were even better.
func (c *Comparison) isBound(recent []verdict.Metric) bool {
	n := 0
	for _, m := range recent {
		if m.Bound {
			n++
		}
	}
	if 2*n < len(recent) {
		return false
	}
	c.Warnings = append(c.Warnings, fmt.Sprintf("%s is not comparable: the load generator was the limit in %d of %s", recent[0].Name, n, format.Count(len(recent), "new run")))
	return true
}

// metricsByName returns the metrics of all runs by name, each in the order of the runs.
func metricsByName(runs []Run) map[string][]verdict.Metric {
	out := map[string][]verdict.Metric{}
	for _, r := range runs {
		for _, m := range suite.Metrics(r.Verdict) {
			out[m.Name] = append(out[m.Name], m)
		}
	}
	return out
}

func valuesOf(metrics []verdict.Metric) (out []float64) {
	for _, m := range metrics {
		out = append(out, m.Value)
	}
	return out
}

func changeOf(metric verdict.Metric, old, recent []float64, tolerance float64) (Change, error) {
	c := Change{Metric: metric, Old: Summarize(old), New: Summarize(recent), Outcome: Same}
	if metric.Fault && c.Old.Max == 0 { // the first fault needs no statistics
		if c.New.Max > 0 {
			c.Outcome = Worse
		}
		return c, nil
	}
	var err error
	method := differ
	if metric.Unit == "ms" && min(c.Old.Min, c.New.Min) > 0 {
		method = differByFactor
	}
	if c.Difference, err = method(old, recent); err != nil {
		return c, err
	}
	difference := c.New.Median - c.Old.Median
	if !c.Significant || math.Abs(difference) <= max(negligibleChange[metric.Unit], tolerance*math.Abs(c.Old.Median)) {
		return c, nil
	}
	c.Outcome = Worse
	if (difference > 0) == metric.HigherIsBetter {
		c.Outcome = Better
	}
	return c, nil
}

// isChance reports whether the new runs may have more failed requests than the old ones by chance alone. It uses a
// one-sided binomial test: the probability that a failure is in a new run is the new runs' share of all requests.
// Runs without a failure have no spread, so the band alone would call one failure in a million requests a regression.
func isChance(old, recent []verdict.Metric) bool {
	failures := func(metrics []verdict.Metric) (failed, requests float64) {
		for _, m := range metrics {
			failed += math.Round(m.Value / 100 * float64(m.Requests))
			requests += float64(m.Requests)
		}
		return failed, requests
	}
	oldFailures, oldRequests := failures(old)
	newFailures, newRequests := failures(recent)
	if oldRequests+newRequests == 0 {
		return true
	}
	d := stats.BinomialDist{N: int(oldFailures + newFailures), P: newRequests / (oldRequests + newRequests)}
	return 1-d.CDF(newFailures-1) > alpha
}

// Regressions returns the metrics that got worse.
func (c *Comparison) Regressions() (out []Change) {
	for _, change := range c.Changes {
		if change.Outcome == Worse {
			out = append(out, change)
		}
	}
	return out
}

// Verdict returns fail if any metric got worse, else pass.
func (c *Comparison) Verdict() verdict.Outcome {
	if len(c.Regressions()) > 0 {
		return verdict.Fail
	}
	return verdict.Pass
}

// negligibleChange is the largest absolute change that does not matter, by the unit of the metric. Other units have no
// such limit.
var negligibleChange = map[string]float64{"ms": 5, "µs": 1, "MiB": 1, "%": 1}

// sendingMetrics lists the metrics that count from the time of sending, if clocks allow it.
var sendingMetrics = []string{suite.LatencyP50, suite.LatencyP99, suite.LastSubscriberP50, suite.LastSubscriberP99}

// undetectableChanges lists changes between the runs that no compared metric would show.
func (c *Comparison) undetectableChanges() (out []string) {
	isCompared := func(name string) bool {
		return slices.ContainsFunc(c.Changes, func(f Change) bool { return f.Name == name })
	}
	const equalDelay = "an equal delay of every message: "
	switch {
	case isCompared(suite.LatencyP50) && clockOf(c.New[0]) != verdict.AboveSend:
		out = append(out, equalDelay+"service and runners have no clock in common, so latency counts from the fastest message")
	case !isCompared(suite.LatencyP50) && isCompared(suite.LatenessP99):
		out = append(out, equalDelay+"no time of sending is compared, and lateness is the excess of a gap over the interval")
	case !isCompared(suite.LatencyP50) && !c.New[0].Verdict.Service.HasInterval():
		out = append(out, "the delivery time of messages: no time of sending is compared")
	}
	if slices.ContainsFunc(append(slices.Clone(c.Old), c.New...), func(r Run) bool { return r.Verdict.Resources.BackendRSSMax == 0 }) {
		out = append(out, "memory and CPU of the service: unknown for some runs")
	}
	return out
}

// clockOf returns the time from which the latency of a run counts, or "" if the run has no latency.
func clockOf(r Run) string {
	if r.Verdict.LatencyMS == nil {
		return ""
	}
	return r.Verdict.LatencyMS.Above
}

// oneClock reports whether the latencies of all runs count from the same moment.
func oneClock(runs []Run) bool {
	return !slices.ContainsFunc(runs, func(r Run) bool { return clockOf(r) != clockOf(runs[0]) })
}

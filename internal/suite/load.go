package suite

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/clamp"
	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A Limits value holds the limits within which a load counts as sustained.
type Limits struct {
	FailedShare   float64 // maximum share of failed requests, 0 to 1
	P95           float64 // maximum 95th percentile in milliseconds; 0 means no limit
	AnsweredShare float64 // minimum share of offered requests with a good response, 0 to 1
}

// A Level is a load and its figures. Figures with the prefix Undelayed exclude the delays that the load generator may
// have added (see saturation.go).
type Level struct {
	Load                                  float64 // offered load: requests/s, or concurrent requests
	AnsweredShare, UndelayedAnsweredShare float64 // share of the offered requests with a good response
	FailedShare                           float64 // failed share of the requests that were made
	Failure                               string  // the most frequent failure; "" if no request failed
	UndelayedFailedShare                  float64 // FailedShare without the failures that are attributed to the generator
	P95, UndelayedP95                     float64 // of the good responses, in milliseconds
	HardFailureShare                      float64 // share of requests with a failure that no delay explains, such as a status
	MachineLimit                          string  // why the machines may have delayed requests (see machineLimit); "" if no reason is known
	TooFewConnections                     string  // why the generator had too few connections for the rate; "" if it had enough
	GeneratorDelay                        string  // a description of the delays of the generator
}

// A Status states whether a load was sustained.
type Status string

// The statuses. With ByGenerator, the load generator was saturated, so the result does not apply to the service.
const (
	Good        Status = "good"
	Bad         Status = "bad"
	ByGenerator Status = "generator"
	BadOnRetry  Status = "good at first" // good at first, and bad when the load was repeated
)

// A Trial is an offered load, and whether the service sustained it.
type Trial struct {
	Load   float64
	Status Status
	Reason string // why Status is not Good; "" if it is Good
}

// Trials returns the trials of levels, sorted by load.
func (l Limits) Trials(levels []Level) []Trial {
	out := make([]Trial, 0, len(levels))
	for _, v := range levels {
		out = append(out, l.Judge(v))
	}
	slices.SortStableFunc(out, func(x, y Trial) int { return cmp.Compare(x.Load, y.Load) })
	return out
}

// Judge returns the trial of a level.
//
// A level is bad if it exceeds FailedShare or P95, or if the answered share of the offered requests is below
// AnsweredShare. A level is attributed to the load generator, and not bad, if one of these holds:
//   - without the delays that the generator may have added, the level is good;
//   - delays explain the failures, and MachineLimit states why the machines may have added them;
//   - only the wait for a connection was slow.
func (l Limits) Judge(v Level) Trial {
	reason := l.exceededLimits(v.FailedShare, v.P95, v.AnsweredShare, v.Failure)
	switch {
	case reason == "":
		return Trial{v.Load, Good, ""}
	case l.exceededLimits(v.UndelayedFailedShare, v.UndelayedP95, v.UndelayedAnsweredShare, "") == "":
		return Trial{v.Load, ByGenerator, reason + "; " + v.GeneratorDelay}
	case v.MachineLimit != "" && v.HardFailureShare <= l.FailedShare:
		return Trial{v.Load, ByGenerator, reason + "; " + v.MachineLimit}
	case v.TooFewConnections != "" && v.FailedShare <= l.FailedShare:
		return Trial{v.Load, ByGenerator, reason + "; " + v.TooFewConnections}
	}
	return Trial{v.Load, Bad, reason}
}

// exceededLimits describes the limits that a level exceeds. It returns "" if the level exceeds none.
func (l Limits) exceededLimits(failed, p95, answered float64, failure string) string {
	var reason []string
	if failed > l.FailedShare {
		text := distinctPercent(l.FailedShare, failed, 2) + " failed"
		if failure != "" {
			text += ", mostly by " + failure
		}
		reason = append(reason, text)
	}
	if l.P95 > 0 && p95 > l.P95 {
		reason = append(reason, fmt.Sprintf("p95 %s", ms(p95)))
	}
	if answered < l.AnsweredShare {
		reason = append(reason, distinctPercent(l.AnsweredShare, answered, 1)+" answered")
	}
	return strings.Join(reason, ", ")
}

// A BreakingPoint is the result of a search for the breaking point: the load that a service no longer sustains.
type BreakingPoint struct {
	Sustained float64 // the highest load up to which every load was good; 0 if the lowest load was not
	// Failed is the lowest bad load above Sustained. If no load was bad, it is the lowest load with a saturated
	// generator. It equals Sustained if the status is BadOnRetry, and is 0 if all loads were good.
	Failed  float64
	Status  Status // the status of Failed: only Bad is a breaking point
	Reason  string
	Unclear float64 // the lowest load between Sustained and Failed at which the generator was saturated; 0 if it never was
}

// findBreakingPoint finds the breaking point in trials of ascending loads: it is above the last good load and at most
// the first bad load. Trials of the same load are in chronological order. If the first of them is good and a later one
// bad, the status is BadOnRetry: the service gets worse with time or after overload.
func findBreakingPoint(trials []Trial) (b BreakingPoint) {
	for _, v := range trials {
		switch repeated := b.Failed == 0 && v.Load == b.Sustained; {
		case repeated && v.Status == ByGenerator: // the first trial of this load was good
		case repeated && v.Status == Bad:
			return BreakingPoint{Sustained: v.Load, Failed: v.Load, Status: BadOnRetry, Reason: v.Reason}
		case v.Status == Bad:
			if b.Failed > 0 {
				b.Unclear = b.Failed
			}
			b.Failed, b.Status, b.Reason = v.Load, v.Status, v.Reason
			return b
		case b.Failed > 0:
		case v.Status == ByGenerator:
			b.Failed, b.Status, b.Reason = v.Load, v.Status, v.Reason
		default:
			b.Sustained = v.Load
		}
	}
	return b
}

// Sentence states the breaking point.
func (b BreakingPoint) Sentence(unit string) string {
	switch {
	case b.Failed == 0 && b.Sustained == 0:
		return "not found: no load was tried"
	case b.Failed == 0:
		return sentence("not reached: %v %s were sustained, the highest load that was tried", b.Sustained, unit)
	case b.Status == ByGenerator:
		return sentence("not found: at %v %s the load generator was saturated (%s); %v were sustained", b.Failed, unit, b.Reason, b.Sustained)
	case b.Status == BadOnRetry:
		return sentence("not found: %v %s were sustained at first, but not when they were repeated at the end (%s); "+
			"the result also depends on time or on earlier load", b.Sustained, unit, b.Reason)
	case b.Sustained == 0 && b.Unclear == 0:
		return sentence("below %v %s, the lowest load that was tried (%s)", b.Failed, unit, b.Reason)
	}
	text := sentence("between %v and %v %s (%s)", b.Sustained, b.Failed, unit, b.Reason)
	if b.Unclear > 0 {
		text += sentence("; at %v the load generator was saturated, so this range cannot be narrowed down", b.Unclear)
	}
	return text
}

// Summary states the result of the search.
func (b BreakingPoint) Summary(unit string) string {
	switch {
	case b.Status == BadOnRetry:
		return "breaking point " + b.Sentence(unit)
	case b.Failed == 0:
		return sentence("%v %s were sustained, the highest load that was tried", b.Sustained, unit)
	}
	return sentence("%v %s were sustained; breaking point %s", b.Sustained, unit, b.Sentence(unit))
}

const standardMargin = 1.4

func (b BreakingPoint) recommendations(unit string) verdict.Table {
	t := newTable("Recommended maximum loads", "the sustained load, divided by the margin", "load|margin|"+unit+"|for")
	add := func(name string, margin float64, purpose string) {
		load := count(b.Sustained / margin)
		if b.Status == BadOnRetry {
			load = "not known"
		}
		t.Add(name, fmt.Sprintf("%.1f×", margin), load, purpose)
	}
	add("conservative", 2.5, "loads that must not fail")
	add("standard", standardMargin, "everyday peaks")
	add("aggressive", 1, "no reserve")
	return t
}

func (b BreakingPoint) facts(unit string) []verdict.Fact {
	standard := b.Sustained / standardMargin
	safe, unreserved := sentence("up to %v %s", standard, unit), sentence("%v to %v %s", standard, b.Sustained, unit)
	switch {
	case b.Status == BadOnRetry:
		safe, unreserved = "not known", "not known"
	case b.Sustained == 0:
		safe, unreserved = "none", "none"
	}
	return []verdict.Fact{{Name: "breaking point", Value: b.Sentence(unit)}, {Name: "safe load", Value: safe}, {Name: "without reserve", Value: unreserved}}
}

func checkLowestLoad(name string, trials []Trial) verdict.Check {
	if len(trials) == 0 {
		return invalidateIfUnmet(check(CheckLowest, name, "good", "no load was tried", false))
	}
	first := trials[0]
	if first.Status == ByGenerator {
		return check(CheckLowest, name, "good", first.Status, false, "at the lowest load the load generator was saturated: "+first.Reason).AsDoubt()
	}
	return check(CheckLowest, name, "good", first.Status, first.Status == Good, "the lowest load was not sustained: "+first.Reason)
}

func (b BreakingPoint) checkSustained(r *Run, setting, name string) verdict.Check {
	required := r.number(setting)
	c := check(CheckSustained, name, atLeast(required), b.Sustained, b.Sustained >= required)
	isDoubtful := b.Status == ByGenerator || b.Unclear > 0 && required < b.Failed
	if b.Status == BadOnRetry {
		c.Actual += " at first"
		if required > 0 && c.Pass {
			c.Pass, isDoubtful = false, required < b.Sustained // the required load was not repeated
		}
	}
	if isDoubtful {
		return c.AsDoubt()
	}
	return c
}

// checkGeneratorAtLoads warns of loads whose faults are attributed to the load generator, not to the service.
func checkGeneratorAtLoads(limit, unit string, trials []Trial) verdict.Check {
	var at, reasons []string
	for _, v := range trials {
		if v.Status == ByGenerator {
			at = append(at, count(v.Load))
			reasons = append(reasons, sentence("at %v%s the load generator was saturated, not the service: %s", v.Load, unit, v.Reason))
		}
	}
	actual := limit
	if len(at) > 0 {
		actual = "not at " + strings.Join(at, ", ")
	}
	return warnIfUnmet(check(verdict.CheckGenerator, "load generator on time", limit, actual, len(at) == 0, reasons...))
}

// checkGeneratorOfStages warns of throughputs that the load generator limited.
func checkGeneratorOfStages(stages []StageResult) verdict.Check {
	at := map[Limit]int{}
	reasons := map[Limit]string{}
	for _, st := range stages {
		limit, reason := st.Machine.Limit()
		at[limit]++
		reasons[limit] = reason
	}
	limited, unknown := at[LimitGenerator], at[LimitUnknown]
	actual, reason := "at none", ""
	switch {
	case limited > 0:
		actual = fmt.Sprintf("at %d of %d", limited, len(stages))
		reason = actual + " loads the load generator was saturated, so these figures are lower bounds for the service (" + reasons[LimitGenerator] + ")"
		if unknown > 0 {
			actual += fmt.Sprintf(", unknown at %d", unknown)
		}
	case unknown > 0:
		actual = fmt.Sprintf("unknown at %d of %d", unknown, len(stages))
		reason = fmt.Sprintf("at %d of %d loads it is unknown whether the load generator was the limit: %s", unknown, len(stages), reasons[LimitUnknown])
	}
	return warnIfUnmet(check(verdict.CheckGenerator, "the generator was not the limit", "at no load", actual, limited+unknown == 0, reason))
}

// NextLoad returns the next load of the search for the breaking point. It returns 0 if the breaking point is known
// within 10 % or between two consecutive whole numbers, or cannot be found.
func (b BreakingPoint) NextLoad() float64 {
	above := cmp.Or(b.Unclear, b.Failed)
	if b.Status != Bad || b.Sustained == 0 || above-b.Sustained <= b.Sustained/10 {
		return 0
	}
	if next := float64(int((b.Sustained + above) / 2)); next > b.Sustained {
		return next
	}
	return 0 // no whole number lies between the two loads
}

// String states the limits of a good level.
func (l Limits) String() string {
	text := fmt.Sprintf("good: at most %.3g %% failed", 100*l.FailedShare)
	if l.P95 > 0 {
		text += ", p95 at most " + ms(l.P95)
	}
	return text + fmt.Sprintf(", at least %.3g %% of the offered requests answered", 100*l.AnsweredShare)
}

func (q *Requests) wrongResponses() int64 {
	return q.Codes[shard.CodeWrongContent] + q.Codes[shard.CodeTruncated]
}

func countUnrequested(stages []StageResult) (n int64) {
	for _, st := range stages {
		n += st.Unrequested
	}
	return n
}

// checkResponses returns the check that no stage, including warm-ups, has a wrong response or unrequested bytes. The
// run is invalid if counted, the requests in the results, is empty.
func checkResponses(counted *Requests, stages []StageResult) verdict.Check {
	sum := total(stages)
	wrong, unrequested := sum.wrongResponses(), countUnrequested(stages)
	c := check(CheckCorrect, "responses are correct", "all", sentence("%v wrong", wrong), wrong+unrequested == 0 && counted.Total() > 0)
	if counted.Total() == 0 {
		c.Actual = "no request was made"
		return invalidateIfUnmet(c)
	}
	if sum.OK.Count() == 0 && wrong+unrequested == 0 {
		return c.NotJudged("no request was answered")
	}
	if n := sum.Codes[shard.CodeTruncated]; n > 0 {
		c.Actual += sentence(", %v of them truncated", n)
	}
	if n := total(filterKind(stages, kindWarmup)).wrongResponses(); n > 0 {
		c.Actual += sentence(", %v of them in the warm-up", n)
	}
	if unrequested > 0 {
		c.Actual += fmt.Sprintf(", %s of unrequested bytes", format.Plural(unrequested, "case", "cases"))
	}
	return c
}

// checkServerCount returns the check that the backends counted as many requests as the runners. It returns nil unless
// soak started the backends on this machine, and they reported a count. A failed request may or may not have reached a
// backend.
func (r *Run) checkServerCount(stages []StageResult) []verdict.Check {
	if !r.OneHost || len(r.Samples) == 0 || r.Samples[len(r.Samples)-1].Served == 0 {
		return nil
	}
	served, made := clamp.Int64(r.Samples[len(r.Samples)-1].Served), total(stages)
	limit := text(made.Total())
	if len(filterKind(stages, kindWarmup)) > 0 {
		limit += ", warm-up included"
	}
	c := invalidateIfUnmet(check(verdict.CheckServerCount, "server's own count", limit, served, served >= made.OK.Count() && served <= made.Total(),
		sentence("%v requests reached the backends; the runners counted %v, of which %v failed: some requests did not arrive, or another client made requests",
			served, made.Total(), made.Failed.Count())))
	if !c.Pass && len(r.Failures)+len(r.Unreachable) > 0 { // these fail the run, and explain a wrong count
		c = warnIfUnmet(c)
		c.Reasons = []string{sentence("%v requests reached the backends that were running at the end; the runners counted %v: "+
			"the count of a process is lost when the process crashes", served, made.Total())}
	}
	return []verdict.Check{c}
}

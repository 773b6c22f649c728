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

// Limits are the limits of a sustained load.
type Limits struct {
	FailedShare float64 // at most, 0 to 1
	P95         float64 // at most, milliseconds; 0: any
	Answered    float64 // at least this share of the offered requests
}

// A Level is a load and its figures: as measured, and without the delays that the generator can have added (see saturation.go).
type Level struct {
	Load                  float64 // offered: requests/s, or requests at a time
	Answered, OwnAnswered float64 // share of the offered requests that were answered well
	FailedShare           float64 // of the requests that were made
	Failure               string  // the most frequent failure in words; "": not known
	OwnFailed             float64
	P95, OwnP95           float64 // of the good answers, milliseconds
	HardFailures          float64 // share of failures that no slowness explains: a status, a wrong answer, a reset
	MachineLimit          string  // why the machine may have delayed the service: it was full, or AWS dropped packets of the runners; "" if not
	TooFewConnections     string  // why the generator had too few connections for the rate; "": it had enough
	GeneratorDelay        string  // the delays of the generator
}

// A Status states how a load was sustained.
type Status string

// The statuses. At ByGenerator the load generator was saturated, so the result does not apply to the service.
const (
	Good        Status = "good"
	Bad         Status = "bad"
	ByGenerator Status = "generator"
	BadAgain    Status = "good at first" // tried again, and bad
)

// A Trial is a load that was offered, and how it was sustained.
type Trial struct {
	Load   float64
	Status Status
	Reason string // why it is not Good
}

// Trials judges levels, and puts them in the order of their loads.
func (l Limits) Trials(levels []Level) []Trial {
	out := make([]Trial, 0, len(levels))
	for _, v := range levels {
		status, reason := l.Judge(v)
		out = append(out, Trial{v.Load, status, reason})
	}
	slices.SortStableFunc(out, func(x, y Trial) int { return cmp.Compare(x.Load, y.Load) })
	return out
}

// Judge returns how a level was sustained, and why it was not.
//
// A level is bad if more than FailedShare failed, the 95th percentile is over P95, or less than Answered of the offered requests
// was answered. A bad level is attributed to the generator if it would be good without the delays that the generator can have
// added, if the machine was full and slowness explains the failures, or if only the wait for a connection was slow.
func (l Limits) Judge(v Level) (Status, string) {
	reason := l.exceeded(v.FailedShare, v.P95, v.Answered, v.Failure)
	switch {
	case reason == "":
		return Good, ""
	case l.exceeded(v.OwnFailed, v.OwnP95, v.OwnAnswered, "") == "":
		return ByGenerator, reason + "; " + v.GeneratorDelay
	case v.MachineLimit != "" && v.HardFailures <= l.FailedShare:
		return ByGenerator, reason + "; " + v.MachineLimit
	case v.TooFewConnections != "" && v.FailedShare <= l.FailedShare:
		return ByGenerator, reason + "; " + v.TooFewConnections
	}
	return Bad, reason
}

// exceeded names the exceeded limits, "" if there are none.
func (l Limits) exceeded(failed, p95, answered float64, failure string) string {
	var reason []string
	if failed > l.FailedShare {
		text := fmt.Sprintf("%.2f %% failed", 100*failed)
		if failure != "" {
			text += ", mostly by " + failure
		}
		reason = append(reason, text)
	}
	if l.P95 > 0 && p95 > l.P95 {
		reason = append(reason, fmt.Sprintf("p95 %s", ms(p95)))
	}
	if answered < l.Answered {
		reason = append(reason, fmt.Sprintf("%.1f %% answered", 100*answered))
	}
	return strings.Join(reason, ", ")
}

// A Breaking is a breaking point: the load that a service no longer sustains.
type Breaking struct {
	Sustained float64 // the highest load below which every load was good; 0: none
	Failed    float64 // the lowest load above that was bad, or at which the generator was saturated if none was; 0: all were good
	Status    Status  // of Failed: Bad is a breaking point, ByGenerator and BadAgain are none
	Reason    string
	Unclear   float64 // the lowest load between the two, at which the generator was saturated; 0: none
}

// findBreaking finds the breaking point among rising loads: above the last good one, and not above the first bad one. Loads between
// the two at which the generator was saturated leave it open. If a load was tried again, the later try comes second: if it is no
// longer sustained, time rather than load breaks the service.
func findBreaking(rising []Trial) (b Breaking) {
	for _, v := range rising {
		switch served := b.Failed == 0 && v.Load == b.Sustained; {
		case served && v.Status == ByGenerator: // it was good before
		case served && v.Status == Bad:
			return Breaking{Sustained: v.Load, Failed: v.Load, Status: BadAgain, Reason: v.Reason}
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
func (b Breaking) Sentence(unit string) string {
	switch {
	case b.Failed == 0:
		return sentence("not reached: %v %s were sustained, the highest load that was tried", b.Sustained, unit)
	case b.Status == ByGenerator:
		return sentence("not found: at %v %s the load generator was saturated (%s); %v were sustained", b.Failed, unit, b.Reason, b.Sustained)
	case b.Status == BadAgain:
		return sentence("not found: %v %s were borne at first, and no longer when they were tried again at the end (%s); "+
			"not the load alone decides, but also time, or what came before", b.Sustained, unit, b.Reason)
	case b.Sustained == 0 && b.Unclear == 0:
		return sentence("below %v %s, the lowest load that was tried (%s)", b.Failed, unit, b.Reason)
	}
	text := sentence("between %v and %v %s (%s)", b.Sustained, b.Failed, unit, b.Reason)
	if b.Unclear > 0 {
		text += sentence("; at %v the load generator was saturated, so it is not known closer", b.Unclear)
	}
	return text
}

// Summary states the result of the search.
func (b Breaking) Summary(unit string) string {
	switch {
	case b.Status == BadAgain:
		return "breaking point " + b.Sentence(unit)
	case b.Failed == 0:
		return sentence("%v %s were sustained, the highest load that was tried", b.Sustained, unit)
	}
	return sentence("%v %s were sustained; breaking point %s", b.Sustained, unit, b.Sentence(unit))
}

// standardMargin is the margin for everyday peaks.
const standardMargin = 1.4

// recommendations divides the sustained load by margins.
func (b Breaking) recommendations(unit string) verdict.Table {
	t := newTable("Recommended maximum loads", "the sustained load, divided by the margin", "load|margin|"+unit+"|for")
	add := func(name string, margin float64, purpose string) {
		load := count(b.Sustained / margin)
		if b.Status == BadAgain {
			load = "not known"
		}
		t.Add(name, fmt.Sprintf("%.1f×", margin), load, purpose)
	}
	add("conservative", 2.5, "loads that must not fail")
	add("standard", standardMargin, "everyday peaks")
	add("aggressive", 1, "no reserve")
	return t
}

// facts states the breaking point and the safe loads below it; burst is the name of loads that are safe for a moment.
func (b Breaking) facts(unit, burst string) []verdict.Fact {
	standard := b.Sustained / standardMargin
	safe, time := sentence("up to %v %s", standard, unit), sentence("%v to %v %s", standard, b.Sustained, unit)
	switch {
	case b.Status == BadAgain:
		safe, time = "not known", "not known"
	case b.Sustained == 0:
		safe, time = "none", "none"
	}
	return []verdict.Fact{{Name: "breaks", Value: b.Sentence(unit)}, {Name: "safe", Value: safe}, {Name: burst, Value: time}}
}

// lowestSustained requires that the lowest load is sustained.
func lowestSustained(name string, rising []Trial) verdict.Check {
	if len(rising) == 0 {
		return inconclusive(check(CheckLowest, name, "good", "there was none", false))
	}
	first := rising[0]
	if first.Status == ByGenerator {
		return inconclusive(check(CheckLowest, name, "good", first.Status, false, "at the lowest load the load generator was saturated: "+first.Reason))
	}
	return check(CheckLowest, name, "good", first.Status, first.Status == Good, "the lowest load was not sustained: "+first.Reason)
}

// longEnough compares the sustained load with the minimum of a setting.
func (b Breaking) longEnough(r *Run, setting, name string) verdict.Check {
	least := r.number(setting)
	c := check(CheckSustained, name, atLeast(least), b.Sustained, b.Sustained >= least)
	c.Severity = verdict.InconclusiveIf(b.Status == ByGenerator || b.Unclear > 0 && least < b.Failed)
	if b.Status == BadAgain {
		c.Actual += " at first"
		if least > 0 && c.Pass {
			c.Pass, c.Severity = false, verdict.InconclusiveIf(least < b.Sustained) // it was not tried again
		}
	}
	return c
}

// checkGeneratorAtLoads warns of loads at which the load generator was saturated, which are not attributed to the
// service.
func checkGeneratorAtLoads(limit, unit string, trials []Trial) verdict.Check {
	var at, reasons []string
	for _, v := range trials {
		if v.Status == ByGenerator {
			at = append(at, count(v.Load))
			reasons = append(reasons, sentence("at %v%s the load generator was saturated, not the service: %s", v.Load, unit, v.Reason))
		}
	}
	actual := "it did"
	if len(at) > 0 {
		actual = "not at " + strings.Join(at, ", ")
	}
	return advisory(check(verdict.CheckGenerator, "load generator on time", limit, actual, len(at) == 0, reasons...))
}

// checkGeneratorOfStages warns of throughputs that the load generator limited.
func checkGeneratorOfStages(stages []StageResult) verdict.Check {
	at := map[Limit]int{}
	because := map[Limit]string{}
	for _, st := range stages {
		limit, reason := st.Machine.Limit()
		at[limit]++
		because[limit] = reason
	}
	limited, unknown := at[LimitGenerator], at[LimitUnknown]
	actual, reason := "at none", ""
	switch {
	case limited > 0:
		actual = fmt.Sprintf("at %d of %d", limited, len(stages))
		reason = actual + " loads the load generator was saturated, so these figures are lower bounds of the service's (" + because[LimitGenerator] + ")"
		if unknown > 0 {
			actual += fmt.Sprintf(", not known at %d", unknown)
		}
	case unknown > 0:
		actual = fmt.Sprintf("not known at %d of %d", unknown, len(stages))
		reason = fmt.Sprintf("at %d of %d loads it is not known whether the load generator was the limit: %s", unknown, len(stages), because[LimitUnknown])
	}
	return advisory(check(verdict.CheckGenerator, "the generator was not the limit", "at no load", actual, limited+unknown == 0, reason))
}

// NextLoad returns the load to try next in search of the breaking point; 0 if it is known to a tenth, or cannot be found.
func (b Breaking) NextLoad() float64 {
	above := cmp.Or(b.Unclear, b.Failed)
	if b.Status != Bad || b.Sustained == 0 || above-b.Sustained <= b.Sustained/10 {
		return 0
	}
	if next := float64(int((b.Sustained + above) / 2)); next > b.Sustained {
		return next
	}
	return 0 // there is no whole number between them
}

// goodMeans states the limits of a level.
func (l Limits) goodMeans() string {
	text := fmt.Sprintf("good: at most %.3g %% failed", 100*l.FailedShare)
	if l.P95 > 0 {
		text += ", p95 at most " + ms(l.P95)
	}
	return text + fmt.Sprintf(", at least %.3g %% of the offered requests answered", 100*l.Answered)
}

// wrongResponses returns the number of answers with status 200 and wrong or truncated content.
func (q *Requests) wrongResponses() int64 {
	return q.Codes[shard.CodeWrongContent] + q.Codes[shard.CodeTruncated]
}

// countUnrequested returns the number of connections with unrequested bytes after an answer.
func countUnrequested(all []StageResult) (n int64) {
	for _, st := range all {
		n += st.Unrequested
	}
	return n
}

// checkResponses fails a run with a wrong answer, or with unrequested bytes, at any load and in a warm-up. counted
// holds the requests that the other checks count.
func checkResponses(counted Total, all []StageResult) verdict.Check {
	sum := total(all)
	count, cases := sum.wrongResponses(), countUnrequested(all)
	c := check(CheckCorrect, "answers are right", "all", sentence("%v wrong", count), count+cases == 0 && counted.Total() > 0)
	if counted.Total() == 0 {
		c.Actual = "no request was made"
		return inconclusive(c)
	}
	if sum.OK.Count() == 0 && count+cases == 0 {
		return c.NotJudged("no request was answered")
	}
	if n := sum.Codes[shard.CodeTruncated]; n > 0 {
		c.Actual += sentence(", %v of them truncated", n)
	}
	if before := total(ofKinds(all, kindWarmup)).wrongResponses(); before > 0 {
		c.Actual += sentence(", %v of them in the warm-up", before)
	}
	if cases > 0 {
		c.Actual += fmt.Sprintf(", %s of unrequested bytes after an answer", format.Plural(cases, "case", "cases"))
	}
	return c
}

// checkServerCount compares the backends' count of requests with the runners', if the backends are ours and were
// started for this run. A failed request may or may not have reached them.
func (r *Run) checkServerCount(stages []StageResult) []verdict.Check {
	if !r.OneHost || len(r.Samples) == 0 || r.Samples[len(r.Samples)-1].Served == 0 {
		return nil
	}
	served, all := clamp.Int64(r.Samples[len(r.Samples)-1].Served), total(stages)
	c := inconclusive(check(verdict.CheckOwnCount, "server's own count", text(all.Total()), served, served >= all.OK.Count() && served <= all.Total(),
		sentence("%v requests reached the backends, the runners counted %v, %v of them failed: some were cut off, or another client made requests",
			served, all.Total(), all.Failed.Count())))
	if !c.Pass && len(r.Failures)+len(r.Unreachable) > 0 { // they fail the run, and outrank a count that they disturbed
		c = advisory(c)
		c.Reasons = []string{sentence("%v requests reached the backends that still ran at the end, the runners counted %v: "+
			"the count of a process is lost when it dies", served, all.Total())}
	}
	return []verdict.Check{c}
}

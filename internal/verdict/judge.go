package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// Judge returns the verdict of a run from its evidence and the assessment of its suite. It does not modify its inputs.
// It adds the checks common to all suites: complete data, target availability, actions, growth, checked messages,
// and packets that AWS dropped. Apart from complete data, each applies only if the run has evidence for it.
func Judge(e *Evidence, a Assessment) *Verdict {
	m := e.Rounds[0]
	if !m.HasData() {
		a = a.withoutData()
	}
	v := &Verdict{
		Schema: Schema, TestID: m.Plan.TestID, Plan: m.Plan, Layout: a.Layout, Facts: a.Facts, Tables: a.Tables, Metrics: a.Metrics,
		Runners: make([]Runner, len(m.Runners)), Warnings: append(slices.Clone(e.Warnings), a.Warnings...), RunInfo: e.RunInfo,
		NoData: !m.HasData(), Failures: e.Failures,
	}
	if a.Declared {
		v.Suite = declaredSuite(m)
	}
	if s := a.Streams; s != nil {
		v.streams, v.Counts, v.FindingSummary, v.Runners = s, s.Counts, s.FindingSummary, slices.Clone(s.Runners)
	}
	if v.Control == nil {
		v.Control = controlOf(m)
	}
	v.Resources = resourcesOf(m, e.Samples)
	v.copyRunners(m)
	for _, round := range e.Rounds[1:] {
		for _, r := range round.Runners {
			v.EndedUnix = max(v.EndedUnix, float64(r.EndedUS)/1e6)
		}
	}
	v.Generator = generator(m)
	if s := a.Streams; s != nil && !a.Declared {
		v.Windows = v.windowsOf(e.Samples)
		v.OpenTime, v.Watched, v.Generator.Saturated = s.OpenTime, s.Watched, s.isSaturated()
	}
	completeness, warnings := completenessCheck(e, &a)
	v.Warnings = append(v.Warnings, warnings...)
	all := slices.Concat(e.processChecks(), []Check{completeness}, a.Checks, v.slopeChecks())
	if len(e.Actions) > 0 {
		v.Actions, all = e.actions(a.Streams, a.Responses), append(all, e.actionCheck())
	}
	if s := a.Streams; s != nil {
		checked := s.checkedCount() > 0
		v.MessagesChecked = &checked
		if !v.NoData {
			all = append(all, s.checkedMessageCheck())
		}
	}
	if a.Responses != nil {
		v.addResponses(m, a.Responses, e.Model)
	}
	v.decide(v.addMachines(e, a.Streams, append(all, a.Doubts...)))
	if len(v.Reasons) == 0 {
		v.Reasons = a.Passed
	}
	if worst := v.worstWindow(); worst != "" {
		v.Warnings = slices.Insert(v.Warnings, 0, worst)
	}
	if v.ConnectionsOnly() {
		v.Reasons = append([]string{reasonUnchecked + ": the service description has message: 'unchecked'"}, v.Reasons...)
	}
	if v.Stopped() && v.Plan.Seconds > 0 {
		at := slices.IndexFunc(v.Checks, func(c Check) bool { return c.ID == CheckComplete })
		v.Checks[at].Actual = v.stopTime()
		v.Reasons = slices.Insert(v.Reasons, 0, v.stopTime())
	}
	v.Sentence = v.summarize()
	return v
}

func resourcesOf(m *shard.Merged, samples []resources.Sample) Resources {
	sum := resources.Summarize(samples)
	r := Resources{BackendRSSMax: sum.BackendRSSMax, BackendCPUAverage: sum.BackendCPUPercent, NginxRSSMax: sum.NginxRSSMax, SystemSummary: resources.SummarizeSystem(samples)}
	for _, b := range m.Series {
		r.RunnerThreads = max(r.RunnerThreads, b.Threads)
	}
	return r
}

// withoutData returns the assessment of a run whose runners stored no data. No check is judged, and there are no
// results.
func (a Assessment) withoutData() Assessment {
	unjudged := func(list []Check) (out []Check) {
		for _, c := range list {
			out = append(out, c.NotJudged("no runner stored data"))
		}
		return out
	}
	a.Checks, a.Doubts = unjudged(a.Checks), unjudged(a.Doubts)
	a.Facts, a.Tables, a.Metrics, a.Warnings = nil, nil, nil, nil
	return a
}

// processChecks returns the checks of restarts of the target, and of requests to it after the run. Judge lists these
// checks first, because they may explain faults of streams.
func (e *Evidence) processChecks() (out []Check) {
	if len(e.Failures) > 0 {
		limit, failures, met := "no restart", e.Failures, false
		unplanned := slices.DeleteFunc(slices.Clone(failures), e.isPlanned)
		switch {
		case e.Rounds[0].Plan.Reconnect:
			limit, met = "restarts allowed: clients reconnect", true
		case len(unplanned) == 0:
			limit, met = "no restart without an action", true
		case len(e.Actions) > 0:
			limit, failures = "no restart without an action", unplanned
		}
		out = append(out, Check{
			ID: CheckTargetUp, Name: "target stayed up", Limit: limit, Actual: firstText(texts(failures), ""), Pass: met,
			Why: "a restart disconnects every client", Reasons: texts(failures),
		})
	}
	if len(e.Unreachable) > 0 {
		out = append(out, Check{
			ID: CheckAnswers, Name: "target answers at the end", Limit: "a response", Actual: e.Unreachable[0],
			Why:     "the service is down after the run",
			Reasons: e.Unreachable,
		})
	}
	return out
}

func (v *Verdict) copyRunners(m *shard.Merged) {
	for i, r := range m.Runners {
		out := &v.Runners[i]
		out.Index, out.Host, out.Segment, out.State = r.Index, r.Host, r.Segment, string(r.State)
		out.K6Version, out.RSSMax, out.CPUSeconds = r.K6Version, r.RSSMax, r.CPUSeconds
		v.Resources.RunnerRSSMax = max(v.Resources.RunnerRSSMax, r.RSSMax)
		if wall := float64(r.EndedUS-r.StartedUS) / 1e6; wall >= 1 { // a runner killed early has data of its start only
			v.Resources.RunnerCPUAverage += 100 * r.CPUSeconds / wall
		}
		startedUnix, endedUnix := float64(r.StartedUS)/1e6, float64(r.EndedUS)/1e6
		if i == 0 || startedUnix < v.StartedUnix {
			v.StartedUnix = startedUnix
		}
		v.EndedUnix = max(v.EndedUnix, endedUnix)
	}
	v.ScriptChecks = m.Checks
}

func quantiles(h *shard.Histogram) Quantiles {
	ms := format.InMilliseconds
	return Quantiles{P50: ms(h.Quantile(.5)), P95: ms(h.Quantile(.95)), P99: ms(h.Quantile(.99)), Max: ms(h.Max())}
}

// firstText returns the first text of a list and the number of the others, or fallback if the list is empty.
func firstText(list []string, fallback string) string {
	switch len(list) {
	case 0:
		return fallback
	case 1:
		return list[0]
	}
	return fmt.Sprintf("%s (and %s)", strings.TrimSuffix(list[0], "."), format.Count(len(list)-1, "more reason"))
}

// A weight is the effect of an unmet check on the verdict. The heaviest unmet check decides.
type weight int

const (
	noWeight      weight = iota // the check is met, not judged, or a warning; in Check.weight: not set (see effectiveWeight)
	doubt                       // invalid: turns a pass into invalid; a fail stays a fail
	byClock                     // fail: the fault depends on the planned interval alone
	wrongInterval               // invalid: the service has a different interval, so faults by interval are meaningless
	provenFault                 // fail: the fault does not depend on the interval
	incomplete                  // invalid: part of the run was not observed
)

// A State is the result of a check.
type State string

// The states of a check. Met, Warned and NotJudged do not change the outcome.
const (
	Met       State = "met"
	Broken    State = "broken"  // fails the run
	Undecided State = "invalid" // makes the run invalid
	Warned    State = "warning"
	NotJudged State = "not judged"
)

// State returns the result of the check.
func (c *Check) State() State {
	switch {
	case c.Unjudged:
		return NotJudged
	case c.Pass:
		return Met
	case c.Severity == SeverityWarning:
		return Warned
	case c.Severity == SeverityInconclusive:
		return Undecided
	}
	return Broken
}

// notJudgedIf returns NotJudged(reason) if the check is met only because there was nothing to compare with the limit.
func (c Check) notJudgedIf(nothingCompared bool, reason string) Check {
	if !nothingCompared || !c.Pass {
		return c
	}
	return c.NotJudged(reason)
}

// NotJudged returns a copy of the check that is not judged, for the given reason.
func (c Check) NotJudged(reason string) Check {
	c.Pass, c.Unjudged, c.Actual, c.Reasons = false, true, "not judged: "+reason, nil
	return c
}

func (c *Check) effectiveWeight() weight {
	switch {
	case c.Pass || c.Severity == SeverityWarning || c.Unjudged:
		return noWeight
	case c.weight != noWeight:
		return c.weight
	case c.Severity == SeverityInconclusive:
		return incomplete
	}
	return provenFault
}

// InconclusiveIf returns SeverityInconclusive if the condition holds, and otherwise SeverityFail.
func InconclusiveIf(condition bool) Severity {
	if condition {
		return SeverityInconclusive
	}
	return SeverityFail
}

// AsDoubt returns a copy of the check that, if it is not met, turns a pass into invalid. A fail stays a fail.
func (c Check) AsDoubt() Check {
	c.Severity, c.weight = SeverityInconclusive, doubt
	return c
}

// weightOfFault returns the weight of a fault. isProven means that the fault does not depend on the interval.
func weightOfFault(isProven bool) weight {
	if isProven {
		return provenFault
	}
	return byClock
}

// decide sets the verdict by the heaviest unmet check, and the lists of checks, reasons and warnings. A lighter
// inconclusive check becomes a warning if the verdict is a fail, or if its weight is doubt.
func (v *Verdict) decide(all []Check) {
	heaviest := noWeight
	for i := range all {
		heaviest = max(heaviest, all[i].effectiveWeight())
	}
	switch heaviest {
	case noWeight:
		v.Verdict = Pass
	case byClock, provenFault:
		v.Verdict = Fail
	case doubt, wrongInterval, incomplete:
		v.Verdict = Invalid
	}
	for _, c := range all {
		c.Severity = cmp.Or(c.Severity, SeverityFail)
		if w := c.effectiveWeight(); c.Severity == SeverityInconclusive && w < heaviest && (w == doubt || v.Verdict == Fail) {
			c.Severity = SeverityWarning
		}
		switch c.State() {
		case Met, NotJudged:
		case Warned:
			v.Warnings = append(v.Warnings, c.Sentences()...)
		case Broken, Undecided:
			v.Reasons = append(v.Reasons, c.Sentences()...)
		}
		v.Checks = append(v.Checks, c)
	}
}

// Sentences returns the reasons why a check is not met: at most the first ten, and the number of the others. If the
// check has no reasons, Sentences returns its actual value and its limit in one sentence.
func (c *Check) Sentences() []string {
	const limit = 10
	switch n := len(c.Reasons); {
	case n == 0:
		return []string{fmt.Sprintf("%s: %s (limit: %s)", c.Name, c.Actual, c.Limit)}
	case n > limit:
		return append(slices.Clone(c.Reasons[:limit]), fmt.Sprintf("… and %d more; %s: %s", n-limit, c.Name, c.Actual))
	}
	return c.Reasons
}

// proofs reports, for each kind of fault, whether the run has a fault that does not depend on the interval.
type proofs struct{ earlyEnd, missed, duplicated, reordered bool }

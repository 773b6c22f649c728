package verdict

import (
	"cmp"
	"fmt"
	"slices"
)

// A weight is the effect of an unmet check on the verdict. The heaviest unmet check decides.
type weight int

const (
	noWeight      weight = iota // the check is met, or a warning; as Check.weight: see effectiveWeight
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

// weightOfFault returns the weight of a fault, which may be proven without the interval.
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

package verdict

import (
	"cmp"
	"fmt"
	"slices"
)

// A weight is how much a check that is not met weighs: the heaviest one decides the verdict.
type weight int

const (
	// the check is met or a warning; in Check.weight: the default, proven or incomplete
	noWeight    weight = iota // the check is met or a warning; in Check.weight: the default, proven or incomplete
	doubt                     // invalid: turns a pass into invalid, never a fail
	byClock                   // fail: rests on the planned interval alone
	noInterval                // invalid: the planned interval is not the service's, so what rests on it means nothing
	provenFault               // fail: a fault by itself
	incomplete                // invalid: not all was observed
)

// A State is the result of a check.
type State string

// The states of a check. Met and NotJudged never change the outcome, nor does Warned.
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

// notJudgedIf returns NotJudged(reason) if there was nothing to compare with the limit, unless the check is broken.
func (c Check) notJudgedIf(condition bool, reason string) Check {
	if !condition || !c.Pass {
		return c
	}
	return c.NotJudged(reason)
}

// NotJudged returns a copy of the check that is not judged; reason names what was missing.
func (c Check) NotJudged(reason string) Check {
	c.Pass, c.Unjudged, c.Actual, c.Reasons = false, true, "not judged: "+reason, nil
	return c
}

func (c *Check) weighs() weight {
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

// InconclusiveIf returns the severity of a check that proves nothing under a condition, and otherwise fails the run.
func InconclusiveIf(condition bool) Severity {
	if condition {
		return SeverityInconclusive
	}
	return SeverityFail
}

// Inconclusive returns a copy of the check that, if it is not met, turns a pass into invalid, and leaves a fail a
// fail.
func (c Check) Inconclusive() Check {
	c.Severity, c.weight = SeverityInconclusive, doubt
	return c
}

// inconclusiveIf returns Inconclusive if something other than the service may explain the measured value.
func (c Check) inconclusiveIf(explained bool) Check {
	if explained {
		return c.Inconclusive()
	}
	return c
}

// restsOn returns proven if there is proof that does not depend on the interval, otherwise byClock.
func restsOn(proof bool) weight {
	if proof {
		return provenFault
	}
	return byClock
}

// decide sets the verdict by the heaviest check that is not met, and collects the reasons. The reasons of lighter
// invalid checks become warnings.
func (v *Verdict) decide(all []Check) {
	heaviest := noWeight
	for i := range all {
		heaviest = max(heaviest, all[i].weighs())
	}
	switch heaviest {
	case noWeight:
		v.Verdict = Pass
	case byClock, provenFault:
		v.Verdict = Fail
	case doubt, noInterval, incomplete:
		v.Verdict = Invalid
	}
	for _, c := range all {
		c.Severity = cmp.Or(c.Severity, SeverityFail)
		if w := c.weighs(); c.Severity == SeverityInconclusive && w < heaviest && (w == doubt || v.Verdict == Fail) {
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

// Sentences returns the reasons why a check is not met, at most the first ten.
func (c *Check) Sentences() []string {
	const most = 10
	switch n := len(c.Reasons); {
	case n == 0:
		return []string{fmt.Sprintf("%s: %s, the limit is %s", c.Name, c.Actual, c.Limit)}
	case n > most:
		return append(slices.Clone(c.Reasons[:most]), fmt.Sprintf("… and %d more; %s: %s", n-most, c.Name, c.Actual))
	}
	return c.Reasons
}

// A proofs holds which counts are valid whatever the interval is.
type proofs struct{ unheld, missed, duplicated, reordered bool }

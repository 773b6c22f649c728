package verdict

import (
	"fmt"
	"slices"
)

// A weight is how much a criterion that is not met weighs: the heaviest one decides the verdict.
type weight int

const (
	nothing    weight = iota // it is met or advisory; as a field: proven, or incomplete if the criterion is invalid
	doubt                    // invalid: takes a pass back, excuses no failure
	byClock                  // fail: rests on the planned interval alone
	noInterval               // invalid: the planned interval is not the service's, so what rests on it means nothing
	proven                   // fail: a fault by itself
	incomplete               // invalid: not all was observed
)

func (c *Criterion) weighs() weight {
	switch {
	case c.Pass || c.Advisory:
		return nothing
	case c.weight != nothing:
		return c.weight
	case c.Invalid:
		return incomplete
	}
	return proven
}

// InDoubt is the criterion as one that takes a pass back where it is not met, and excuses no fault.
func (c Criterion) InDoubt() Criterion {
	c.Invalid, c.weight = true, doubt
	return c
}

// inDoubtIf is InDoubt where something else than the service may explain what was measured.
func (c Criterion) inDoubtIf(explained bool) Criterion {
	if explained {
		return c.InDoubt()
	}
	return c
}

// restsOn is proven if there is proof that does not need the interval, else byClock.
func restsOn(proof bool) weight {
	if proof {
		return proven
	}
	return byClock
}

// decide chooses pass, fail or invalid by the heaviest criterion that is not met, and lists the sentences
// of all. Those of an invalid criterion that gives way become warnings.
func (v *Verdict) decide(all []Criterion) {
	heaviest := nothing
	for i := range all {
		heaviest = max(heaviest, all[i].weighs())
	}
	switch heaviest {
	case nothing:
		v.Verdict = Pass
	case byClock, proven:
		v.Verdict = Fail
	case doubt, noInterval, incomplete:
		v.Verdict = Invalid
	}
	for _, c := range all {
		if w := c.weighs(); c.Invalid && w < heaviest && (w == doubt || v.Verdict == Fail) {
			c.Advisory = true
		}
		switch {
		case c.Pass:
		case c.Advisory:
			v.Warnings = append(v.Warnings, c.Sentences()...)
		default:
			v.Reasons = append(v.Reasons, c.Sentences()...)
		}
		v.Criteria = append(v.Criteria, c)
	}
}

// Sentences say why a criterion is not met, the first of many.
func (c *Criterion) Sentences() []string {
	const most = 10
	switch n := len(c.Reasons); {
	case n == 0:
		return []string{fmt.Sprintf("%s: %s, the limit is %s", c.Name, c.Actual, c.Limit)}
	case n > most:
		return append(slices.Clone(c.Reasons[:most]), fmt.Sprintf("… and %d more of this kind (%s: %s)", n-most, c.Name, c.Actual))
	}
	return c.Reasons
}

// proofs say which counts hold whatever the interval is.
type proofs struct{ unheld, missed, duplicated, reordered bool }

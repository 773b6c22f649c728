package verdict

import "slices"

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

// doubtful is doubt if a stall of the runner may explain what was measured, otherwise the weight w.
func doubtful(stalled bool, w weight) weight {
	if stalled {
		return doubt
	}
	return w
}

// restsOn is proven if there is proof that does not need the interval, else byClock.
func restsOn(proof bool) weight {
	if proof {
		return proven
	}
	return byClock
}

// outcome chooses pass, fail or invalid by the heaviest criterion that is not met, and lists the sentences
// of all. Those of an invalid criterion that gives way become warnings.
func (j *judge) outcome() {
	heaviest := nothing
	for i := range j.v.Criteria {
		heaviest = max(heaviest, j.v.Criteria[i].weighs())
	}
	switch heaviest {
	case nothing:
		j.v.Verdict = Pass
	case byClock, proven:
		j.v.Verdict = Fail
	case doubt, noInterval, incomplete:
		j.v.Verdict = Invalid
	}
	j.v.Warnings = slices.Clip(j.v.Warnings) // the caller's
	for i := range j.v.Criteria {
		c := &j.v.Criteria[i]
		if w := c.weighs(); c.Invalid && w < heaviest && (w == doubt || j.v.Verdict == Fail) {
			c.Advisory = true
		}
		switch {
		case c.Pass:
		case c.Advisory:
			j.v.Warnings = append(j.v.Warnings, j.sentencesOf[i]...)
		default:
			j.v.Reasons = append(j.v.Reasons, j.sentencesOf[i]...)
		}
	}
}

// proofs say which counts hold whatever the interval is.
type proofs struct{ unheld, missed, duplicated, reordered bool }

package suite

import (
	"fmt"
	"math"

	"github.com/aclements/go-moremath/stats"
)

// even is the difference that a winner has to exceed, however sure it is: less is not worth a change.
const even = .1

// confidence is how often the interval of a difference holds the true one.
const confidence = .95

// A Contest is who of two is better at a figure, if it can be told.
//
// Both are measured in rounds that alternate. The difference of a round is that of the logarithms, so that it does not matter which
// of the two is divided by which, and what was alike for both in a round falls out. Its mean over the rounds has an interval by
// Student's t. As benchstat does, one takes many short rounds rather than a long one, and says nothing of a difference that
// chance explains; as hyperfine does, one warms up first. Neither asks what was the limit: here that comes first.
type Contest struct {
	Winner   string // single or cluster; "": nobody
	By       string // how much better the winner is
	Interval string // by how much the cluster differs from the single backend, 95 %
	Why      string // why nobody has won
	Briefly  string // the same for a table
}

// Unfit is why two loads cannot be compared, in a sentence and briefly; empty if they can.
type Unfit struct{ Why, Briefly string }

// Decide names the better one of two by a figure of each round; lower tells that less is better. A reason why the two cannot be
// compared, if there is one, outranks any difference.
func Decide(one, many []float64, lower bool, unfit Unfit) Contest {
	n := min(len(one), len(many))
	logs := make([]float64, 0, n)
	for i := range n {
		if one[i] > 0 && many[i] > 0 {
			logs = append(logs, math.Log(many[i]/one[i]))
		}
	}
	if len(logs) < 2 || len(logs) < n {
		return Contest{Interval: "–", Briefly: "few rounds", Why: "it takes two rounds or more, with an answer in each, to tell a difference from chance"}
	}
	mean, low, high := stats.MeanCI(logs, confidence)
	c := Contest{Interval: fmt.Sprintf("%s … %s", signed(low), signed(high))}
	factor := math.Exp(math.Abs(mean))
	switch {
	case unfit.Why != "":
		c.Why, c.Briefly = unfit.Why, unfit.Briefly
	case low <= 0 && high >= 0:
		c.Why, c.Briefly = "chance explains it", "chance"
	case factor-1 < even:
		c.Why, c.Briefly = fmt.Sprintf("under %.0f %%", 100*even), "little"
	case (mean > 0) == lower:
		c.Winner = single
	default:
		c.Winner = cluster
	}
	if c.Winner != "" {
		c.By = fmt.Sprintf("%.0f %%", 100*(factor-1))
	}
	return c
}

// signed writes a difference of logarithms in percent.
func signed(log float64) string {
	share := 100 * (math.Exp(log) - 1)
	if math.IsInf(share, 0) || share >= 1000 {
		return ">+999 %"
	}
	return fmt.Sprintf("%+.0f %%", share)
}

// Sentence says who won, or why nobody did.
func (c Contest) Sentence() string {
	if c.Winner != "" {
		return fmt.Sprintf("winner: %s by %s (interval of the difference: %s)", c.Winner, c.By, c.Interval)
	}
	if c.Interval == "–" {
		return "no winner: " + c.Why
	}
	return fmt.Sprintf("no winner: the interval of the difference is %s; %s", c.Interval, c.Why)
}

// unfit says why two loads cannot be compared: the load generator was saturated at one of them, or may have been.
func unfit(one, many Machine) Unfit {
	for _, side := range []struct {
		name string
		m    Machine
	}{{"the single backend", one}, {"the cluster", many}} {
		switch limit, why := side.m.Limit(); limit {
		case LimitIsOurs:
			return Unfit{fmt.Sprintf("the load generator was saturated at %s (%s)", side.name, why), "generator"}
		case LimitUnknown:
			return Unfit{fmt.Sprintf("what was the limit at %s is not known (%s)", side.name, why), "not known"}
		}
	}
	return Unfit{}
}

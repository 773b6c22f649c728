package compare

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"

	"github.com/sse-soak/sse-soak/internal/format"
)

// Text writes the comparison for a terminal.
func (c *Comparison) Text(w io.Writer) error {
	worse := c.Regressions()
	word := "REGRESSION"
	if len(worse) == 0 {
		word = "NO REGRESSION"
	}
	fmt.Fprintf(w, "%s  %s against %s\n", word, format.Count(len(c.New), "new run"), format.Count(len(c.Old), "old run"))
	for _, change := range worse {
		fmt.Fprintf(w, "  - %s\n", change.Sentence())
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "metric\told median\tspread\tnew median\tspread\tchange\tsignificance\t\t")
	for _, change := range c.Changes {
		if change.Fault && change.Old.Max == 0 && change.New.Max == 0 {
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", change.Name, change.number(change.Old.Median), spread(change.Old),
			change.number(change.New.Median), spread(change.New), change.relative(), change.significance(), change.Outcome)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%s\n", c.rule())
	for _, name := range c.Undetectable {
		fmt.Fprintf(w, "undetectable: %s\n", name)
	}
	for _, warning := range c.Warnings {
		fmt.Fprintf(w, "warning: %s\n", warning)
	}
	return nil
}

func (c *Comparison) rule() string {
	worse := fmt.Sprintf("A metric is worse if its median got worse by more than %.0f %% (and by more than 5 ms, 1 µs of CPU, 1 MiB or\n1 %% of a core), and by more than chance explains:", 100*c.Tolerance)
	const firstFault = "A fault that no old run had is always worse."
	n, m := len(c.Old), len(c.New)
	if p := MinP(n, m); p > alpha {
		return fmt.Sprintf("%s the mean of the new runs is outside of the range that\ncontains it with %.0f %% probability (Student's t over the old runs). A rank-sum test needs more runs,\nsuch as 4 old and 4 new ones: with %d old and %d new, p is at least %.2g.\n%s",
			worse, 100*(1-alpha), n, m, p, firstFault)
	}
	return fmt.Sprintf("%s p is at most %.2g in a two-sided\nrank-sum test (Mann-Whitney). %s", worse, alpha, firstFault)
}

// Sentence describes the change of the metric.
func (c Change) Sentence() string {
	if c.Fault && c.Old.Max == 0 {
		return fmt.Sprintf("%s: up to %.0f, where no old run had any", c.Name, c.New.Max)
	}
	return fmt.Sprintf("%s: %s instead of %s (%s; %s)", c.Name, c.number(c.New.Median), c.number(c.Old.Median),
		c.relative(), c.significance())
}

// significance states the evidence of the change: a first fault, the p-value, or the band.
func (c Change) significance() string {
	switch {
	case c.Fault && c.Old.Max == 0:
		return "a fault"
	case c.Band == nil:
		return fmt.Sprintf("p = %.3f", c.P)
	}
	preposition := "in"
	if c.Significant {
		preposition = "outside"
	}
	return fmt.Sprintf("%s %s…%s", preposition, c.number(max(c.Band.Low, 0)), c.number(c.Band.High))
}

func (c Change) number(v float64) string { return format.Quantity(v, c.Unit) }

func spread(s Summary) string { return format.Percent(100 * s.Spread()) }

func (c Change) relative() string {
	share := c.Relative()
	if math.IsInf(share, 0) {
		return "from 0"
	}
	return format.Change(100*share, "%")
}

package suite

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// Limits are what a load must keep to count as sustained.
type Limits struct {
	FailedShare float64 // at most, 0 to 1
	P95         float64 // at most, milliseconds; 0: any
	Answered    float64 // at least this share of what was offered
}

// A Level is a load and how it was sustained: as it was seen, and without what the generator can have
// added to it (see saturation.go).
type Level struct {
	Load                  float64 // offered: requests/s, or requests at a time
	Answered, OwnAnswered float64 // share of the offered requests that were answered well
	FailedShare           float64 // of the requests that were made
	Failure               string  // what most of these had, in words; "": not said
	OwnFailed             float64
	P95, OwnP95           float64 // of the good answers, milliseconds
	Firm                  float64 // share that failed in a way that no slowness explains: a status, a wrong answer, a reset
	Full                  string  // that AWS dropped packets of the runners, or that the machine was full that they share with the service; "" if not
	Held                  string  // why the generator had too few connections for the rate; "": it had enough
	Excuse                string  // what the generator did
}

// Status is how a load was sustained.
type Status string

// A load at which the load generator was saturated says nothing of the service.
const (
	Good        Status = "good"
	Bad         Status = "bad"
	ByGenerator Status = "generator"
	NoMore      Status = "good at first" // tried again, and bad
)

// A Tried load is one that was offered, and how it was sustained.
type Tried struct {
	Load   float64
	Status Status
	Why    string // where it is not Good
}

// Try judges levels, and puts them in the order of their loads.
func (l Limits) Try(levels []Level) []Tried {
	out := make([]Tried, 0, len(levels))
	for _, v := range levels {
		status, why := l.Judge(v)
		out = append(out, Tried{v.Load, status, why})
	}
	slices.SortStableFunc(out, func(x, y Tried) int { return cmp.Compare(x.Load, y.Load) })
	return out
}

// Judge says how a level was sustained, and why where it was not.
//
// A level is bad when more than FailedShare failed, when the 95th percentile is over P95, or when
// less than Answered of what was offered was answered. It is the generator's when it is bad, but would
// not be without what the generator can have added, when the machine was full and no more failed
// than slowness explains, or when no more failed than may and all that was slow is the wait for a connection.
func (l Limits) Judge(v Level) (Status, string) {
	why := l.missed(v.FailedShare, v.P95, v.Answered, v.Failure)
	switch {
	case why == "":
		return Good, ""
	case l.missed(v.OwnFailed, v.OwnP95, v.OwnAnswered, "") == "":
		return ByGenerator, why + "; " + v.Excuse
	case v.Full != "" && v.Firm <= l.FailedShare:
		return ByGenerator, why + "; " + v.Full
	case v.Held != "" && v.FailedShare <= l.FailedShare:
		return ByGenerator, why + "; " + v.Held
	}
	return Bad, why
}

// missed says which limits are not kept, "" if all are.
func (l Limits) missed(failed, p95, answered float64, failure string) string {
	var why []string
	if failed > l.FailedShare {
		text := fmt.Sprintf("%.2f %% failed", 100*failed)
		if failure != "" {
			text += ", mostly by " + failure
		}
		why = append(why, text)
	}
	if l.P95 > 0 && p95 > l.P95 {
		why = append(why, fmt.Sprintf("p95 %s", ms(p95)))
	}
	if answered < l.Answered {
		why = append(why, fmt.Sprintf("%.1f %% answered", 100*answered))
	}
	return strings.Join(why, ", ")
}

// A Breaking point is where a service stops bearing its load.
type Breaking struct {
	Sustained float64 // the highest load below which every load was good; 0: none
	Failed    float64 // the lowest load above that was bad, or at which the generator was saturated if none was; 0: all were good
	Status    Status  // of Failed: Bad is a breaking point, ByGenerator and NoMore are none
	Why       string
	Unclear   float64 // the lowest load between the two, at which the generator was saturated; 0: none
}

// FindBreaking finds the breaking point among rising loads: above the last of those that were good, and not above the first that
// was bad. Loads between the two at which the generator was saturated leave open where. Of one that was tried again the later
// try comes behind: where a load is no longer borne, it is not the load that breaks the service.
func FindBreaking(rising []Tried) (b Breaking) {
	for _, v := range rising {
		switch again := b.Failed == 0 && v.Load == b.Sustained; {
		case again && v.Status == ByGenerator: // it was good before
		case again && v.Status == Bad:
			return Breaking{Sustained: v.Load, Failed: v.Load, Status: NoMore, Why: v.Why}
		case v.Status == Bad:
			if b.Failed > 0 {
				b.Unclear = b.Failed
			}
			b.Failed, b.Status, b.Why = v.Load, v.Status, v.Why
			return b
		case b.Failed > 0:
		case v.Status == ByGenerator:
			b.Failed, b.Status, b.Why = v.Load, v.Status, v.Why
		default:
			b.Sustained = v.Load
		}
	}
	return b
}

// Sentence says it for people.
func (b Breaking) Sentence(unit string) string {
	switch {
	case b.Failed == 0:
		return fmt.Sprintf("not reached: %s %s were sustained, the highest load that was tried", count(b.Sustained), unit)
	case b.Status == ByGenerator:
		return fmt.Sprintf("not found: at %s %s the load generator was saturated (%s); %s were sustained", count(b.Failed), unit, b.Why, count(b.Sustained))
	case b.Status == NoMore:
		return fmt.Sprintf("not found: %s %s were borne at first, and no longer when they were tried again at the end (%s); not the load alone decides, but also time, or what came before",
			count(b.Sustained), unit, b.Why)
	case b.Sustained == 0 && b.Unclear == 0:
		return fmt.Sprintf("below %s %s, the lowest load that was tried (%s)", count(b.Failed), unit, b.Why)
	}
	text := fmt.Sprintf("between %s and %s %s (%s)", count(b.Sustained), count(b.Failed), unit, b.Why)
	if b.Unclear > 0 {
		text += fmt.Sprintf("; at %s the load generator was saturated, so it is not known closer", count(b.Unclear))
	}
	return text
}

// Summary is what came of the search, in one sentence.
func (b Breaking) Summary(unit string) string {
	text := fmt.Sprintf("%s %s were sustained", count(b.Sustained), unit)
	if b.Failed == 0 {
		return text + ", the highest load that was tried"
	}
	return text + "; breaking point " + b.Sentence(unit)
}

// margins are what is sustained, divided by what is recommended.
var margins = []struct {
	Name   string
	Margin float64
	For    string
}{{"conservative", 2.5, "what must not fail"}, {"standard", 1.4, "everyday peaks"}, {"aggressive", 1, "no reserve"}}

func (b Breaking) recommendations(unit string) verdict.Table {
	t := verdict.Table{
		Title: "Recommended maximum loads", Note: "what was sustained, divided by the margin",
		Columns: []string{"load", "margin", unit, "for"},
	}
	for _, m := range margins {
		if b.Status == NoMore {
			t.Add(m.Name, fmt.Sprintf("%.1f×", m.Margin), "not known", m.For)
			continue
		}
		t.Add(m.Name, fmt.Sprintf("%.1f×", m.Margin), count(b.Sustained/m.Margin), m.For)
	}
	return t
}

// facts say where it breaks and what is safe below; burst is the name of what is safe only for a moment.
func (b Breaking) facts(unit, burst string) []verdict.Fact {
	safe, moment := b.Ranges(unit)
	return []verdict.Fact{{Name: "breaks", Value: b.Sentence(unit)}, {Name: "safe", Value: safe}, {Name: burst, Value: moment}}
}

// firstGood asks that the lowest load is sustained: without that there is nothing to compare with.
func firstGood(name string, rising []Tried) verdict.Check {
	c := verdict.Check{ID: CheckLowest, Name: name, Limit: "good", Actual: "there was none", Severity: verdict.SeverityInconclusive, Why: "what breaks at once has no breaking point"}
	if len(rising) == 0 {
		return c
	}
	first := rising[0]
	c.Actual, c.Pass, c.Severity = string(first.Status), first.Status == Good, verdict.InconclusiveIf(first.Status == ByGenerator)
	switch first.Status {
	case Bad:
		c.Reasons = []string{"the lowest load was not sustained: " + first.Why}
	case ByGenerator:
		c.Reasons = []string{"at the lowest load the load generator was saturated: " + first.Why}
	}
	return c
}

// enough compares what was sustained with the least that a setting asks for.
func (b Breaking) enough(r *Run, setting, name string) verdict.Check {
	least := r.number(setting)
	c := verdict.Check{
		ID: CheckSustained, Name: name, Limit: "any", Actual: count(b.Sustained), Pass: b.Sustained >= least, Severity: verdict.InconclusiveIf(b.Status == ByGenerator || b.Unclear > 0 && least < b.Failed),
		Why: "what is planned with has to be sustained",
	}
	if least > 0 {
		c.Limit = "at least " + count(least)
	}
	if b.Status == NoMore {
		c.Actual += " at first"
		if least > 0 && c.Pass {
			c.Pass, c.Severity = false, verdict.InconclusiveIf(least < b.Sustained) // which nobody has tried again
		}
	}
	return c
}

// keptUp is advisory: loads at which the load generator was saturated are not held against the service.
func keptUp(limit, unit string, tried []Tried) verdict.Check {
	c := verdict.Check{
		ID: verdict.CheckGenerator, Name: "the generator kept up", Limit: limit, Actual: "it did", Pass: true, Severity: verdict.SeverityWarning, Why: "a saturated load generator must not be read as a slow server",
	}
	var at []string
	for _, v := range tried {
		if v.Status == ByGenerator {
			at = append(at, count(v.Load))
			c.Reasons = append(c.Reasons, fmt.Sprintf("at %s%s the load generator was saturated, not the service: %s", count(v.Load), unit, v.Why))
		}
	}
	if len(at) > 0 {
		c.Actual, c.Pass = "not at "+strings.Join(at, ", "), false
	}
	return c
}

// Ranges says where it is safe, and where only for a moment.
func (b Breaking) Ranges(unit string) (safe, burst string) {
	switch {
	case b.Status == NoMore:
		return "not known", "not known"
	case b.Sustained == 0:
		return "none", "none"
	}
	standard := count(b.Sustained / 1.4)
	safe = fmt.Sprintf("up to %s %s", standard, unit)
	burst = fmt.Sprintf("%s to %s %s", standard, count(b.Sustained), unit)
	return safe, burst
}

// Between is the load to try next in search of the breaking point, 0 when it is known to a tenth
// or not to be found.
func (b Breaking) Between() float64 {
	above := cmp.Or(b.Unclear, b.Failed)
	if b.Status != Bad || b.Sustained == 0 || above-b.Sustained <= b.Sustained/10 {
		return 0
	}
	if next := float64(int((b.Sustained + above) / 2)); next > b.Sustained {
		return next
	}
	return 0 // whole numbers have none between
}

// goodMeans says what a level must keep.
func (l Limits) goodMeans() string {
	text := fmt.Sprintf("good: at most %.3g %% failed", 100*l.FailedShare)
	if l.P95 > 0 {
		text += ", p95 at most " + ms(l.P95)
	}
	return text + fmt.Sprintf(", at least %.3g %% of what was offered answered", 100*l.Answered)
}

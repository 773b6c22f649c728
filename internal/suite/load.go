package suite

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Limits are what a load must keep to count as sustained.
type Limits struct {
	FailedShare float64 // at most, 0 to 1
	P95         float64 // at most, milliseconds; 0: any
	Answered    float64 // at least this share of what was offered
}

// A Level is a load and how it was sustained: as it was seen, and without what the generator can have
// added to it (see blame.go).
type Level struct {
	Load                  float64 // offered: requests/s, or requests at a time
	Answered, OwnAnswered float64 // share of the offered requests that were answered well
	FailedShare           float64 // of the requests that were made
	OwnFailed             float64
	P95, OwnP95           float64 // of the good answers, milliseconds
	Firm                  float64 // share that failed in a way that no slowness explains: a status, a wrong answer, a reset
	Full                  string  // that the machine was full that service and runners share, "" if it was not
	Excuse                string  // what the generator did
}

// Status is how a load was sustained.
type Status string

// A load at which the generator was the limit says nothing of the service.
const (
	Good        Status = "good"
	Bad         Status = "bad"
	ByGenerator Status = "generator"
)

// Judge says how a level was sustained, and why where it was not.
//
// A level is bad when more than FailedShare failed, when the 95th percentile is over P95, or when
// less than Answered of what was offered was answered. It is the generator's when it is bad, but would
// not be without what the generator can have added, or when the machine was full and no more failed
// than slowness explains.
func (l Limits) Judge(v Level) (Status, string) {
	why := l.missed(v.FailedShare, v.P95, v.Answered)
	switch {
	case why == "":
		return Good, ""
	case l.missed(v.OwnFailed, v.OwnP95, v.OwnAnswered) == "":
		return ByGenerator, why + "; " + v.Excuse
	case v.Full != "" && v.Firm <= l.FailedShare:
		return ByGenerator, why + "; " + v.Full
	}
	return Bad, why
}

// missed says which limits are not kept, "" if all are.
func (l Limits) missed(failed, p95, answered float64) string {
	var why []string
	if failed > l.FailedShare {
		why = append(why, fmt.Sprintf("%.2f %% failed", 100*failed))
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
	Failed    float64 // the lowest load that was not; 0: all were good
	Status    Status  // of Failed: Bad is a breaking point, ByGenerator is none
	Why       string
}

// FindBreaking looks for the breaking point among levels of any order.
func (l Limits) FindBreaking(levels []Level) (b Breaking) {
	levels = slices.SortedFunc(slices.Values(levels), func(x, y Level) int { return cmp.Compare(x.Load, y.Load) })
	for _, v := range levels {
		status, why := l.Judge(v)
		if status != Good {
			b.Failed, b.Status, b.Why = v.Load, status, why
			return b
		}
		b.Sustained = v.Load
	}
	return b
}

// Sentence says it for people.
func (b Breaking) Sentence(unit string) string {
	switch {
	case b.Failed == 0:
		return fmt.Sprintf("not reached: %s %s were sustained, the highest load that was tried", count(b.Sustained), unit)
	case b.Status == ByGenerator:
		return fmt.Sprintf("not found: at %s %s the generator was the limit (%s); %s were sustained", count(b.Failed), unit, b.Why, count(b.Sustained))
	case b.Sustained == 0:
		return fmt.Sprintf("below %s %s, the lowest load that was tried (%s)", count(b.Failed), unit, b.Why)
	}
	return fmt.Sprintf("between %s and %s %s (%s)", count(b.Sustained), count(b.Failed), unit, b.Why)
}

// A Recommendation is a load to plan with.
type Recommendation struct {
	Name   string
	Margin float64 // what was sustained, divided by what is recommended
	Load   float64
	For    string
}

// Recommend derives loads from the highest that was sustained.
func Recommend(sustained float64) []Recommendation {
	out := []Recommendation{
		{Name: "conservative", Margin: 2.5, For: "what must not fail"},
		{Name: "standard", Margin: 1.4, For: "everyday peaks"},
		{Name: "aggressive", Margin: 1, For: "no reserve"},
	}
	for i := range out {
		out[i].Load = sustained / out[i].Margin
	}
	return out
}

// Ranges says where it is safe, and where only for a moment.
func (b Breaking) Ranges(unit string) (safe, burst string) {
	if b.Sustained == 0 {
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
	if b.Status != Bad || b.Sustained == 0 || b.Failed-b.Sustained <= b.Sustained/10 {
		return 0
	}
	return float64(int((b.Sustained + b.Failed) / 2))
}

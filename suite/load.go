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

// A Level is a load and how it was sustained.
type Level struct {
	Load        float64 // offered: requests/s, or requests at a time
	Answered    float64 // share of the offered requests that were answered well
	FailedShare float64 // of the requests that were made
	ServerSaid  float64 // share that the server itself answered with an error or wrongly
	P95         float64 // of the good answers, milliseconds
	ServersP95  float64 // P95 without all that the generator can have added to it; 0: not known
	Dropped     int64   // requests that the generator never made
	Busy        float64 // mean share of its virtual users that were waiting for an answer
	Generator   string  // why the generator may be to blame, "" if nothing speaks for it
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
// less than Answered of what was offered was answered. It is the generator's when it is bad, the
// server itself reported no error and was not too slow by itself, and the generator was starved, or
// left requests out while half of its virtual users were idle.
func (l Limits) Judge(v Level) (Status, string) {
	var why []string
	if v.FailedShare > l.FailedShare {
		why = append(why, fmt.Sprintf("%.2f %% failed", 100*v.FailedShare))
	}
	if l.P95 > 0 && v.P95 > l.P95 {
		why = append(why, fmt.Sprintf("p95 %s", ms(v.P95)))
	}
	if v.Answered < l.Answered {
		why = append(why, fmt.Sprintf("%.1f %% answered", 100*v.Answered))
	}
	if len(why) == 0 {
		return Good, ""
	}
	text := strings.Join(why, ", ")
	if v.ServerSaid > l.FailedShare || l.P95 > 0 && v.ServersP95 > l.P95 {
		return Bad, text
	}
	if v.Generator != "" {
		return ByGenerator, text + "; " + v.Generator
	}
	if v.Dropped > 0 && v.Busy < .5 {
		return ByGenerator, fmt.Sprintf("%s; %d requests were never made, though %.0f %% of the virtual users were idle", text, v.Dropped, 100*(1-v.Busy))
	}
	return Bad, text
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

package main

import (
	"math/rand/v2"
	"strconv"
	"time"
)

// A plan is what one soak is asked to do.
type plan struct {
	Connections int
	Seconds     int
	Interval    float64 // seconds
	Runners     int
	PerVU       int // 0: as soak chooses
	Reconnect   bool
	LateMS      int
	MaxLate     int
	Prefix      string
}

// lead is how many seconds before its end a soak asks for the end of its streams.
const lead = 5

func drawPlan(r *rand.Rand) plan {
	p := plan{
		Connections: 10 + r.IntN(91), Seconds: 8 + r.IntN(13), Runners: 1 + r.IntN(2),
		LateMS: 1000, MaxLate: -1, Prefix: "c" + strconv.Itoa(r.IntN(1000)) + "-",
	}
	intervals := []float64{0.5, 0.8, 1, 1.5, 2}
	most := 1
	for most < len(intervals) && intervals[most]*6 <= float64(p.Seconds-lead) {
		most++
	}
	p.Interval = intervals[r.IntN(most)]
	if r.IntN(2) == 0 {
		p.PerVU = []int{1, 2, 5}[r.IntN(3)]
	}
	return p
}

// lengthen makes the streams last for at least so many intervals and seconds.
func (p *plan) lengthen(intervals, seconds float64) {
	need := max(intervals*p.Interval, seconds)
	if float64(p.Seconds-lead) < need {
		p.Seconds = min(lead+int(need+0.999), 20)
	}
	for float64(p.Seconds-lead) < intervals*p.Interval {
		p.Interval /= 2
	}
}

func (p *plan) interval() time.Duration { return time.Duration(p.Interval * float64(time.Second)) }
func (p *plan) late() time.Duration     { return time.Duration(p.LateMS) * time.Millisecond }

// noops is how many each stream will surely get.
func (p *plan) noops() int { return int(float64(p.Seconds-lead)/p.Interval) - 1 }

// tolerance is how long before the end a noop may be due and still be on its way.
func (p *plan) tolerance() time.Duration { return min(p.late(), p.interval()/2) }

func (p *plan) id(n int) string { return p.Prefix + strconv.Itoa(n) }

// flags are those of `soak run`.
func (p *plan) flags() []string {
	flags := []string{
		"--connections", strconv.Itoa(p.Connections), "--seconds", strconv.Itoa(p.Seconds),
		"--noop-interval", strconv.FormatFloat(p.Interval, 'f', -1, 64), "--runners", strconv.Itoa(p.Runners),
		"--connections-per-vu", strconv.Itoa(p.PerVU), "--prefix", p.Prefix,
		"--late-ms", strconv.Itoa(p.LateMS), "--max-late", strconv.Itoa(p.MaxLate),
	}
	if p.Reconnect {
		flags = append(flags, "--reconnect")
	}
	return flags
}

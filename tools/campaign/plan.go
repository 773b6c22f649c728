package main

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// A plan has the settings of one soak.
type plan struct {
	Connections int
	Seconds     int
	Interval    float64 // seconds
	Runners     int
	PerVU       int // clients of a virtual user; 0: soak chooses the number
	Reconnect   bool
	MaxOutage   float64 `json:",omitempty"` // seconds; 0: the default
	LateMS      int     // milliseconds after which a message is late
	MaxLate     int     // maximum number of late messages; -1: no limit
	Prefix      string
}

// lead is the time in seconds between a soak's requests to end its streams and the end of the soak.
const lead = 5

func drawPlan(r *rand.Rand) plan {
	p := plan{
		Connections: 10 + r.IntN(91), Seconds: 8 + r.IntN(13), Runners: 1 + r.IntN(2),
		LateMS: 1000, MaxLate: -1, Prefix: fmt.Sprintf("c%d-", r.IntN(1000)),
	}
	intervals := []float64{0.5, 0.8, 1, 1.5, 2}
	count := 1 // number of intervals that fit at least six times into a stream
	for count < len(intervals) && intervals[count]*6 <= float64(p.Seconds-lead) {
		count++
	}
	p.Interval = oneOf(r, intervals[:count]...)
	if r.IntN(2) == 0 {
		p.PerVU = oneOf(r, 1, 2, 5)
	}
	return p
}

func oneOf[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }

// lengthen makes the streams last for at least the given intervals and seconds.
func (p *plan) lengthen(intervals, seconds float64) {
	need := max(intervals*p.Interval, seconds)
	if float64(p.Seconds-lead) < need {
		p.Seconds = min(lead+int(need+0.999), 20)
	}
	for float64(p.Seconds-lead) < intervals*p.Interval {
		p.Interval /= 2
	}
}

// maxOutage returns how long a client may be disconnected at the end of a run.
func (p *plan) maxOutage() time.Duration {
	if !p.Reconnect {
		return 0
	}
	return time.Duration(cmp.Or(p.MaxOutage, 30) * float64(time.Second))
}

func (p *plan) interval() time.Duration  { return time.Duration(p.Interval * float64(time.Second)) }
func (p *plan) lateLimit() time.Duration { return time.Duration(p.LateMS) * time.Millisecond }

// hold returns how long a stream stays open.
func (p *plan) hold() time.Duration { return time.Duration(p.Seconds-lead) * time.Second }

// noops returns the minimum number of noops per stream.
func (p *plan) noops() int { return int(float64(p.Seconds-lead)/p.Interval) - 1 }

// tolerance returns the time before the end of a stream in which a noop that is due is not expected.
func (p *plan) tolerance() time.Duration { return min(p.lateLimit(), p.interval()/2) }

func (p *plan) id(n int) string { return p.Prefix + strconv.Itoa(n) }

// number returns the number of the run's client with the given id, or -1 for other ids, such as the id of a trial.
func (p *plan) number(id string) int {
	suffix, ok := strings.CutPrefix(id, p.Prefix)
	n, err := strconv.Atoi(suffix)
	if !ok || err != nil || n < 0 || n >= p.Connections {
		return -1
	}
	return n
}

// randomIDs returns the ids of 1, 2 or 5 clients.
func (p *plan) randomIDs(r *rand.Rand) (ids []string) {
	for _, n := range r.Perm(p.Connections)[:oneOf(r, 1, 1, 2, 5)] {
		ids = append(ids, p.id(n))
	}
	return ids
}

// middle returns the number of a noop that has others before and after it.
func (p *plan) middle(r *rand.Rand) int { return 2 + r.IntN(max(p.noops()-4, 1)) }

func (p *plan) flags() []string {
	flags := []string{
		"--connections", fmt.Sprint(p.Connections), "--seconds", fmt.Sprint(p.Seconds), "--noop-interval", fmt.Sprint(p.Interval),
		"--runners", fmt.Sprint(p.Runners), "--connections-per-vu", fmt.Sprint(p.PerVU), "--prefix", p.Prefix,
		"--late-ms", fmt.Sprint(p.LateMS), "--max-late", fmt.Sprint(p.MaxLate), fmt.Sprintf("--reconnect=%t", p.Reconnect),
	}
	if p.MaxOutage > 0 {
		flags = append(flags, "--max-outage", fmt.Sprint(p.MaxOutage))
	}
	return flags
}

// drawSchedule draws a schedule of noops. The interval of half of the schedules differs by up to 0.8 % from the plan.
func drawSchedule(r *rand.Rand) fakeservice.Schedule {
	s := fakeservice.Schedule{Seed: r.Uint64(), Factor: 1, Jitter: oneOf(r, 0, 0, 0.01, 0.03, 0.1), Phase: oneOf(r, fakeservice.PhaseInterval, fakeservice.PhaseWall, fakeservice.PhaseRandom)}
	if r.IntN(2) == 0 {
		s.Factor += (r.Float64() - 0.5) * 0.016
	}
	return s
}

func drawService(r *rand.Rand) *fakeservice.ServiceSpec {
	s := &fakeservice.ServiceSpec{
		Schedule: drawSchedule(r),
		IDs:      oneOf(r, fakeservice.IDsNumbers, fakeservice.IDsNone, oneOf(r, slices.Sorted(maps.Keys(fakeservice.ForeignIDs))...)),
		Ledger:   r.IntN(2) == 0,
		Nginx:    r.IntN(3) == 0,
		Format:   fakeservice.Format{Lines: oneOf(r, "\n", "\n", "\r\n", "\r"), BOM: r.IntN(6) == 0},
		Comments: r.IntN(4) == 0,
		EndsLate: r.IntN(5) == 0,
	}
	s.Framing = oneOf(r, "chunks", "chunks", "split", "close")
	return s
}

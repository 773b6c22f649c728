package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// A scenario describes one run of the campaign. Everything but the timing follows from the seed and the flag -kind. The
// unexported fields follow from Kind.
type scenario struct {
	Seed     uint64
	Group    string                   // group of the kind
	Kind     string                   // kind of fault, or "clean"
	Plan     plan                     // settings of soak
	Service  *fakeservice.ServiceSpec `json:",omitempty"` // noop service; nil: another service below, or bin/backend
	Family   string                   `json:",omitempty"` // group of faults of a hub or feed; also set in a clean run
	Hub      *hubSpec                 `json:",omitempty"` // service to which the run publishes
	HubFault hubFault
	Early    *earlySpec  `json:",omitempty"` // early end of a runner, or of soak
	Finite   *finiteSpec `json:",omitempty"` // service with responses that end by themselves
	Feed     *feedSpec   `json:",omitempty"` // service that sends the same messages, without numbers, to all clients
	Strike   fakeservice.Strike
	Proxy    fakeservice.ProxySpec
	Suite    string            `json:",omitempty"` // "": soak
	Args     []string          `json:",omitempty"` // further arguments of soak
	Fails    bool              `json:",omitempty"` // the run must fail even if no message is lost
	Unmet    []verdict.CheckID `json:",omitempty"` // at least one of these checks must be unmet; empty: any may be unmet

	// disturb disturbs the run while the soak process with the given id runs; nil: no disturbance.
	disturb func(ctx context.Context, r *run, soak int)
	// want is the expected verdict; nil: run.expectation derives it.
	want *verdictExpectation
}

func (sc *scenario) isClean() bool { return sc.Kind == "clean" }

// A kind is a kind of fault, or of a clean run. setup adapts a drawn scenario to the fault, and adds the fault.
type kind struct {
	group, name string
	setup       setup
}

// clean returns a kind of clean run for each setup.
func clean(setups ...setup) (kinds []kind) {
	for _, s := range setups {
		kinds = append(kinds, kind{"clean", "clean", s})
	}
	return kinds
}

func (sc *scenario) prepareOne(r *rand.Rand, pool ...kind) {
	k := oneOf(r, pool...)
	sc.Group, sc.Kind = k.group, k.name
	k.setup(r, sc)
}

type setup func(r *rand.Rand, sc *scenario)

// draw returns the scenario for a seed, limited to a kind or group unless only is empty.
func draw(seed uint64, only string) *scenario {
	switch {
	case len(withName(only, finiteKinds)) > 0:
		return drawFinite(seed, only)
	case len(withName(only, subscriberKinds)) > 0:
		return drawSubscribers(seed, only)
	case len(withName(only, earlyKinds)) > 0:
		return drawEarly(seed, only)
	}
	hubs := rand.New(rand.NewPCG(seed, 0x4ab))
	if f := familyOf(hubs, only); f != nil {
		return f.draw(hubs, seed, only)
	}
	r := rand.New(rand.NewPCG(seed, 0x5eed))
	sc := &scenario{Seed: seed, Plan: drawPlan(r), Service: drawService(r)}
	suite, clean := r.IntN(5) == 0, r.IntN(2) == 0
	pool := soakKinds
	switch {
	case only != "":
		pool = kindsNamed(only)
	case suite && clean:
		pool = cleanSuites
	case suite:
		pool = suiteKinds
	case clean:
		pool = cleanKinds
	}
	sc.prepareOne(r, pool...)
	sc.setInterval()
	return sc
}

func (sc *scenario) setInterval() {
	if sc.Service != nil {
		sc.Service.Schedule.Interval = time.Duration(sc.Service.Schedule.Factor * float64(sc.Plan.interval()))
	}
}

// A family has one group of faults of hubs, and clean runs that resemble them.
type family struct{ faulty, clean []kind }

// families lists all families. The first is drawn as often as the others together.
var families = []family{
	{publishedKinds, cleanPublished}, {resumeKinds, cleanResumes}, {stormKinds, cleanStorms}, {lifetimeKinds, cleanLifetimes},
	{tokenKinds, cleanTokens}, {actionKinds, cleanActions}, {uncheckedKinds, cleanUnchecked}, {reconnectKinds, reconnectKinds},
}

// breaking is the value of -kind that draws from all families but the first.
const breaking = "breaking"

// familyOf returns the family of a kind or a group, or a random family if only is empty or breaking. It returns nil for
// a scenario without a hub.
func familyOf(r *rand.Rand, only string) *family {
	index := 1
	if only == "" {
		index = r.IntN(4)
	}
	switch {
	case only != "" && only != breaking:
	case index == 0:
		return &families[0]
	case index == 1:
		return &families[1+r.IntN(len(families)-1)]
	default:
		return nil
	}
	for i, f := range families {
		if len(withName(only, f.faulty)) > 0 {
			return &families[i]
		}
	}
	return nil
}

// draw returns the scenario for a seed, with a hub. Unless only names one kind, half of the scenarios have a kind from
// f.clean.
func (f *family) draw(r *rand.Rand, seed uint64, only string) *scenario {
	h := drawHub(r)
	sc := &scenario{Seed: seed, Family: f.faulty[0].group, Hub: h, Plan: drawHubPlan(r, h)}
	pool := f.faulty
	switch clean := r.IntN(2) == 0; {
	case only != "" && only != breaking && only != f.faulty[0].group:
		pool = withName(only, f.faulty)
	case clean:
		pool = f.clean
	}
	sc.prepareOne(r, pool...)
	return sc
}

func kindsNamed(only string) []kind {
	all := slices.Concat(soakKinds, suiteKinds, cleanKinds, cleanSuites, finiteKinds, subscriberKinds, earlyKinds)
	for _, f := range families {
		all = append(all, f.faulty...)
	}
	return withName(only, all)
}

func withName(name string, kinds []kind) (out []kind) {
	for _, k := range kinds {
		if k.name == name || k.group == name {
			out = append(out, k)
		}
	}
	return out
}

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

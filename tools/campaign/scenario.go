package main

import (
	"context"
	"math/rand/v2"
	"slices"
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
	Wire     fakeservice.WireSpec
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

package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// A scenario is one run of the campaign. Everything but the timing follows from its seed; properties outside its JSON
// follow from its kind.
type scenario struct {
	Seed     uint64
	Group    string // of the kind
	Kind     string // of fault; clean: none
	Plan     plan
	Service  *fakeservice.ServiceSpec `json:",omitempty"` // nil: the project's own backend
	Family   string                   `json:",omitempty"` // of the kinds, of a hub
	Hub      *hubSpec                 `json:",omitempty"` // one that is published to, in its place
	HubFault hubFault
	Early    *earlySpec  `json:",omitempty"` // a runner, or soak, ends before the end of the run
	Finite   *finiteSpec `json:",omitempty"` // responses that end by themselves, in its place
	Feed     *feedSpec   `json:",omitempty"` // the same messages for all clients, without numbers, in its place
	Strike   fakeservice.Strike
	Wire     fakeservice.WireSpec
	Suite    string            `json:",omitempty"` // instead of a soak
	Args     []string          `json:",omitempty"` // further ones of soak
	Fails    bool              `json:",omitempty"` // the run fails though no noop was lost
	Broken   []verdict.CheckID `json:",omitempty"` // one of these checks is not met

	// Each of these is nil if the scenario does not have it.
	disturb func(ctx context.Context, r *run, program int) // acts on a program by its process id
	want    *verdictExpectation                            // nil: derived from the actions of the service
}

func (sc *scenario) isClean() bool { return sc.Kind == "clean" }

// A kind is a kind of fault. prepare adapts the scenario that was drawn to the fault, and adds the fault.
type kind struct {
	group, name string
	prepare     prepare
}

type prepare func(r *rand.Rand, sc *scenario)

// draw makes the scenario of a seed.
func draw(seed uint64, only string) *scenario {
	if isFinite(only) {
		return drawFinite(seed, only)
	}
	if isSubscribers(only) {
		return drawSubscribers(seed, only)
	}
	if len(withName(only, earlyKinds)) > 0 {
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
	k := oneOf(r, pool...)
	sc.Group, sc.Kind = k.group, k.name
	k.prepare(r, sc)
	if sc.Service != nil {
		sc.Service.Schedule.Interval = time.Duration(sc.Service.Schedule.Factor * float64(sc.Plan.interval()))
	}
	return sc
}

// A family has the faults of hubs of one group, and clean runs that resemble them.
type family struct{ faulty, clean []kind }

// families are all of them. Services that are published to are the first, and drawn as often as the others together.
var families = []family{
	{publishedKinds, cleanPublished}, {resumeKinds, cleanResumes}, {stormKinds, cleanStorms}, {lifetimeKinds, cleanLifetimes},
	{tokenKinds, cleanTokens}, {actionKinds, cleanActions}, {uncheckedKinds, cleanUnchecked}, {reconnectKinds, reconnectKinds},
}

// breaking names all families but the first, for a campaign of these.
const breaking = "breaking"

// familyOf returns the family of a kind or a group, or a drawn one without such a limit; nil: no hub.
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
		if f.isGroup(only) || slices.ContainsFunc(f.faulty, func(k kind) bool { return k.name == only }) {
			return &families[i]
		}
	}
	return nil
}

func (f *family) isGroup(name string) bool { return f.faulty[0].group == name }

// draw makes the scenario of a seed that soaks a hub. A group has clean runs in it, too.
func (f *family) draw(r *rand.Rand, seed uint64, only string) *scenario {
	h := drawHub(r)
	sc := &scenario{Seed: seed, Family: f.faulty[0].group, Hub: h, Plan: drawHubPlan(r, h)}
	pool := f.faulty
	switch clean := r.IntN(2) == 0; {
	case only != "" && only != breaking && !f.isGroup(only):
		pool = withName(only, f.faulty)
	case clean:
		pool = f.clean
	}
	k := oneOf(r, pool...)
	sc.Group, sc.Kind = k.group, k.name
	k.prepare(r, sc)
	return sc
}

// kindsNamed returns the kinds with that name, or of that group.
func kindsNamed(only string) []kind {
	all := slices.Concat(soakKinds, suiteKinds, cleanKinds, cleanSuites, finiteKinds, subscriberKinds, earlyKinds)
	for _, f := range families {
		all = append(all, f.faulty...)
	}
	return withName(only, all)
}

// withName returns the kinds with that name, or of that group.
func withName(name string, kinds []kind) (out []kind) {
	for _, k := range kinds {
		if k.name == name || k.group == name {
			out = append(out, k)
		}
	}
	return out
}

package main

import (
	"math/rand/v2"
	"slices"
	"time"
)

// A scenario is one run of the campaign. Everything but the timing follows from its seed.
type scenario struct {
	Seed    uint64
	Group   string // of the kind
	Kind    string // of fault; clean: none
	Plan    plan
	Service *serviceSpec `json:",omitempty"` // nil: the project's own backend
	Strike  strike
	Wire    wireSpec
	Fault   string   `json:",omitempty"` // BACKEND_FAULT
	Fails   bool     `json:",omitempty"` // the run fails though no noop was lost
	NoNginx bool     `json:",omitempty"` // of the own backend
	Args    []string `json:",omitempty"` // further ones
	Runner  string   `json:",omitempty"` // what happens to a runner
	Wait    time.Duration
	Laptops string `json:",omitempty"` // k6 alone on two machines, instead of soak
	Tamper  string `json:",omitempty"` // what happens to the files before they are merged again
	Bucket  string `json:",omitempty"` // what happens to the bucket
	Suite   string `json:",omitempty"` // instead of a soak
	Harm    string `json:",omitempty"` // what happens to every Nth answer of a suite's service; N is Strike.Count

	want *expected // nil: it follows from what the service did
}

func (sc *scenario) clean() bool { return sc.Kind == "clean" }

// A kind is a kind of fault. prepare adapts the scenario that was drawn to the fault, and adds the fault.
type kind struct {
	group, name string
	prepare     func(r *rand.Rand, sc *scenario)
}

// draw makes the scenario of a seed.
func draw(seed uint64, only string) *scenario {
	r := rand.New(rand.NewPCG(seed, 0x5eed))
	sc := &scenario{Seed: seed, Plan: drawPlan(r)}
	spec := drawService(r)
	sc.Service = &spec
	suite, clean := r.IntN(5) == 0, r.IntN(2) == 0
	pool := soakKinds
	switch {
	case suite && clean:
		pool = cleanSuites
	case suite:
		pool = suiteKinds
	case clean:
		pool = cleanKinds
	}
	if only != "" {
		pool = named(only)
	}
	k := pool[r.IntN(len(pool))]
	sc.Group, sc.Kind = k.group, k.name
	k.prepare(r, sc)
	if sc.Service != nil {
		sc.Service.Schedule.Every = time.Duration(sc.Service.Schedule.Factor * float64(sc.Plan.interval()))
	}
	return sc
}

// named are the kinds with that name, or of that group.
func named(only string) (out []kind) {
	for _, k := range slices.Concat(soakKinds, suiteKinds, cleanKinds, cleanSuites) {
		if k.name == only || k.group == only {
			out = append(out, k)
		}
	}
	return out
}

// some are ids of a few devices, one more often than several.
func (sc *scenario) some(r *rand.Rand) (ids []string) {
	count := []int{1, 1, 2, 5}[r.IntN(4)]
	for _, n := range r.Perm(sc.Plan.Connections)[:count] {
		ids = append(ids, sc.Plan.id(n))
	}
	return ids
}

// middle is a noop that has others before and after it.
func (sc *scenario) middle(r *rand.Rand) int { return 2 + r.IntN(max(sc.Plan.noops()-4, 1)) }

// numbered makes the service number its noops.
func (sc *scenario) numbered() { sc.Service.IDs = idsNumbers }

func (sc *scenario) hold() time.Duration { return time.Duration(sc.Plan.Seconds-lead) * time.Second }

func (sc *scenario) lateIsExact() bool { return sc.Kind == "delay" }

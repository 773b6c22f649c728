package main

import (
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// The groups of kinds.
const (
	groupClean   = "clean"
	groupService = "service"
	groupConnect = "connect"
	groupWire    = "wire"
	groupBackend = "own backend"
	groupRunner  = "runner"
	groupMerge   = "merge"
	groupBucket  = "bucket"
	groupSuite   = "suite"
)

// cleanKinds are runs in which nothing is wrong. The plain one is drawn most often.
var cleanKinds = []kind{
	{groupClean, "clean", asDrawn}, {groupClean, "clean", asDrawn}, {groupClean, "clean", asDrawn}, {groupClean, "clean", asDrawn},
	{groupClean, "clean", func(r *rand.Rand, sc *scenario) { ownBackend(r, sc, "") }},
	{groupClean, "clean", func(r *rand.Rand, sc *scenario) { wired(r, sc, wireDribble) }},
	{groupClean, "clean", func(r *rand.Rand, sc *scenario) { wired(r, sc, wireMerge) }},
	{groupClean, "clean", func(r *rand.Rand, sc *scenario) { sc.Tamper = tamperNothing }},
	{groupClean, "clean", laptops(asDrawn)},
	{groupClean, "clean", func(r *rand.Rand, sc *scenario) { sc.Bucket = bucketGood }},
	{groupClean, "clean", func(r *rand.Rand, sc *scenario) { sc.Strike.Headers = time.Duration(r.IntN(300)) * time.Millisecond }},
}

func asDrawn(*rand.Rand, *scenario) {}

// soakKinds are the faults of a soak.
var soakKinds = []kind{
	{groupService, "lose", struck(actLose, 1, false)},
	{groupService, "lose several", func(r *rand.Rand, sc *scenario) {
		sc.Plan.lengthen(8, 0)
		sc.strikeNoop(r, actLose, 2+r.IntN(2), 2+r.IntN(max(sc.Plan.noops()-6, 1)))
	}},
	{groupService, "lose first", func(r *rand.Rand, sc *scenario) { sc.strikeNoop(r, actLose, 1, 1) }},
	{groupService, "lose last but one", func(r *rand.Rand, sc *scenario) { sc.strikeNoop(r, actLose, 1, lastButOne) }},
	{groupService, "lose last", func(r *rand.Rand, sc *scenario) { sc.strikeNoop(r, actLose, 1, lastNoop) }},
	{groupService, "lose on all", func(r *rand.Rand, sc *scenario) {
		sc.strikeNoop(r, actLose, 1, sc.middle(r))
		sc.Strike.Devices = nil
	}},
	{groupService, "duplicate", struck(actDuplicate, 1, false)},
	{groupService, "duplicate all", func(_ *rand.Rand, sc *scenario) { sc.Strike = strike{Action: actDuplicate, Noop: everyNoop} }},
	{groupService, "swap", struck(actHold, 1, true)},
	{groupService, "corrupt", struck(actCorrupt, 1, false)},
	{groupService, "corrupt all", func(_ *rand.Rand, sc *scenario) { sc.Strike = strike{Action: actCorrupt, Noop: everyNoop} }},
	{groupService, "delay", delay},
	{groupService, "never-served slot", struck(actSkip, 1, true)},
	{groupService, "silence with comments", struck(actQuiet, 0, false)},
	{groupService, "stall", func(r *rand.Rand, sc *scenario) {
		sc.Plan.lengthen(9, 0)
		sc.Service.Comments, sc.Service.EndsLate = false, false
		sc.strikeNoop(r, actLose, 0, 2+r.IntN(2))
	}},
	{groupService, "end early", struck(actClose, 1, false)},
	{groupService, "reset", func(r *rand.Rand, sc *scenario) {
		sc.Service.Nginx = false
		sc.strikeNoop(r, actReset, 1, sc.middle(r))
	}},
	{groupService, "cut in a frame", struck(actTruncate, 1, false)},
	{groupService, "never end", func(r *rand.Rand, sc *scenario) { sc.Strike = strike{NeverEnd: true, Devices: sc.some(r)} }},
	{groupService, "other interval", otherInterval},
	{groupService, "named events", func(r *rand.Rand, sc *scenario) { sc.Strike = strike{Action: actNamed, Devices: sc.some(r)} }},

	{groupConnect, "refuse 503", answered(http.StatusServiceUnavailable)},
	{groupConnect, "refuse 409", answered(http.StatusConflict)},
	{groupConnect, "refuse 500", answered(http.StatusInternalServerError)},
	{groupConnect, "refuse 404", answered(http.StatusNotFound)},
	{groupConnect, "answer 204", answered(http.StatusNoContent)},
	{groupConnect, "answer 201", answered(http.StatusCreated)},
	{groupConnect, "wrong content type", answered(http.StatusOK)},
	{groupConnect, "slow headers", func(r *rand.Rand, sc *scenario) {
		sc.Plan.Seconds = 19
		sc.Strike = strike{Headers: 15 * time.Second, Devices: sc.some(r), Status: http.StatusServiceUnavailable}
	}},

	{groupConnect, "refused at first, and back", func(r *rand.Rand, sc *scenario) {
		sc.Plan.Seconds, sc.Plan.Reconnect = 20, true
		sc.Strike = strike{Status: []int{500, 502, 503}[r.IntN(3)], Devices: sc.some(r), Until: time.Second}
	}},
	{groupConnect, "refused for most of the run", func(r *rand.Rand, sc *scenario) {
		sc.Plan.Seconds, sc.Plan.Reconnect, sc.Fails = 17+r.IntN(4), true, true
		sc.Strike = strike{Status: []int{500, 502, 503}[r.IntN(3)], Devices: sc.some(r), Until: sc.hold() * 3 / 5}
	}},

	{groupWire, "reset", func(r *rand.Rand, sc *scenario) { wired(r, sc, wireReset) }},
	{groupWire, "cut in a frame", func(r *rand.Rand, sc *scenario) { wired(r, sc, wireMidFrame) }},
	{groupWire, "half-open", func(r *rand.Rand, sc *scenario) {
		sc.Plan.lengthen(9, 0)
		wired(r, sc, wireVanish)
		sc.Wire.Noop = 2 + r.IntN(2)
	}},
	{groupWire, "pause, then burst", func(r *rand.Rand, sc *scenario) {
		wired(r, sc, wirePause)
		sc.Wire.Wait = time.Duration((0.3 + 0.9*r.Float64()) * float64(sc.Plan.interval()))
	}},
	{groupWire, "reset, and back", func(r *rand.Rand, sc *scenario) {
		sc.Plan.lengthen(8, 6)
		wired(r, sc, wireReset)
		comesBack(r, sc)
	}},
	{groupWire, "half-open, and back", func(r *rand.Rand, sc *scenario) {
		sc.Plan.lengthen(12, 8)
		wired(r, sc, wireVanish)
		sc.Wire.Noop = 2 + r.IntN(2)
		comesBack(r, sc)
	}},
	{groupService, "end early, and back", func(r *rand.Rand, sc *scenario) {
		sc.Plan.lengthen(8, 6)
		sc.strikeNoop(r, actClose, 1, sc.middle(r))
		comesBack(r, sc)
	}},

	{groupBackend, "drop", backendFault("drop", counts{"missed": exactly(1)})},
	{groupBackend, "duplicate", backendFault("duplicate", counts{"duplicated": exactly(1)})},
	{groupBackend, "reorder", backendFault("reorder", counts{"reordered": exactly(1)})},
	{groupBackend, "corrupt", backendFault("corrupt", counts{"corrupted": exactly(1)})},
	{groupBackend, "truncate", backendFault("truncate", counts{"missed": exactly(1), "dropped": exactly(1)})},
	{groupBackend, "reset", func(r *rand.Rand, sc *scenario) {
		backendFault("reset", counts{"dropped": exactly(1)})(r, sc)
		sc.NoNginx = true
	}},
	{groupBackend, "refuse", backendFault("refuse", counts{"refused": exactly(1)})},
	{groupBackend, "wrong type", backendFault("wrong-type", counts{"refused": exactly(1)})},
	{groupBackend, "die", func(r *rand.Rand, sc *scenario) {
		sc.Plan.lengthen(6, 6)
		backendFault("die", nil)(r, sc)
		sc.want = &expected{Outcomes: []verdict.Outcome{verdict.Fail}, Reason: "the backend died at", Counts: counts{"dropped": exactly(sc.Plan.Connections), "missed": anything, "late": anything}}
	}},

	{groupBackend, "die, and back", func(r *rand.Rand, sc *scenario) {
		sc.Plan.Seconds, sc.Plan.Interval, sc.Plan.Reconnect = 20, 1, true
		backendFault("die", nil)(r, sc)
		sc.want = &expected{Outcomes: []verdict.Outcome{verdict.Pass}, Counts: counts{"late": anything, "reconnected": {sc.Plan.Connections, unbounded}}}
	}},

	{groupRunner, "killed", runnerFault(runnerKilled)},
	{groupRunner, "stopped for a while", runnerFault(runnerStopped)},
	{groupRunner, "Ctrl-C", runnerFault(runnerCtrlC)},

	{groupMerge, "shard missing", tampered(tamperMissing, "left no shard|not observed|no readable shard")},
	{groupMerge, "shard twice", tampered(tamperTwice, "")},
	{groupMerge, "shard cut short", tampered(tamperCut, "")},
	{groupMerge, "shard with a flipped bit", tampered(tamperFlip, "")},
	{groupMerge, "shard of another run", tampered(tamperStale, "")},
	{groupMerge, "run.json missing", tampered(tamperRun, "run.json")},
	{groupMerge, "ledger missing", func(r *rand.Rand, sc *scenario) {
		tampered(tamperLedger, "ledger")(r, sc)
		sc.numbered()
		sc.Service.Ledger = true
	}},
	{groupMerge, "two laptops, one prefix", laptops(func(_ *rand.Rand, sc *scenario) {
		want := invalid("")
		sc.Laptops, sc.want = laptopsAlike, &want
	})},
	{groupMerge, "two laptops, one loses", laptops(struck(actLose, 1, false))},
	{groupMerge, "two laptops, one killed", laptops(func(_ *rand.Rand, sc *scenario) {
		want := invalid("")
		sc.Laptops, sc.want = laptopsKilled, &want
	})},

	{groupBucket, "refuses connections", bucketFault(bucketGone, "")},
	{groupBucket, "missing", bucketFault(bucketMissing, "")},
	{groupBucket, "denies the end", bucketFault(bucketDenies, "")},
	{groupBucket, "object cut", bucketFault(bucketCut, "")},
	{groupBucket, "object flipped", bucketFault(bucketFlip, "")},
	{groupBucket, "object missing", bucketFault(bucketLost, "")},
}

// struck is a fault that hits some devices in the middle of their streams.
func struck(act string, count int, numbered bool) func(*rand.Rand, *scenario) {
	return func(r *rand.Rand, sc *scenario) {
		if numbered {
			sc.numbered()
		}
		sc.strikeNoop(r, act, count, sc.middle(r))
	}
}

func (sc *scenario) strikeNoop(r *rand.Rand, act string, count, noop int) {
	sc.Strike = strike{Action: act, Devices: sc.some(r), Noop: noop, Count: count, Hold: sc.hold()}
}

// delay makes one noop late, by less than an interval.
func delay(r *rand.Rand, sc *scenario) {
	sc.Plan.lengthen(5, 7)
	sc.Plan.Interval = max(sc.Plan.Interval, 1)
	sc.Service.Schedule.Jitter = 0
	sc.Plan.LateMS, sc.Plan.MaxLate = 250, 0
	sc.strikeNoop(r, actDelay, 1, 2)
	sc.Strike.Wait = time.Duration((0.55 + 0.3*r.Float64()) * float64(sc.Plan.interval()))
}

// otherInterval is a service that does not send as often as planned.
func otherInterval(r *rand.Rand, sc *scenario) {
	factor := []float64{0.5, 0.8, 0.9, 1.1, 1.25, 2}[r.IntN(6)]
	sc.Plan.lengthen(8, 0)
	sc.Service.Schedule.Factor = factor
	sc.want = &expected{Outcomes: []verdict.Outcome{verdict.Invalid}, Any: true, Reason: "NOOP_INTERVAL"}
	if factor > 1 { // then slots stay empty, too
		sc.want = &expected{Outcomes: []verdict.Outcome{verdict.Invalid, verdict.Fail}, Any: true}
	}
}

func answered(status int) func(*rand.Rand, *scenario) {
	return func(r *rand.Rand, sc *scenario) { sc.Strike = strike{Status: status, Devices: sc.some(r)} }
}

// wired puts a wire in front of the service.
func wired(r *rand.Rand, sc *scenario, does string) {
	sc.Service.Framing = "chunks" // a noop is to be found in it
	sc.Wire = wireSpec{Does: does, Devices: sc.some(r), Noop: sc.middle(r), After: time.Duration(0.4 * float64(sc.Plan.interval()))}
	if does == wireDribble || does == wireMerge {
		sc.Wire.Noop = 0
	}
}

// comesBack lets clients reconnect, to a service that replays or does not.
func comesBack(r *rand.Rand, sc *scenario) {
	sc.Plan.Reconnect = true
	sc.Service.Retry, sc.Service.EndsLate = 200, false
	sc.Service.Resume = r.IntN(2) == 0
	if sc.Service.IDs != idsNone {
		sc.numbered()
	}
}

// ownBackend soaks bin/backend.
func ownBackend(r *rand.Rand, sc *scenario, fault string) {
	sc.Service, sc.Fault, sc.NoNginx = nil, fault, r.IntN(2) == 0
	want := passes()
	sc.want = &want
}

func backendFault(fault string, c counts) func(*rand.Rand, *scenario) {
	return func(r *rand.Rand, sc *scenario) {
		id := sc.Plan.id(r.IntN(sc.Plan.Connections))
		text := fault + ":id=" + id
		if fault != "refuse" && fault != "wrong-type" {
			text += ",noop=" + itoa(sc.middle(r))
		}
		ownBackend(r, sc, text)
		sc.want = &expected{Outcomes: []verdict.Outcome{verdict.Fail}, Counts: counts{"late": anything}, Devices: map[string]bool{id: true}}
		for name, s := range c {
			sc.want.Counts[name] = s
		}
	}
}

package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	suites "github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// cleanKinds are soaks without a fault. Half of them do not change the drawn scenario.
var cleanKinds = clean(
	noChange, noChange, noChange, noChange,
	useBackend,
	proxyKind(fakeservice.ProxyDribble),
	proxyKind(fakeservice.ProxyMerge),
	func(r *rand.Rand, sc *scenario) {
		sc.Strike.HeaderDelay = time.Duration(r.IntN(300)) * time.Millisecond
	},
)

func noChange(*rand.Rand, *scenario) {}

var soakKinds = []kind{
	{"service", "lose", strikeMiddle(fakeservice.ActLose, 1)},
	{"service", "lose several", func(r *rand.Rand, sc *scenario) {
		sc.Plan.lengthen(8, 0)
		sc.strike(r, fakeservice.ActLose, 2+r.IntN(2), 2+r.IntN(max(sc.Plan.noops()-6, 1)))
	}},
	{"service", "lose first", func(r *rand.Rand, sc *scenario) { sc.strike(r, fakeservice.ActLose, 1, 1) }},
	{"service", "lose last but one", func(r *rand.Rand, sc *scenario) { sc.strike(r, fakeservice.ActLose, 1, fakeservice.LastButOne) }},
	{"service", "lose last", func(r *rand.Rand, sc *scenario) { sc.strike(r, fakeservice.ActLose, 1, fakeservice.LastNoop) }},
	{"service", "lose on all streams", combine(strikeMiddle(fakeservice.ActLose, 1), func(_ *rand.Rand, sc *scenario) { sc.Strike.Clients = nil })},
	{"service", "duplicate", strikeMiddle(fakeservice.ActRepeat, 1)},
	{"service", "duplicate all", func(_ *rand.Rand, sc *scenario) {
		sc.Strike = fakeservice.Strike{Fault: fakeservice.Fault{Action: fakeservice.ActRepeat, From: fakeservice.EveryNoop}}
	}},
	{"service", "swap", combine(numberNoops, strikeMiddle(fakeservice.ActSwap, 1))},
	{"service", "corrupt", strikeMiddle(fakeservice.ActCorrupt, 1)},
	{"service", "corrupt all", func(_ *rand.Rand, sc *scenario) {
		sc.Strike = fakeservice.Strike{Fault: fakeservice.Fault{Action: fakeservice.ActCorrupt, From: fakeservice.EveryNoop}}
	}},
	{"service", "delay", delay},
	{"service", "never-served slot", combine(numberNoops, strikeMiddle(fakeservice.ActSkip, 1))},
	{"service", "silence with comments", strikeMiddle(fakeservice.ActQuiet, 0)},
	{"service", "stall", func(r *rand.Rand, sc *scenario) {
		sc.Plan.lengthen(9, 0)
		sc.Service.Comments, sc.Service.EndsLate = false, false
		sc.strike(r, fakeservice.ActLose, 0, 2+r.IntN(2))
	}},
	{"service", "end early", strikeMiddle(fakeservice.ActClose, 1)},
	{"service", "reset", combine(strikeMiddle(fakeservice.ActReset, 1), func(_ *rand.Rand, sc *scenario) { sc.Service.Nginx = false })},
	{"service", "cut in a frame", strikeMiddle(fakeservice.ActTruncate, 1)},
	{"service", "never end", func(r *rand.Rand, sc *scenario) {
		sc.Strike = fakeservice.Strike{Fault: fakeservice.Fault{NeverEnds: true, Clients: sc.Plan.randomIDs(r)}}
	}},
	{"service", "other interval", otherInterval},
	{"service", "named events", func(r *rand.Rand, sc *scenario) {
		sc.Strike = fakeservice.Strike{Fault: fakeservice.Fault{Action: fakeservice.ActNamed, Clients: sc.Plan.randomIDs(r)}}
	}},
	{"service", "end early, then reconnect", combine(lengthen(8, 6), strikeMiddle(fakeservice.ActClose, 1), allowReconnect)},

	{"reconnect", "clean random ends", combine(reconnectWithReplay, randomLifetimes)},
	{"reconnect", "clean random ends, new schedule", combine(reconnectWithReplay, randomLifetimes, newSchedules)},
	{"reconnect", "clean random ends, by the clock", combine(reconnectWithReplay, randomLifetimes, omitIDs)},
	{"reconnect", "clean random ends, new schedule, by the clock", combine(reconnectWithReplay, randomLifetimes, newSchedules, omitIDs)},
	{"reconnect", "in the last interval", combine(reconnectWithReplay, endInLastIntervals)},
	{"reconnect", "in the last interval, new schedule", combine(reconnectWithReplay, endInLastIntervals, newSchedules)},
	{"reconnect", "in the last interval, by the clock", combine(reconnectWithReplay, endInLastIntervals, omitIDs)},
	{"reconnect", "refused, within MAX_OUTAGE at the end", combine(reconnectWithReplay, endInLastIntervals, refuseReconnects(0))},
	{"reconnect", "refused for longer than MAX_OUTAGE at the end", combine(reconnectWithReplay, refuseReconnects(2), func(r *rand.Rand, sc *scenario) {
		sc.Strike.EndIn = sc.Plan.hold() - 4500*time.Millisecond
		sc.Fails = true
	})},
	{"reconnect", "a loss, then in the last interval", combine(reconnectWithReplay, func(r *rand.Rand, sc *scenario) {
		sc.strike(r, fakeservice.ActLose, 1, 3)
		sc.Strike.EndIn, sc.Strike.Within = sc.Plan.hold()-2*sc.Plan.interval(), sc.Plan.interval()
	})},
	{"jitter", "30 % early or late", addJitter(.6)},
	{"jitter", "30 % early or late, one lost", combine(addJitter(.6), strikeMiddle(fakeservice.ActLose, 1), func(_ *rand.Rand, sc *scenario) {
		sc.want = &verdictExpectation{Outcomes: []verdict.Outcome{verdict.Fail, verdict.Invalid}, AnyCounts: true}
	})},

	{"connect", "refuse 503", answerWith(http.StatusServiceUnavailable)},
	{"connect", "refuse 409", answerWith(http.StatusConflict)},
	{"connect", "refuse 500", answerWith(http.StatusInternalServerError)},
	{"connect", "refuse 404", answerWith(http.StatusNotFound)},
	{"connect", "answer 204", answerWith(http.StatusNoContent)},
	{"connect", "answer 201", answerWith(http.StatusCreated)},
	{"connect", "wrong content type", answerWith(http.StatusOK)},
	{"connect", "slow headers", combine(answerWith(http.StatusServiceUnavailable), func(_ *rand.Rand, sc *scenario) {
		sc.Plan.Seconds, sc.Strike.HeaderDelay = 19, 15*time.Second
	})},
	{"connect", "refused at first, then accepted", func(r *rand.Rand, sc *scenario) {
		sc.Plan.Seconds, sc.Plan.Reconnect = 20, true
		sc.Strike = fakeservice.Strike{Status: oneOf(r, 500, 502, 503), Fault: fakeservice.Fault{Clients: sc.Plan.randomIDs(r)}, Duration: time.Second}
	}},
	{"connect", "refused for most of the run", func(r *rand.Rand, sc *scenario) {
		sc.Plan.Seconds, sc.Plan.Reconnect, sc.Fails = 17+r.IntN(4), true, true
		sc.Strike = fakeservice.Strike{Status: oneOf(r, 500, 502, 503), Fault: fakeservice.Fault{Clients: sc.Plan.randomIDs(r)}, Duration: sc.Plan.hold() * 3 / 5}
	}},

	{"wire", "reset", proxyKind(fakeservice.ProxyReset)},
	{"wire", "cut in a frame", proxyKind(fakeservice.ProxyMidFrame)},
	{"wire", "half-open", combine(lengthen(9, 0), proxyKind(fakeservice.ProxyVanish))},
	{"wire", "pause, then burst", proxyKind(fakeservice.ProxyPause)},
	{"wire", "reset, then reconnect", combine(lengthen(8, 6), proxyKind(fakeservice.ProxyReset), allowReconnect)},
	{"wire", "half-open, then reconnect", combine(lengthen(12, 8), proxyKind(fakeservice.ProxyVanish), allowReconnect)},
}

// cleanSuites are suites of streams against a correct service: bin/backend, or a service in this process.
var cleanSuites = clean(
	suite("fanout"), suite("capacity"), suite("churn"),
	noopsResume(true, 0, passes, exactCount(0), exactCount(0)),
	detectVanished(2*time.Second, fakeservice.GaugeOpen, 10, passes), detectVanished(2*time.Second, fakeservice.GaugeTwice, 10, passes),
	slowKind(fakeservice.SlowCut, passes, nil, "--cut-slow", "1"), slowKind(fakeservice.SlowDrop, passes, []verdict.CheckID{suites.CheckSlowComplete}),
	slowKind(fakeservice.SlowKeep, passes, nil, "--cut-slow", "0", "--max-growth", "-1"),
	streamSuite("capacity", passes), streamSuite("churn", passes),
)

var suiteKinds = []kind{
	{"suite", "resume: noops not replayed", noopsResume(false, 0, fails, span{1, unbounded}, exactCount(0))},
	{"suite", "resume: a noop lost at the seam", noopsResume(true, 1, fails, span{1, unbounded}, exactCount(0))},
	{"suite", "resume: a noop doubled at the seam", noopsResume(true, -1, fails, exactCount(0), span{1, unbounded})},
	{"suite", "vanish: never noticed", detectVanished(0, fakeservice.GaugeOpen, 4, fails, suites.CheckNoticed)},
	{"suite", "vanish: noticed too late", detectVanished(8*time.Second, fakeservice.GaugeOpen, 4, fails, suites.CheckNoticed)},
	{"suite", "vanish: half of the clients noticed", detectVanished(2*time.Second, fakeservice.GaugeLeaky, 9, fails, suites.CheckNoticed)},
	{"suite", "vanish: the gauge only rises", detectVanished(2*time.Second, fakeservice.GaugeOpened, 9, fails, suites.CheckNoticed)},
	{"suite", "vanish: another gauge", detectVanished(2*time.Second, fakeservice.GaugeFixed, 4, []verdict.Outcome{verdict.Invalid}, suites.CheckGauge)},
	{"suite", "vanish: noop lost on a stream that stays open", func(r *rand.Rand, sc *scenario) {
		detectVanished(2*time.Second, fakeservice.GaugeOpen, 9, fails, verdict.CheckMissed, suites.CheckBystanders)(r, sc)
		numberNoops(r, sc)
		sc.Service.Schedule.Phase = fakeservice.PhaseInterval
		sc.Strike.Fault = fakeservice.Fault{Action: fakeservice.ActLose, From: 3 + r.IntN(8), Count: 1, Clients: []string{sc.Plan.id(1)}}
	}},
	{"suite", "slow: kept without a bound", slowKind(fakeservice.SlowKeep, fails, []verdict.CheckID{suites.CheckMemory}, "--max-growth", "2")},
	{"suite", "slow: other clients wait", slowKind(fakeservice.SlowWait, fails, []verdict.CheckID{verdict.CheckConfirmed})},
	{"suite", "slow: not cut", slowKind(fakeservice.SlowKeep, fails, []verdict.CheckID{suites.CheckSlowClosed}, "--max-growth", "-1", "--cut-slow", "1")},
	{"suite", "slow: cut", slowKind(fakeservice.SlowCut, fails, []verdict.CheckID{suites.CheckSlowClosed}, "--cut-slow", "0")},
	{"suite", "slow: message lost on a stream that is read", slowKind(fakeservice.SlowLose, fails, []verdict.CheckID{suites.CheckDelivered})},
	{"suite", "slow: no broadcasts", slowKind("", []verdict.Outcome{verdict.Invalid}, []verdict.CheckID{suites.CheckBacklog, suites.CheckDelivered})},
}

func combine(steps ...setup) setup {
	return func(r *rand.Rand, sc *scenario) {
		for _, step := range steps {
			step(r, sc)
		}
	}
}

func numberNoops(_ *rand.Rand, sc *scenario) { sc.Service.IDs = fakeservice.IDsNumbers }

func lengthen(intervals, seconds float64) setup {
	return func(_ *rand.Rand, sc *scenario) { sc.Plan.lengthen(intervals, seconds) }
}

// strikeMiddle prepares a fault that starts in the middle of streams. act and count are as in strike.
func strikeMiddle(act string, count int) setup {
	return func(r *rand.Rand, sc *scenario) { sc.strike(r, act, count, sc.Plan.middle(r)) }
}

// strike sets a fault that affects count noops (0: all further noops) of some clients, starting with the given noop.
func (sc *scenario) strike(r *rand.Rand, act string, count, noop int) {
	sc.Strike = fakeservice.Strike{Fault: fakeservice.Fault{Action: act, Clients: sc.Plan.randomIDs(r), From: noop, Count: count}, Hold: sc.Plan.hold()}
}

// delay makes one noop of some clients late, by less than an interval.
func delay(r *rand.Rand, sc *scenario) {
	sc.Plan.lengthen(5, 7)
	sc.Plan.Interval = max(sc.Plan.Interval, 1)
	sc.Service.Schedule.Jitter = 0
	sc.Plan.LateMS, sc.Plan.MaxLate = 250, 0
	sc.strike(r, fakeservice.ActDelay, 1, 2)
	sc.Strike.Wait = sc.intervals(r, .55, .85)
}

// intervals returns a random duration between two numbers of intervals.
func (sc *scenario) intervals(r *rand.Rand, from, to float64) time.Duration {
	return time.Duration((from + (to-from)*r.Float64()) * float64(sc.Plan.interval()))
}

// otherInterval makes the service send at an interval other than the planned one.
func otherInterval(r *rand.Rand, sc *scenario) {
	sc.Plan.lengthen(8, 0)
	sc.Service.Schedule.Factor = oneOf(r, 0.5, 0.8, 0.9, 1.1, 1.25, 2)
	sc.want = expectInvalid(verdict.CheckInterval)
	if sc.Service.Schedule.Factor > 1 { // some planned intervals then have no noop
		sc.want = &verdictExpectation{Outcomes: []verdict.Outcome{verdict.Invalid, verdict.Fail}, AnyCounts: true}
	}
}

func answerWith(status int) setup {
	return func(r *rand.Rand, sc *scenario) {
		sc.Strike = fakeservice.Strike{Status: status, Fault: fakeservice.Fault{Clients: sc.Plan.randomIDs(r)}}
	}
}

func proxyKind(action string) setup {
	return func(r *rand.Rand, sc *scenario) {
		sc.Service.Framing = "chunks"
		sc.Proxy = fakeservice.ProxySpec{Action: action, Clients: sc.Plan.randomIDs(r), Noop: sc.Plan.middle(r), Delay: sc.Plan.interval() * 2 / 5}
		switch action {
		case fakeservice.ProxyDribble, fakeservice.ProxyMerge:
			sc.Proxy.Noop = 0
		case fakeservice.ProxyVanish:
			sc.Proxy.Noop = 2 + r.IntN(2)
		case fakeservice.ProxyPause:
			sc.Proxy.Delay = sc.intervals(r, .3, 1.2)
		}
	}
}

// allowReconnect lets clients reconnect. The service replays missed noops in half of the scenarios.
func allowReconnect(r *rand.Rand, sc *scenario) {
	sc.Plan.Reconnect = true
	sc.Service.Retry, sc.Service.EndsLate = 200, false
	sc.Service.Resume = r.IntN(2) == 0
	if sc.Service.IDs != fakeservice.IDsNone {
		numberNoops(r, sc)
	}
}

// reconnectWithReplay makes clients reconnect to a service that replays missed noops.
func reconnectWithReplay(r *rand.Rand, sc *scenario) {
	sc.Plan.Connections, sc.Plan.Reconnect, sc.Plan.Seconds = 60+r.IntN(41), true, 20
	sc.Plan.Interval = oneOf(r, 1, 1.5, 2.0)
	s := sc.Service
	s.Retry, s.Resume, s.EndsLate, s.Nginx, s.Framing = 300, true, false, false, "chunks"
	s.Schedule.Phase, s.Schedule.Jitter = oneOf(r, fakeservice.PhaseInterval, fakeservice.PhaseRandom), 0
	numberNoops(r, sc)
}

// randomLifetimes makes the service end its streams after random lifetimes, of 30 s on average.
func randomLifetimes(_ *rand.Rand, sc *scenario) {
	sc.Service.MeanLifetime = 30 * time.Second
	sc.Strike = fakeservice.Strike{}
}

// endInLastIntervals makes the service end a few streams in the last one and a half intervals before their planned end.
func endInLastIntervals(r *rand.Rand, sc *scenario) {
	sc.Strike = fakeservice.Strike{Fault: fakeservice.Fault{Clients: sc.Plan.randomIDs(r)}, EndIn: sc.Plan.hold() - 3*sc.Plan.interval()/2, Within: 3 * sc.Plan.interval() / 2}
}

// newSchedules makes the service start a new schedule for each stream, and replay no noops.
func newSchedules(_ *rand.Rand, sc *scenario) {
	sc.Service.NewSchedule, sc.Service.Resume = true, false
}

// omitIDs makes the service send no ids, so noops are expected by interval. Streams end right after a noop, and outages
// are shorter than an interval.
func omitIDs(_ *rand.Rand, sc *scenario) {
	sc.Service.IDs, sc.Plan.Interval = fakeservice.IDsNone, 2
	sc.Service.Schedule.Phase = fakeservice.PhaseInterval
}

// refuseReconnects makes the service refuse the reconnects of some clients. maxOutage is in seconds; 0 means the
// default of soak.
func refuseReconnects(maxOutage float64) setup {
	return func(r *rand.Rand, sc *scenario) {
		if sc.Strike.Clients == nil {
			sc.Strike.Clients = sc.Plan.randomIDs(r)
		}
		sc.Strike.Status, sc.Strike.OnReconnect, sc.Plan.MaxOutage = http.StatusServiceUnavailable, true, maxOutage
	}
}

// addJitter delays each noop by a random part of the interval, at most the given share.
func addJitter(share float64) setup {
	return func(r *rand.Rand, sc *scenario) {
		sc.Plan.Seconds, sc.Plan.Interval, sc.Plan.Connections = 20, .8, 40+r.IntN(40)
		sc.Service.Schedule.Jitter, sc.Service.Schedule.Factor, sc.Service.Schedule.Phase = share, 1, fakeservice.PhaseInterval
		sc.Service.IDs, sc.Service.EndsLate = oneOf(r, fakeservice.IDsNumbers, fakeservice.IDsNone), false
		sc.want = &verdictExpectation{Outcomes: []verdict.Outcome{verdict.Pass, verdict.Invalid}, AnyCounts: true}
	}
}

func useBackend(r *rand.Rand, sc *scenario) {
	sc.Service, sc.want = nil, expectPass()
	if r.IntN(2) == 0 {
		sc.Args = []string{"--no-nginx"}
	}
}

func suite(name string) setup {
	return func(r *rand.Rand, sc *scenario) {
		useBackend(r, sc)
		sc.Suite, sc.Plan.Seconds, sc.want = name, 20, &verdictExpectation{Outcomes: passes, AnyCounts: true}
		switch name {
		case "capacity":
			sc.Args = append([]string{"--late-ms", "20000"}, sc.Args...) // a busy machine must not limit the capacity
		case "churn":
			sc.Args = append([]string{"--seed", strconv.Itoa(r.IntN(1000))}, sc.Args...)
		}
	}
}

// streamSuite prepares a suite of event streams against a service in this process.
func streamSuite(name string, outcomes []verdict.Outcome) setup {
	return func(r *rand.Rand, sc *scenario) {
		service := sc.Service
		suite(name)(r, sc)
		sc.Service, sc.Plan.Interval, sc.Plan.Connections, sc.want.Outcomes = service, 1, 150, outcomes
	}
}

// slowKind prepares the suite slow against a service in this process. action is the effect of a broadcast on clients
// that do not read (fakeservice.SlowCut and others); "": no broadcasts. One of checks, if any, must be unmet.
func slowKind(action string, outcomes []verdict.Outcome, checks []verdict.CheckID, args ...string) setup {
	return func(r *rand.Rand, sc *scenario) {
		streamSuite("slow", outcomes)(r, sc)
		sc.Service.Nginx, sc.Service.Slow, sc.want.Unmet = false, action, checks
		sc.Args = append([]string{
			"--prefix", sc.Plan.Prefix, "--connections", "20", "--slow-percent", "20", "--seconds", "22", "--after-seconds", "3", "--message-rate", "12", "--max-open-late", "-1",
			"--gauge", "campaign_kept_bytes",
		}, args...)
	}
}

// detectVanished prepares the suite vanish. The service disconnects a client after the given time without an
// acknowledgment (0: the system's default). gauge, such as fakeservice.GaugeOpen, must show the disconnects within the
// given seconds. The run lasts 11 s longer: clients vanish after 6 s, and streams end 5 s before the end of the run.
func detectVanished(after time.Duration, gauge string, within int, outcomes []verdict.Outcome, checks ...verdict.CheckID) setup {
	return func(r *rand.Rand, sc *scenario) {
		streamSuite("vanish", outcomes)(r, sc)
		sc.Service.Nginx, sc.Service.AckTimeout, sc.Service.Gauge = false, after, gauge
		sc.Args = []string{"--prefix", sc.Plan.Prefix, "--connections", "60", "--seconds", fmt.Sprint(within + 11), "--gauge", "campaign_streams", "--max-open-late", "-1"}
		sc.want.Unmet = checks
	}
}

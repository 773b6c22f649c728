package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	suites "github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// The kinds of this file are of streams that break and resume behind their last message.

// resumeKinds are faults of services whose streams the run cuts.
var resumeKinds = []kind{
	{"resume", "first message lost at the seam", resumed(seamFirst)},
	{"resume", "last message lost at the seam", resumed(seamLast)},
	{"resume", "resumed from a later id", resumed(seamFurther)},
	{"resume", "resumed from an earlier id", then(resumed(""), func(r *rand.Rand, sc *scenario) { sc.HubFault.Overlap = 1 + r.IntN(2) })},
	{"resume", "resumed from the beginning", resumed(seamStart)},
	{"resume", "message doubled at the seam", resumed(seamTwice)},
	{"resume", "replayed in another order", resumed(seamSwap)},
	{"resume", "silent gap", resumed(seamNothing)},
	{"resume", "announced gap", then(resumed(seamTold), announces)},
	{"resume", "lost only where a client vanished", then(resumed(seamNothing), only("half"))},
	{"resume", "lost only where a client closed", then(resumed(seamNothing), only("closed"))},
	{"resume", "some streams resume wrongly", func(r *rand.Rand, sc *scenario) {
		resumed(oneOf(r, seamFirst, seamLast, seamNothing, seamTwice))(r, sc)
		for n := range sc.Plan.Connections / 2 {
			sc.HubFault.Devices = append(sc.HubFault.Devices, sc.Plan.id(2*n))
		}
	}},
	{"resume", "message lost outside of the cuts", func(r *rand.Rand, sc *scenario) {
		resumed("")(r, sc)
		strikeHub(r, sc, fakeservice.ActLose)
	}},
}

var cleanResumes = []kind{
	{"clean", "clean", resumed("")}, {"clean", "clean", resumed("")},
	{"clean", "clean", then(resumed(""), func(_ *rand.Rand, sc *scenario) { sc.Hub.Delivery = "at-least-once" })},
	{"clean", "clean", then(resumed(seamTold), announces, func(_ *rand.Rand, sc *scenario) {
		sc.HubFault.Allowed, sc.Args = true, append(sc.Args, "--allow-announced-gaps")
	})},
}

// resumed is a service whose streams are cut, and that does so to what they missed.
func resumed(seam string) prepare {
	return func(r *rand.Rand, sc *scenario) {
		goesOn(r, sc)
		sc.Suite, sc.HubFault.Seam = "resume", seam
		sc.Plan.Connections, sc.Plan.Seconds = max(20, sc.Plan.Connections), 18+r.IntN(3)
		sc.Args = []string{
			"--cuts-per-second", fmt.Sprint(oneOf(r, 2, 3, 4)), "--pause", oneOf(r, "0.5", "1", "2"), "--seed", strconv.Itoa(r.IntN(1000)),
		}
	}
}

// noopsResume is a service of noops whose streams are disconnected. It replays what they missed or not, with seam
// noops too many or too few. It has one stream per device, and would refuse one that is left half-open.
func noopsResume(replays bool, seam int, outcomes []verdict.Outcome, lost, doubled span) prepare {
	return func(r *rand.Rand, sc *scenario) {
		streams("resume", fakeservice.Strike{}, outcomes)(r, sc)
		numbered(r, sc)
		sc.Service.Nginx, sc.Service.EndsLate, sc.Service.Retry = false, false, 700
		sc.Service.Resume, sc.Service.Seam = replays, seam
		sc.want.Counts = counts{"cuts lost": lost, "cuts doubled": doubled}
		sc.Args = []string{
			"--connections", "40", "--seconds", "20", "--cuts-per-second", oneOf(r, "2", "3"), "--pause", "0.5", "--cuts", "fin:2,rst:2,pause:1",
			"--seed", strconv.Itoa(r.IntN(1000)), "--max-late", "-1",
		}
	}
}

// only limits a fault to the streams that were ended in one way. Pauses end none.
func only(how string) prepare {
	return func(_ *rand.Rand, sc *scenario) {
		sc.HubFault.Only = how
		sc.Args = append(sc.Args, "--cuts", "fin:1,rst:1,half:2,pause:1")
	}
}

// announces makes a service say that messages are missing.
func announces(r *rand.Rand, sc *scenario) { sc.Hub.Gap = oneOf(r, "event", "header") }

// goesOn makes a service give each message an id, behind which its streams resume, once each and in order.
func goesOn(r *rand.Rand, sc *scenario) {
	h := sc.Hub
	h.Order, h.Delivery, h.Pad = "", "", min(h.Pad, 5000)
	if h.Form != formID && (h.IDs == hubNone || h.IDs == hubConstant) {
		h.IDs = oneOf(r, hubUUID, hubTime)
	}
	if h.Resume != "data" {
		h.Resume = oneOf(r, "header", "query")
	}
	if h.Heartbeat == "after a line" { // it resets the id
		h.Heartbeat = "event"
	}
	h.Strangers = slices.DeleteFunc(h.Strangers, func(what string) bool { return strings.HasPrefix(what, "run") || strings.HasSuffix(what, "marker") }) // so do these
	h.End, h.Retry = oneOf(r, "client", "client", "request"), oneOf(r, 300, 700, 1000)
	sc.Plan.Reconnect = true
}

// stormKinds are faults of services whose streams the run drops, most of them at once, and twice.
var stormKinds = []kind{
	{"storm", "message lost at the seam", stormed(seamFirst)},
	{"storm", "message doubled at the seam", stormed(seamTwice)},
	{"storm", "silent gap", stormed(seamNothing)},
	{"storm", "held stream loses a message", func(r *rand.Rand, sc *scenario) {
		stormed("")(r, sc)
		strikeHub(r, sc, fakeservice.ActLose)
		sc.HubFault.Devices = []string{sc.Plan.id(10 * r.IntN(sc.Plan.Connections/10))}
	}},
	{"storm", "takes not all back", then(stormed(""), turned(0, "503", "reset"), failing(suites.CheckReturned))},
}

// A storm that some come through later than others is none that fails.
var cleanStorms = []kind{
	{"clean", "clean", stormed("")},
	{"clean", "clean", then(stormed(""), turned(1, "503", "429", "reset"), breaks(suites.CheckUnrefused))},
	{"clean", "clean", then(stormed(""), turned(1, "slow"), breaks(suites.CheckQuick))},
}

// stormed is a service that does so to what streams missed that were dropped.
func stormed(seam string) prepare {
	return func(r *rand.Rand, sc *scenario) {
		goesOn(r, sc)
		sc.Suite, sc.HubFault.Seam = "storm", seam
		sc.Hub.Start, sc.Hub.Retry = min(sc.Hub.Start, 100*time.Millisecond), 300
		sc.Plan.Connections, sc.Plan.Seconds, sc.Plan.PerVU = 30+r.IntN(40), 20, 0
		sc.Args = []string{"--max-held-late", "-1", "--dial-ms", "5000"}
	}
}

// turned makes a service refuse clients that reconnect, the given number of times each.
func turned(times int, how ...string) prepare {
	return func(r *rand.Rand, sc *scenario) {
		sc.HubFault.Turn, sc.HubFault.Turns, sc.HubFault.Wait = oneOf(r, how...), times, 1200*time.Millisecond
		if times == 0 { // for longer than a client may be disconnected
			sc.Plan.MaxOutage = 3
		}
		for n := 1; n < sc.Plan.Connections; n += 3 {
			if n%10 != 0 { // which is held
				sc.HubFault.Devices = append(sc.HubFault.Devices, sc.Plan.id(n))
			}
		}
	}
}

// breaks returns a step that expects one of these checks not to be met.
func breaks(broken ...verdict.CheckID) prepare {
	return func(_ *rand.Rand, sc *scenario) { sc.Broken = broken }
}

// failing returns a step that expects a failed run, whatever became of messages, because of one of these checks.
func failing(broken ...verdict.CheckID) prepare {
	return then(breaks(broken...), func(_ *rand.Rand, sc *scenario) { sc.Fails = true })
}

// forSome is a fault of some streams, independent of messages.
func forSome(f hubFault) prepare {
	return func(r *rand.Rand, sc *scenario) {
		f := f // a scenario may change its own
		f.Devices = sc.Plan.some(r)
		sc.HubFault = f
	}
}

// disconnected are the checks of clients that do not reconnect.
var disconnected = []verdict.CheckID{verdict.CheckHeld, verdict.CheckOutage, verdict.CheckOpenTime}

// lifetimeKinds are faults of services that end streams on purpose.
var lifetimeKinds = []kind{
	{"lifetime", "stream ends early", then(rotated(""), forSome(hubFault{Early: true}), failing(verdict.CheckLifetime))},
	{"lifetime", "stream ends late", then(rotated(""), forSome(hubFault{Overdue: true}), failing(verdict.CheckOverdue))},
	{"lifetime", "message lost at the rotation", rotated(seamFirst)},
	{"lifetime", "silent gap at the rotation", rotated(seamNothing)},
	{"lifetime", "announced gap at the rotation", then(rotated(seamTold), announces)},
	{"lifetime", "message doubled at the rotation", rotated(seamTwice)},
	{"lifetime", "other order at the rotation", rotated(seamSwap)},
}

var cleanLifetimes = []kind{{"clean", "clean", rotated("")}}

// reconnectKinds are correct services whose streams end so late that clients have no time to reconnect.
var reconnectKinds = []kind{
	{"published reconnect", "clean random ends", func(r *rand.Rand, sc *scenario) {
		goesOn(r, sc)
		sc.Plan.Connections, sc.Plan.Seconds, sc.Hub.Retry = 60, lead+10, 300
		sc.HubFault.Lives = 30 * time.Second
	}},
	{"published reconnect", "refused once after a planned end", func(r *rand.Rand, sc *scenario) {
		rotated("")(r, sc)
		sc.HubFault.Turn, sc.HubFault.Turns, sc.HubFault.Devices = "503", 1, []string{sc.Plan.id(0)}
	}},
}

// rotated is a service that does so to what streams missed that it ended.
func rotated(seam string) prepare {
	return func(r *rand.Rand, sc *scenario) {
		goesOn(r, sc)
		sc.Hub.End, sc.Hub.Lifetime, sc.HubFault.Seam = "server", 2.5+r.Float64(), seam
		sc.Plan.Seconds = lead + 10
	}
}

// tokenKinds are faults around tokens that are soon over, with which the service ends a stream.
var tokenKinds = []kind{
	{"token", "good token refused at a reconnect", then(tokened("anew", ""), forSome(hubFault{Stale: true}), failing(disconnected...))},
	{"token", "first token kept", then(tokened("once", ""), failing(disconnected...))},
	{"token", "no token at a reconnect", then(tokened("fails", ""), failing(disconnected...))},
	{"token", "message lost at the next token", tokened("anew", seamFirst)},
	{"token", "silent gap at the next token", tokened("anew", seamNothing)},
}

// A service that takes tokens without a look at their time is none that this would find.
var cleanTokens = []kind{{"clean", "clean", tokened("anew", "")}, {"clean", "clean", then(tokened("once", ""), func(_ *rand.Rand, sc *scenario) { sc.Hub.TTL = 0 })}}

func tokened(token, seam string) prepare {
	return func(r *rand.Rand, sc *scenario) {
		goesOn(r, sc)
		sc.Hub.Token, sc.Hub.TTL, sc.HubFault.Seam = token, 3, seam
		sc.Plan.Seconds = lead + 10
		sc.Args = []string{"--token-ttl", "3"}
	}
}

// actionKinds are faults around an action that restarts the service.
var actionKinds = []kind{
	{"action", "messages lost by the restart", acted(seamNothing, "")},
	{"action", "message lost at the seam", acted(seamFirst, "")},
	{"action", "message doubled at the seam", acted(seamTwice, "")},
	{"action", "not back in time", then(acted("", ""), failing(verdict.CheckBack), func(_ *rand.Rand, sc *scenario) {
		sc.disturb = restarted(3 * time.Second)
		sc.Hub.Retry, sc.Plan.Seconds = 300, 20 // all are back in the end
		sc.Args = append(sc.Args, "--back-within", "1")
	})},
	{"action", "some not back at all", then(acted("", ""), turned(0, "503"), failing())},
	{"action", "the action fails", then(acted("", "; echo I could not >&2; exit 3"), func(_ *rand.Rand, sc *scenario) {
		sc.want = invalid(verdict.CheckActions)
	})},
	{"action", "ids reset before the restart", then(acted("", ""), resetsIDs)},
	{"action", "no ids at the restart", then(acted("", ""), sendsNoIDs)},
	{"action", "the action fails, and messages are lost", acted(seamNothing, "; exit 3")},
}

var cleanActions = []kind{{"clean", "clean", acted("", "")}}

// acted is a run whose action restarts the service, which does so to what streams missed meanwhile.
func acted(seam, more string) prepare {
	return func(r *rand.Rand, sc *scenario) {
		goesOn(r, sc)
		sc.HubFault.Seam = seam
		sc.Plan.Seconds = lead + 11
		sc.disturb = restarted(time.Duration(r.IntN(1000)) * time.Millisecond)
		sc.Args = []string{"--at", fmt.Sprintf("%ds restart: touch %s%s", 5+r.IntN(2), restartFile, more)}
	}
}

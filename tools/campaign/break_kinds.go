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

// The kinds in this file are faults of streams that end during the run. Clients resume these streams after the last
// received message.

// resumeKinds are faults of services whose streams the run disconnects.
var resumeKinds = []kind{
	{"resume", "first message lost at the seam", cutAndResume(seamLosesFirst)},
	{"resume", "last message lost at the seam", cutAndResume(seamLosesLast)},
	{"resume", "resumed from a later id", cutAndResume(seamSkipsTwo)},
	{"resume", "resumed from an earlier id", combine(cutAndResume(""), func(r *rand.Rand, sc *scenario) { sc.HubFault.Overlap = 1 + r.IntN(2) })},
	{"resume", "resumed from the beginning", cutAndResume(seamReplaysAll)},
	{"resume", "message doubled at the seam", cutAndResume(seamRepeatsLast)},
	{"resume", "replayed in another order", cutAndResume(seamSwapsFirst)},
	{"resume", "silent gap", cutAndResume(seamLosesAll)},
	{"resume", "announced gap", combine(cutAndResume(seamAnnounced), announceGaps)},
	{"resume", "lost only if a client vanished", combine(cutAndResume(seamLosesAll), limitFaultToEnd("half"))},
	{"resume", "lost only if a client closed", combine(cutAndResume(seamLosesAll), limitFaultToEnd("closed"))},
	{"resume", "some streams resume wrongly", func(r *rand.Rand, sc *scenario) {
		cutAndResume(oneOf(r, seamLosesFirst, seamLosesLast, seamLosesAll, seamRepeatsLast))(r, sc)
		for n := range sc.Plan.Connections / 2 {
			sc.HubFault.Clients = append(sc.HubFault.Clients, sc.Plan.id(2*n))
		}
	}},
	{"resume", "message lost outside of the cuts", func(r *rand.Rand, sc *scenario) {
		cutAndResume("")(r, sc)
		strikeHub(r, sc, fakeservice.ActLose)
	}},
}

var cleanResumes = clean(
	cutAndResume(""), cutAndResume(""),
	combine(cutAndResume(""), func(_ *rand.Rand, sc *scenario) { sc.Hub.Delivery = "at-least-once" }),
	combine(cutAndResume(seamAnnounced), announceGaps, func(_ *rand.Rand, sc *scenario) {
		sc.HubFault.Allowed, sc.Args = true, append(sc.Args, "--allow-announced-gaps")
	}),
)

// cutAndResume prepares a run that disconnects streams. seam is the effect on a replay (hub_seam.go).
func cutAndResume(seam string) setup {
	return func(r *rand.Rand, sc *scenario) {
		makeResumable(r, sc)
		sc.Suite, sc.HubFault.Seam = "resume", seam
		sc.Plan.Connections, sc.Plan.Seconds = max(20, sc.Plan.Connections), 18+r.IntN(3)
		sc.Args = []string{
			"--cuts-per-second", fmt.Sprint(oneOf(r, 2, 3, 4)), "--pause", oneOf(r, "0.5", "1", "2"), "--seed", strconv.Itoa(r.IntN(1000)),
		}
	}
}

// noopsResume prepares a run that disconnects streams of noops. A replay starts seam noops too late (negative: too
// early). No cut leaves a stream half-open, because the service refuses a second open stream of a client.
func noopsResume(replays bool, seam int, outcomes []verdict.Outcome, lost, duplicated span) setup {
	return func(r *rand.Rand, sc *scenario) {
		streamSuite("resume", outcomes)(r, sc)
		numberNoops(r, sc)
		sc.Service.Nginx, sc.Service.EndsLate, sc.Service.Retry = false, false, 700
		sc.Service.Resume, sc.Service.Seam = replays, seam
		sc.want.Counts = counts{"cuts lost": lost, "cuts duplicated": duplicated}
		sc.Args = []string{
			"--connections", "40", "--seconds", "20", "--cuts-per-second", oneOf(r, "2", "3"), "--pause", "0.5", "--cuts", "fin:2,rst:2,pause:1",
			"--seed", strconv.Itoa(r.IntN(1000)), "--max-late", "0",
		}
	}
}

// limitFaultToEnd limits a fault to streams that ended in the given way. A pause does not end a stream.
func limitFaultToEnd(end string) setup {
	return func(_ *rand.Rand, sc *scenario) {
		sc.HubFault.StreamsOf = end
		sc.Args = append(sc.Args, "--cuts", "fin:1,rst:1,half:2,pause:1")
	}
}

func announceGaps(r *rand.Rand, sc *scenario) { sc.Hub.Gap = oneOf(r, "event", "header") }

// makeResumable makes messages arrive once and in order, streams resume from any message, and clients reconnect.
func makeResumable(r *rand.Rand, sc *scenario) {
	h := sc.Hub
	h.Order, h.Delivery, h.Pad = "", "", min(h.Pad, 5000)
	if h.Form != formID && (h.IDs == idsNone || h.IDs == idsConstant) {
		h.IDs = oneOf(r, idsUUID, idsTime)
	}
	if h.Resume != "data" {
		h.Resume = oneOf(r, "header", "query")
	}
	if h.Heartbeat == "after a line" { // such a heartbeat resets the id
		h.Heartbeat = "event"
	}
	// Blocks of other publishers also change the id.
	h.Foreign = slices.DeleteFunc(h.Foreign, func(name string) bool { return strings.HasPrefix(name, "run") || strings.HasSuffix(name, "marker") })
	h.End, h.Retry = oneOf(r, "client", "client", "request"), oneOf(r, 300, 700, 1000)
	sc.Plan.Reconnect = true
}

// stormKinds are faults of services in a storm: the run drops most streams at once, twice.
var stormKinds = []kind{
	{"storm", "message lost at the seam", stormKind(seamLosesFirst)},
	{"storm", "message doubled at the seam", stormKind(seamRepeatsLast)},
	{"storm", "silent gap", stormKind(seamLosesAll)},
	{"storm", "message lost on a stream that stays open", func(r *rand.Rand, sc *scenario) {
		stormKind("")(r, sc)
		strikeHub(r, sc, fakeservice.ActLose)
		sc.HubFault.Clients = []string{sc.Plan.id(10 * r.IntN(sc.Plan.Connections/10))}
	}},
	{"storm", "some reconnects refused", combine(stormKind(""), refuseHubReconnects(0, "503", "reset"), expectFailure(suites.CheckAllReconnected))},
}

var cleanStorms = clean(
	stormKind(""),
	combine(stormKind(""), refuseHubReconnects(1, "503", "429", "reset"), expectUnmet(suites.CheckRefusals)),
	combine(stormKind(""), refuseHubReconnects(1, "slow"), expectUnmet(suites.CheckSlowConnects)),
)

// stormKind prepares a storm. seam is as in cutAndResume.
func stormKind(seam string) setup {
	return func(r *rand.Rand, sc *scenario) {
		makeResumable(r, sc)
		sc.Suite, sc.HubFault.Seam = "storm", seam
		sc.Hub.HeaderDelay, sc.Hub.Retry = min(sc.Hub.HeaderDelay, 100*time.Millisecond), 300
		sc.Plan.Connections, sc.Plan.Seconds, sc.Plan.PerVU = 30+r.IntN(40), 20, 0
		sc.Args = []string{"--max-open-late", "-1", "--dial-ms", "5000"}
	}
}

// refuseHubReconnects makes the hub refuse or delay the first reconnects of about a third of the clients. If times is
// 0, all reconnects of these clients are affected.
func refuseHubReconnects(times int, actions ...string) setup {
	return func(r *rand.Rand, sc *scenario) {
		sc.HubFault.Reconnect, sc.HubFault.Reconnects, sc.HubFault.Wait = oneOf(r, actions...), times, 1200*time.Millisecond
		if times == 0 { // clients stay disconnected for longer than MAX_OUTAGE
			sc.Plan.MaxOutage = 3
		}
		for n := 1; n < sc.Plan.Connections; n += 3 {
			if n%10 != 0 { // every tenth stream stays open in a storm
				sc.HubFault.Clients = append(sc.HubFault.Clients, sc.Plan.id(n))
			}
		}
	}
}

func expectUnmet(checks ...verdict.CheckID) setup {
	return func(_ *rand.Rand, sc *scenario) { sc.Unmet = checks }
}

// expectFailure expects the run to fail, even if no message is missing, and one of these checks, if any, to be unmet.
func expectFailure(checks ...verdict.CheckID) setup {
	return combine(expectUnmet(checks...), func(_ *rand.Rand, sc *scenario) { sc.Fails = true })
}

// affectSomeClients prepares a fault that affects some clients and does not depend on messages.
func affectSomeClients(f hubFault) setup {
	return func(r *rand.Rand, sc *scenario) {
		f := f // a copy, because the scenario may change it
		f.Clients = sc.Plan.randomIDs(r)
		sc.HubFault = f
	}
}

var reconnectChecks = []verdict.CheckID{verdict.CheckOpenToEnd, verdict.CheckOutage, verdict.CheckOpenTime}

// lifetimeKinds are faults of services that end streams on purpose.
var lifetimeKinds = []kind{
	{"lifetime", "stream ends early", combine(rotate(""), affectSomeClients(hubFault{Early: true}), expectFailure(verdict.CheckLifetime))},
	{"lifetime", "stream ends late", combine(rotate(""), affectSomeClients(hubFault{Overdue: true}), expectFailure(verdict.CheckOverdue))},
	{"lifetime", "message lost at the rotation", rotate(seamLosesFirst)},
	{"lifetime", "silent gap at the rotation", rotate(seamLosesAll)},
	{"lifetime", "announced gap at the rotation", combine(rotate(seamAnnounced), announceGaps)},
	{"lifetime", "message doubled at the rotation", rotate(seamRepeatsLast)},
	{"lifetime", "other order at the rotation", rotate(seamSwapsFirst)},
}

var cleanLifetimes = clean(rotate(""))

// reconnectKinds are runs whose streams may end too late for a reconnect, and runs in which a reconnect is refused
// once.
var reconnectKinds = []kind{
	{"published reconnect", "clean random ends", func(r *rand.Rand, sc *scenario) {
		makeResumable(r, sc)
		sc.Plan.Connections, sc.Plan.Seconds, sc.Hub.Retry = 60, lead+10, 300
		sc.HubFault.MeanLifetime = 30 * time.Second
	}},
	{"published reconnect", "refused once after a planned end", func(r *rand.Rand, sc *scenario) {
		rotate("")(r, sc)
		sc.HubFault.Reconnect, sc.HubFault.Reconnects, sc.HubFault.Clients = "503", 1, []string{sc.Plan.id(0)}
	}},
}

// rotate prepares a service that ends each stream after a lifetime. seam is as in cutAndResume.
func rotate(seam string) setup {
	return func(r *rand.Rand, sc *scenario) {
		makeResumable(r, sc)
		sc.Hub.End, sc.Hub.Lifetime, sc.HubFault.Seam = "server", 2.5+r.Float64(), seam
		sc.Plan.Seconds = lead + 10
	}
}

// tokenKinds are faults of services or token() functions. The service ends a stream when its token expires.
var tokenKinds = []kind{
	{"token", "valid token refused at a reconnect", combine(requireToken("fresh", ""), affectSomeClients(hubFault{TokenRefused: true}), expectFailure(reconnectChecks...))},
	{"token", "first token kept", combine(requireToken("once", ""), expectFailure(reconnectChecks...))},
	{"token", "no token at a reconnect", combine(requireToken("fails", ""), expectFailure(reconnectChecks...))},
	{"token", "message lost at the next token", requireToken("fresh", seamLosesFirst)},
	{"token", "silent gap at the next token", requireToken("fresh", seamLosesAll)},
}

// cleanTokens are runs that must pass, including one against a service that does not check the expiry of tokens.
var cleanTokens = clean(requireToken("fresh", ""), combine(requireToken("once", ""), func(_ *rand.Rand, sc *scenario) { sc.Hub.TTL = 0 }))

// requireToken prepares a service whose tokens are valid for 3 s. token is a key of tokens; seam is as in cutAndResume.
func requireToken(token, seam string) setup {
	return func(r *rand.Rand, sc *scenario) {
		makeResumable(r, sc)
		sc.Hub.Token, sc.Hub.TTL, sc.HubFault.Seam = token, 3, seam
		sc.Plan.Seconds = lead + 10
		sc.Args = []string{"--token-ttl", "3"}
	}
}

// actionKinds are faults of runs whose action restarts the service.
var actionKinds = []kind{
	{"action", "messages lost by the restart", actionKind(seamLosesAll, "")},
	{"action", "message lost at the seam", actionKind(seamLosesFirst, "")},
	{"action", "message doubled at the seam", actionKind(seamRepeatsLast, "")},
	{"action", "not reconnected in time", combine(actionKind("", ""), expectFailure(verdict.CheckReconnected), func(_ *rand.Rand, sc *scenario) {
		sc.disturb = restartHub(3 * time.Second)
		sc.Hub.Retry, sc.Plan.Seconds = 300, 20 // enough time for all streams to reconnect
		sc.Args = append(sc.Args, "--back-within", "1")
	})},
	{"action", "some clients never reconnect", combine(actionKind("", ""), refuseHubReconnects(0, "503"), expectFailure())},
	{"action", "the action fails", combine(actionKind("", "; echo I could not >&2; exit 3"), func(_ *rand.Rand, sc *scenario) {
		sc.want = expectInvalid(verdict.CheckActions)
	})},
	{"action", "ids reset before the restart", combine(actionKind("", ""), resetIDs)},
	{"action", "no ids at the restart", combine(actionKind("", ""), omitHubIDs)},
	{"action", "the action fails, and messages are lost", actionKind(seamLosesAll, "; exit 3")},
}

var cleanActions = clean(actionKind("", ""))

// actionKind prepares a run whose action restarts the service and then runs command, which is empty or starts with a
// shell separator. seam is as in cutAndResume.
func actionKind(seam, command string) setup {
	return func(r *rand.Rand, sc *scenario) {
		makeResumable(r, sc)
		sc.HubFault.Seam = seam
		sc.Plan.Seconds = lead + 11
		sc.disturb = restartHub(time.Duration(r.IntN(1000)) * time.Millisecond)
		sc.Args = []string{"--at", fmt.Sprintf("%ds restart: touch %s%s", 5+r.IntN(2), restartFile, command)}
	}
}

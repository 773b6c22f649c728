package suite

import "github.com/sse-soak/sse-soak/internal/verdict"

// The checks of suites, in addition to those of package verdict.
const (
	CheckLowest    verdict.CheckID = "load.lowest" // the lowest load was sustained
	CheckSustained verdict.CheckID = "load.sustained"
	CheckClimb     verdict.CheckID = "load.climb" // the search ended at a breaking point or the ceiling
	CheckHealth    verdict.CheckID = "load.recovery"
	CheckRate      verdict.CheckID = "load.rate"
	CheckCorrect   verdict.CheckID = "answers.correct"
	CheckServers   verdict.CheckID = "cluster.servers"
	CheckEnded     verdict.CheckID = "streams.ended"
	CheckLeaks     verdict.CheckID = "backend.leaks"
	CheckMemory    verdict.CheckID = "memory.growth"

	CheckDelivered     verdict.CheckID = "deliveries.complete"
	CheckDeliveredOnce verdict.CheckID = "deliveries.once"
	CheckIntact        verdict.CheckID = "deliveries.intact"
	CheckTimed         verdict.CheckID = "deliveries.timed"

	CheckTried      verdict.CheckID = "handshakes.tried"
	CheckFailed     verdict.CheckID = "handshakes.failed"
	CheckMean       verdict.CheckID = "handshakes.mean"
	CheckStrangers  verdict.CheckID = "handshakes.untrusted"
	CheckHeldAtOnce verdict.CheckID = "handshakes.held-at-once"

	CheckBystanders verdict.CheckID = "bystanders.lost" // streams that the suite leaves alone
	CheckSlow       verdict.CheckID = "slow.started"
	CheckFilled     verdict.CheckID = "slow.behind"
	CheckSlowClosed verdict.CheckID = "slow.closed"
	CheckDropped    verdict.CheckID = "storm.dropped"
	CheckDialed     verdict.CheckID = "storm.dialed"
	CheckReturned   verdict.CheckID = "storm.reconnected"
	CheckUnrefused  verdict.CheckID = "storm.refused"
	CheckQuick      verdict.CheckID = "storm.slow-connects"
	CheckVanished   verdict.CheckID = "vanish.vanished"
	CheckGauge      verdict.CheckID = "vanish.gauge"
	CheckNoticed    verdict.CheckID = "vanish.noticed"

	CheckResponsesComplete   verdict.CheckID = "responses.complete"
	CheckResponsesTruncated  verdict.CheckID = "responses.truncated"
	CheckResponsesError      verdict.CheckID = "responses.error-event"
	CheckResponsesEmpty      verdict.CheckID = "responses.empty"
	CheckResponsesIdle       verdict.CheckID = "responses.idle"
	CheckResponsesAfterDone  verdict.CheckID = "responses.after-done"
	CheckResponsesUnfinished verdict.CheckID = "responses.unfinished"
	CheckResponsesRefused    verdict.CheckID = "responses.refused"
	CheckResponsesLingering  verdict.CheckID = "responses.lingering"
	CheckResponsesSkipped    verdict.CheckID = "responses.skipped"
	CheckChunksMissed        verdict.CheckID = "chunks.missed"
	CheckChunksDuplicated    verdict.CheckID = "chunks.duplicated"
	CheckChunksReordered     verdict.CheckID = "chunks.reordered"
	CheckChunksCorrupted     verdict.CheckID = "chunks.corrupted"
	CheckGoodput             verdict.CheckID = "responses.goodput"
	CheckNumbered            verdict.CheckID = "responses.numbered"
)

// bystander returns the id of a check that is made of the streams that the suite leaves alone.
func bystander(id verdict.CheckID) verdict.CheckID { return "bystanders." + id }

// whys states the impact of each check on users and operators of the service.
var whys = map[verdict.CheckID]string{
	CheckLowest:    "a service that fails at the lowest load has no breaking point to find",
	CheckSustained: "users are not served at the load that is planned",
	CheckClimb:     "a load that was not tried may break the service",
	CheckHealth:    "users are not served after a burst",
	CheckRate:      "a slow service prolongs waits and outages",
	CheckCorrect:   "clients act on wrong answers, and read unrequested bytes as the answer to their next request",
	CheckServers:   "the load balancer does not use every server; servers name themselves by X-Server",
	CheckEnded:     "streams that do not end exhaust the service",
	CheckLeaks:     "the remains of connections exhaust the service",
	CheckMemory:    "memory that grows with clients exhausts the service",

	CheckDelivered:     "clients lose messages",
	CheckDeliveredOnce: "clients process a message twice",
	CheckIntact:        "clients read damaged messages",
	CheckTimed:         "the delay of a delivery is not known",

	CheckTried:      "a connection that was not tried proves nothing",
	CheckFailed:     "users cannot connect",
	CheckMean:       "users wait that long to connect",
	CheckStrangers:  "the server accepts untrusted certificates",
	CheckHeldAtOnce: "the server never had that many connections",

	CheckBystanders: "other clients lose their streams",
	CheckSlow:       "clients that read fill no buffer",
	CheckFilled:     "kernel buffers hide from the service that clients do not read",
	CheckSlowClosed: "clients on slow networks are cut off, or clients that never read occupy the service",
	CheckDropped:    "fewer dropped streams are no storm",
	CheckDialed:     "connects that the generator delays are no storm",
	CheckReturned:   "clients stay without a stream",
	CheckUnrefused:  "refused clients reconnect later",
	CheckQuick:      "users wait for their streams",
	CheckVanished:   "the service cannot notice clients that stayed",
	CheckGauge:      "a gauge of something else does not show streams",
	CheckNoticed:    "leaked streams exhaust the service",

	CheckResponsesComplete:   "a run without a complete response proves nothing",
	CheckResponsesTruncated:  "users read half an answer, and their client takes it for a whole one",
	CheckResponsesError:      "users get an error in place of an answer",
	CheckResponsesEmpty:      "users get no answer",
	CheckResponsesIdle:       "users wait for an answer that does not come",
	CheckResponsesAfterDone:  "clients that stop at the terminal event miss what follows, the others process it twice",
	CheckResponsesUnfinished: "a response that is still open may never end",
	CheckResponsesRefused:    "users are turned away",
	CheckResponsesLingering:  "clients that wait for the end of the response wait in vain, and hold a connection",
	CheckResponsesSkipped:    "a service under less load than planned is not the one that was to be judged",
	CheckChunksMissed:        "parts of the answer are lost without an error",
	CheckChunksDuplicated:    "parts of the answer are there twice",
	CheckChunksReordered:     "the answer is garbled",
	CheckChunksCorrupted:     "the answer is changed on its way",
	CheckGoodput:             "users wait longer than they were promised",
	CheckNumbered:            "without its numbers a complete answer may be another one, or lack chunks",

	verdict.CheckHeld:      "clients lose their connections",
	verdict.CheckObserved:  "a stream that was not observed proves nothing",
	verdict.CheckOwnCount:  "requests were lost on the way, or others used the service",
	verdict.CheckGenerator: "the figures of a saturated load generator are not those of the service",
	verdict.CheckConfirmed: "publishers wait for clients that do not read",
}

// check returns a check with its impact. The reasons are kept if it is not met.
func check(id verdict.CheckID, name, limit string, actual any, pass bool, reasons ...string) verdict.Check {
	c := verdict.Check{ID: id, Name: name, Limit: limit, Actual: text(actual), Pass: pass, Why: whys[id]}
	if !pass {
		c.Reasons = reasons
	}
	return c
}

// inconclusive makes a run invalid if the check is not met.
func inconclusive(c verdict.Check) verdict.Check {
	c.Severity = verdict.SeverityInconclusive
	return c
}

// advisory makes a check that is not met a warning.
func advisory(c verdict.Check) verdict.Check {
	c.Severity = verdict.SeverityWarning
	return c
}

// atLeast writes a limit of which 0 is none.
func atLeast(limit float64) string {
	if limit > 0 {
		return "at least " + count(limit)
	}
	return "any"
}

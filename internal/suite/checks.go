package suite

import "github.com/sse-soak/sse-soak/internal/verdict"

// whys has the impact of each check on users and operators of the service.
var whys = map[verdict.CheckID]string{
	verdict.CheckHeld:      "clients lose their connections",
	verdict.CheckObserved:  "a stream that was not observed proves nothing",
	verdict.CheckOwnCount:  "requests were lost on the way, or others used the service",
	verdict.CheckGenerator: "the figures of a saturated load generator are not those of the service",
	verdict.CheckConfirmed: "publishers wait for clients that do not read",
}

// impact returns the id of a check, and records its impact.
func impact(id verdict.CheckID, reason string) verdict.CheckID {
	whys[id] = reason
	return id
}

// The checks of suites, in addition to those of package verdict.
var (
	CheckLowest    = impact("load.lowest", "a service that fails at the lowest load has no breaking point to find")
	CheckSustained = impact("load.sustained", "users are not served at the load that is planned")
	CheckClimb     = impact("load.climb", "a load that was not tried may break the service")
	CheckHealth    = impact("load.recovery", "users are not served after a burst")
	CheckRate      = impact("load.rate", "a slow service prolongs waits and outages")
	CheckCorrect   = impact("answers.correct", "clients act on wrong answers, and read unrequested bytes as the answer to their next request")
	CheckServers   = impact("cluster.servers", "the load balancer does not use every server; servers name themselves by X-Server")
	CheckEnded     = impact("streams.ended", "streams that do not end exhaust the service")
	CheckLeaks     = impact("backend.leaks", "the remains of connections exhaust the service")
	CheckMemory    = impact("memory.growth", "memory that grows with clients exhausts the service")

	CheckDelivered     = impact("deliveries.complete", "clients lose messages")
	CheckDeliveredOnce = impact("deliveries.once", "clients process a message twice")
	CheckIntact        = impact("deliveries.intact", "clients read damaged messages")
	CheckTimed         = impact("deliveries.timed", "the delay of a delivery is not known")

	CheckTried      = impact("handshakes.tried", "a connection that was not tried proves nothing")
	CheckFailed     = impact("handshakes.failed", "users cannot connect")
	CheckMean       = impact("handshakes.mean", "users wait that long to connect")
	CheckUntrusted  = impact("handshakes.untrusted", "the server accepts untrusted certificates")
	CheckHeldAtOnce = impact("handshakes.held-at-once", "the server never had that many connections")

	CheckBystanders = impact("bystanders.lost", "other clients lose their streams") // streams that the suite leaves alone
	CheckSlow       = impact("slow.started", "clients that read fill no buffer")
	CheckFilled     = impact("slow.behind", "kernel buffers hide from the service that clients do not read")
	CheckSlowClosed = impact("slow.closed", "clients on slow networks are cut off, or clients that never read occupy the service")
	CheckDropped    = impact("storm.dropped", "too few dropped streams do not test a storm")
	CheckDialed     = impact("storm.dialed", "late connects of the generator do not test a storm")
	CheckReturned   = impact("storm.reconnected", "clients stay without a stream")
	CheckUnrefused  = impact("storm.refused", "refused clients reconnect later")
	CheckQuick      = impact("storm.slow-connects", "users wait for their streams")
	CheckVanished   = impact("vanish.vanished", "the service cannot notice clients that stayed")
	CheckGauge      = impact("vanish.gauge", "a gauge of something else does not show streams")
	CheckNoticed    = impact("vanish.noticed", "leaked streams exhaust the service")

	CheckResponsesComplete   = impact("responses.complete", "a run without a complete response proves nothing")
	CheckResponsesTruncated  = impact("responses.truncated", "users read half an answer, and their client takes it for a whole one")
	CheckResponsesError      = impact("responses.error-event", "users get an error in place of an answer")
	CheckResponsesEmpty      = impact("responses.empty", "users get no answer")
	CheckResponsesIdle       = impact("responses.idle", "users wait for an answer that does not come")
	CheckResponsesAfterDone  = impact("responses.after-done", "clients that stop at the terminal event miss what follows, the others process it twice")
	CheckResponsesUnfinished = impact("responses.unfinished", "a response that is still open may never end")
	CheckResponsesRefused    = impact("responses.refused", "users are turned away")
	CheckResponsesLingering  = impact("responses.lingering", "clients that wait for the end of the response wait in vain, and hold a connection")
	CheckResponsesSkipped    = impact("responses.skipped", "a service under less load than planned is not the one that was to be judged")
	CheckChunksMissed        = impact("chunks.missed", "parts of the answer are lost without an error")
	CheckChunksDuplicated    = impact("chunks.duplicated", "parts of the answer are there twice")
	CheckChunksReordered     = impact("chunks.reordered", "the answer is garbled")
	CheckChunksCorrupted     = impact("chunks.corrupted", "the answer is changed on its way")
	CheckGoodput             = impact("responses.goodput", "users wait longer than they were promised")
	CheckNumbered            = impact("responses.numbered", "without its numbers a complete answer may be another one, or lack chunks")
)

// bystander returns the id of a check that is made of the streams that the suite leaves alone.
func bystander(id verdict.CheckID) verdict.CheckID { return "bystanders." + id }

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

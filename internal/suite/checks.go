package suite

import "github.com/sse-soak/sse-soak/internal/verdict"

// impacts maps the ids of checks to the impacts of unmet checks on users and operators of the service.
var impacts = map[verdict.CheckID]string{
	verdict.CheckOpenToEnd:   "clients lose their connections",
	verdict.CheckObserved:    "losses on streams that were not observed are undetectable",
	verdict.CheckServerCount: "requests were lost on the way, or other clients used the service",
	verdict.CheckGenerator:   "measured times include delays of a saturated load generator",
	verdict.CheckConfirmed:   "publishers wait for clients that do not read",
}

func withImpact(id verdict.CheckID, impact string) verdict.CheckID {
	impacts[id] = impact
	return id
}

// The ids of the checks of suites. Package verdict defines the ids of the checks that all runs share.
var (
	CheckLowest    = withImpact("load.lowest", "a breaking point below the lowest load cannot be found")
	CheckSustained = withImpact("load.sustained", "users are not served at the planned load")
	CheckClimb     = withImpact("load.climb", "a higher load was not tried, and may break the service")
	CheckHealth    = withImpact("load.recovery", "users are not served after a burst")
	CheckRate      = withImpact("load.rate", "a slow service prolongs waits and outages")
	CheckCorrect   = withImpact("answers.correct", "clients process wrong responses, and treat unrequested bytes as the response to their next request")
	CheckServers   = withImpact("cluster.servers", "the load balancer does not use every server (header X-Server)")
	CheckEnded     = withImpact("streams.ended", "streams that do not end exhaust the service")
	CheckLeaks     = withImpact("backend.leaks", "resources that connections do not release exhaust the service")
	CheckMemory    = withImpact("memory.growth", "memory that grows with clients exhausts the service")

	CheckDelivered     = withImpact("deliveries.complete", "clients lose messages")
	CheckBroadcasts    = withImpact("deliveries.sent", "the service was tested with fewer broadcasts than planned")
	CheckDeliveredOnce = withImpact("deliveries.once", "clients process a message twice")
	CheckIntact        = withImpact("deliveries.intact", "clients read damaged messages")
	CheckSendTime      = withImpact("deliveries.timed", "the delay of a delivery is unknown")

	CheckTried        = withImpact("handshakes.tried", "faults of connections that were not tried are undetectable")
	CheckFailed       = withImpact("handshakes.failed", "users cannot connect")
	CheckMean         = withImpact("handshakes.mean", "users wait longer to connect")
	CheckUntrusted    = withImpact("handshakes.untrusted", "the server accepts untrusted certificates")
	CheckOpenTogether = withImpact("handshakes.held-at-once", "the server was not tested with that many connections")

	// CheckBystanders is about the streams that the suite does not disturb.
	CheckBystanders     = withImpact("bystanders.lost", "other clients lose their streams")
	CheckSlow           = withImpact("slow.started", "clients that read at full speed do not fill a buffer")
	CheckBacklog        = withImpact("slow.behind", "kernel buffers stored all data, so the service was not tested")
	CheckSlowClosed     = withImpact("slow.closed", "clients on slow networks are disconnected, or clients that never read exhaust the service")
	CheckSlowComplete   = withImpact("slow.complete", "slow clients lose messages and do not detect it")
	CheckDropped        = withImpact("storm.dropped", "a storm was not tested: too few streams were dropped")
	CheckDialDelay      = withImpact("storm.dialed", "a storm was not tested: the load generator connected too slowly")
	CheckAllReconnected = withImpact("storm.reconnected", "clients stay without a stream")
	CheckRefusals       = withImpact("storm.refused", "refused clients reconnect later")
	CheckSlowConnects   = withImpact("storm.slow-connects", "users wait for their streams")
	CheckVanished       = withImpact("vanish.vanished", "vanished clients were not tested: too few vanished")
	CheckGauge          = withImpact("vanish.gauge", "the gauge does not show how many streams the service has open")
	CheckNoticed        = withImpact("vanish.noticed", "leaked streams exhaust the service")

	CheckResponsesComplete   = withImpact("responses.complete", "a run without a complete response checks no response to its end")
	CheckResponsesTruncated  = withImpact("responses.truncated", "users read a part of an answer, and clients take it for the whole answer")
	CheckResponsesError      = withImpact("responses.error-event", "users get an error in place of an answer")
	CheckResponsesEmpty      = withImpact("responses.empty", "users get no answer")
	CheckResponsesIdle       = withImpact("responses.idle", "users wait for an answer that does not come")
	CheckResponsesAfterDone  = withImpact("responses.after-done", "clients that stop at the terminal event miss these events; others may process the end of a response twice")
	CheckResponsesUnfinished = withImpact("responses.unfinished", "a response that is still open may never end")
	CheckResponsesRefused    = withImpact("responses.refused", "users are turned away")
	CheckResponsesLingering  = withImpact("responses.lingering", "clients that wait for the end of the response wait too long, and occupy a connection")
	CheckResponsesSkipped    = withImpact("responses.skipped", "the service was tested with less load than planned")
	CheckChunksMissed        = withImpact("chunks.missed", "parts of the answer are lost without an error")
	CheckChunksDuplicated    = withImpact("chunks.duplicated", "parts of the answer appear twice")
	CheckChunksReordered     = withImpact("chunks.reordered", "parts of the answer appear in the wrong order")
	CheckChunksCorrupted     = withImpact("chunks.corrupted", "the answer was changed in transit")
	CheckGoodput             = withImpact("responses.goodput", "users wait longer than the limits allow")
	CheckNumbered            = withImpact("responses.numbered", "without numbers, lost chunks, or an answer that belongs to another request, are undetectable")
)

func bystander(id verdict.CheckID) verdict.CheckID { return "bystanders." + id }

// check returns a check with its impact. It ignores the reasons if the check is met.
func check(id verdict.CheckID, name, limit string, actual any, pass bool, reasons ...string) verdict.Check {
	c := verdict.Check{ID: id, Name: name, Limit: limit, Actual: text(actual), Pass: pass, Why: impacts[id]}
	if !pass {
		c.Reasons = reasons
	}
	return c
}

// invalidateIfUnmet returns a copy of the check. If it is not met, the run is invalid, even if another check fails.
func invalidateIfUnmet(c verdict.Check) verdict.Check {
	c.Severity = verdict.SeverityInconclusive
	return c
}

// warnIfUnmet returns a copy of the check. If it is not met, it is only a warning.
func warnIfUnmet(c verdict.Check) verdict.Check {
	c.Severity = verdict.SeverityWarning
	return c
}

// attributeIf returns a copy of the check. If it is not met and explained, it is attributed to the load generator: the
// run is invalid unless another check fails it.
func attributeIf(explained bool, c verdict.Check) verdict.Check {
	if c.Pass || !explained {
		return c
	}
	c.ExplainedBy = verdict.SignalGenerator
	return c.AsDoubt()
}

func atLeast(limit float64) string {
	if limit > 0 {
		return "at least " + count(limit)
	}
	return verdict.NoLimit
}

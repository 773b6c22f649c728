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
)

// bystander returns the id of a check that is made of the streams that the suite leaves alone.
func bystander(id verdict.CheckID) verdict.CheckID { return "bystanders." + id }

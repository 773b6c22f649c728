package verdict

// A CheckID identifies a check in verdict.json. It does not change when the display name changes.
type CheckID string

// The checks of runs, targets, machines and streams.
const (
	CheckComplete    CheckID = "run.complete"     // every runner and planned client was observed
	CheckActions     CheckID = "run.actions"      // the commands of --at succeeded
	CheckTargetUp    CheckID = "target.up"        // no process of the target crashed or was restarted
	CheckAnswers     CheckID = "target.answers"   // the target answered at the end
	CheckPackets     CheckID = "machines.packets" // AWS dropped no packets of a machine
	CheckVerdict     CheckID = "run.verdict"      // the verdict itself, if no check decided it
	CheckGenerator   CheckID = "generator.kept-up"
	CheckPorts       CheckID = "generator.ports" // the load generator had a port, a descriptor and an address for each connection
	CheckServerCount CheckID = "server.count"    // the server's own count agrees
	CheckScript      CheckID = "script.checks"   // the checks of the k6 script
	CheckObserved    CheckID = "streams.observed"
	CheckOpened      CheckID = "streams.opened"
	CheckOpenToEnd   CheckID = "streams.held"
	CheckOpenTime    CheckID = "streams.open-time"
	CheckOutage      CheckID = "streams.outage"
	CheckReconnected CheckID = "streams.back" // reconnects within BACK_WITHIN
	CheckSilence     CheckID = "streams.silence"
	CheckLifetime    CheckID = "streams.lifetime" // no stream was closed before end.lifetime
	CheckOverdue     CheckID = "streams.overdue"  // no stream was open for longer than end.lifetime
	CheckCompressed  CheckID = "streams.compressed"
	CheckCuts        CheckID = "cuts.made"
	CheckResumed     CheckID = "cuts.resumed"
	CheckCutLoss     CheckID = "cuts.whole"
	CheckIDReset     CheckID = "resume.id-reset"
	CheckNoID        CheckID = "resume.no-id"
)

// The checks of growth over the windows.
const (
	CheckMemorySlope    CheckID = "target.memory-slope"
	CheckLatenessSlope  CheckID = "messages.lateness-slope"
	CheckReconnectSlope CheckID = "streams.reconnect-slope"
	CheckConnectSlope   CheckID = "streams.connect-slope"
)

// The checks of messages.
const (
	CheckMissed        CheckID = "messages.missed"
	CheckDuplicated    CheckID = "messages.duplicated"
	CheckReordered     CheckID = "messages.reordered"
	CheckCorrupted     CheckID = "messages.corrupted"
	CheckLate          CheckID = "messages.late"
	CheckFloor         CheckID = "messages.floor" // each ledger expected at least open time ÷ interval
	CheckInterval      CheckID = "messages.interval"
	CheckSchedule      CheckID = "messages.schedule" // gaps are multiples of the interval
	CheckConfirmed     CheckID = "messages.confirmed"
	CheckOnTime        CheckID = "messages.published-on-time"
	CheckEarly         CheckID = "messages.early" // no message arrived before it was published
	CheckCoverage      CheckID = "messages.coverage"
	CheckComparability CheckID = "messages.shared" // enough messages for each topic to compare its clients
	CheckMisrouted     CheckID = "messages.strayed"
	CheckAnnounced     CheckID = "messages.announced-gaps"
	CheckChecked       CheckID = "messages.checked"
	CheckUndetectable  CheckID = "messages.undetectable"
)

package verdict

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// maxClauses is the maximum number of unmet checks that a summary describes.
const maxClauses = 4

// Summary returns the verdict in one sentence, with the figures that explain it: "FAIL: 2 of 2,016 messages lost on 2
// of 60 clients; first fault at 06:54:42 UTC".
func (v *Verdict) Summary() string {
	switch {
	case v.Sentence != "":
		return v.Sentence
	case v.ConnectionsOnly():
		return v.Heading() + ": " + reasonUnchecked
	case len(v.Reasons) > 0: // the run was not judged
		return v.Heading() + ": " + firstText(v.Reasons, "")
	}
	return v.Heading()
}

func (v *Verdict) summarize() string {
	text := v.passSummary()
	switch v.Verdict {
	case Fail:
		text = v.failSummary()
	case Invalid:
		if text = v.stopSummary(); text == "" {
			text = v.invalidSummary()
		}
	case Pass:
	}
	return v.Heading() + ": " + v.addWatchedShare(text)
}

func (v *Verdict) passSummary() string {
	if v.Layout.Declared {
		return strings.Join(v.Reasons, "; ")
	}
	c, m := v.Connections, v.Messages
	text := fmt.Sprintf("%s of %s open to the end", format.Thousands(c.OpenToEnd()), format.Count(c.Planned, "stream"))
	if c.Reconnecting > 0 {
		text += fmt.Sprintf(", %s reconnecting", format.Thousands(c.Reconnecting))
	}
	if c.Unwatched > 0 {
		text += fmt.Sprintf(", %s until %s runner ended early", format.Thousands(c.Unwatched), format.Form(c.Unwatched, "its", "their"))
	}
	if v.ConnectionsOnly() {
		return text + ", " + reasonUnchecked
	}
	if v.Evidence.Kind == BySubscribers {
		return v.comparisonSummary()
	}
	text += fmt.Sprintf(", %s of %s received", format.Thousands(m.Received), format.Count(m.Expected, "message"))
	switch n := v.Evidence.Undetectable; {
	case n > 0 && v.Evidence.Kind == ByNumbers && !v.Service.HasInterval():
		text += "; losses before the first and after the last message of a stream could not have been detected"
	case n > 0:
		text += fmt.Sprintf("; up to %s could not have been detected", format.Count(n, "loss"))
	}
	return text
}

// Stopped reports whether the user stopped the run: the verdict is invalid, a runner was interrupted, and no runner
// reached its end. If other runners reached their end, the machines of the interrupted ones were drained.
func (v *Verdict) Stopped() bool {
	hasRunner := func(state shard.RunState) bool {
		return slices.ContainsFunc(v.Runners, func(r Runner) bool { return r.State == string(state) })
	}
	return v.Verdict == Invalid && hasRunner(shard.Interrupted) && !hasRunner(shard.Finished)
}

// stopSummary returns the summary of a run that the user stopped; "" for any other run, or if the plan has no duration.
func (v *Verdict) stopSummary() string {
	if !v.Stopped() || v.Plan.Seconds == 0 {
		return ""
	}
	text := v.stopTime()
	if m := v.Messages; m.Expected > 0 {
		text += fmt.Sprintf("; until then %s of %s arrived", format.Thousands(m.Received), format.Count(m.Expected, "message"))
	}
	return text
}

// stopTime states when the run was stopped, and the planned time for which streams are open, as in the progress line.
func (v *Verdict) stopTime() string {
	length := secondsBetween(v.StartedUnix, v.EndedUnix).Round(time.Second)
	return fmt.Sprintf("stopped after %s of %s", format.Duration(length), format.Duration(v.Plan.Hold()))
}

// invalidSummary states the first cause of an invalid run, and the number of further causes. If data is missing for
// several reasons, the number of clients that were not observed to the end replaces the latter.
func (v *Verdict) invalidSummary() string {
	reasons, missing := v.invalidReasons(), v.Connections.Unobserved+v.Connections.Unwatched
	isIncomplete := slices.ContainsFunc(v.Checks, func(c Check) bool { return c.ID == CheckComplete && c.State() == Undecided })
	if len(reasons) < 2 || missing == 0 || !isIncomplete || v.Layout.Declared {
		return firstText(reasons, "nothing was judged")
	}
	return fmt.Sprintf("%s; %s of %s %s not observed to the end", reasons[0], format.Thousands(missing),
		format.Count(v.Connections.Planned, "client"), format.Form(missing, "was", "were"))
}

func (v *Verdict) invalidReasons() (out []string) {
	for i := range v.Checks {
		if c := &v.Checks[i]; c.State() == Undecided {
			out = append(out, c.Sentences()...)
		}
	}
	return out
}

func (v *Verdict) failSummary() string {
	var clauses []string
	omitted, implied, hasTime := 0, 0, false // implied: unmet checks without a clause of their own
	for i := range v.Checks {
		c := &v.Checks[i]
		if c.State() != Broken {
			continue
		}
		clause, clauseHasTime := v.clause(c)
		switch {
		case clause == "" || slices.Contains(clauses, clause):
			implied++
		case len(clauses) == maxClauses:
			omitted++
		default:
			clauses, hasTime = append(clauses, clause), hasTime || clauseHasTime
		}
	}
	if len(clauses) == 0 { // only checks without a clause are unmet, such as script checks
		return firstText(v.Reasons, "")
	}
	text := strings.Join(clauses, ", ")
	if omitted > 0 {
		text += fmt.Sprintf(", and %s not met", format.Plural(omitted+implied, "more check", "more checks"))
	}
	if hasTime && len(v.Incidents) > 0 {
		text += "; first fault at " + format.Clock(v.Incidents[0].FirstUnix) + " UTC"
	}
	return text
}

// clause describes an unmet check; "" for checks of the script, and if another check describes the cause. hasTime
// reports whether findings have the time of the fault.
func (v *Verdict) clause(c *Check) (text string, hasTime bool) {
	s, m := v.Connections, v.Messages
	streams := func(n int, fault string) (string, bool) {
		return format.Count(n, "stream") + " " + fault, true
	}
	messages := func(n uint64, fault string) (string, bool) {
		return format.Count(n, "message") + " " + fault, true
	}
	switch c.ID {
	case CheckScript:
		return "", false
	case CheckServerCount:
		if len(v.Failures) > 0 { // a crashed process of the target lost its ledger
			return "", false
		}
	case CheckTargetUp, CheckAnswers, CheckComplete, CheckSilence, CheckOutage, CheckOpenTime, CheckReconnected:
		return firstText(c.Reasons, c.Actual), false
	case CheckOpened:
		return fmt.Sprintf("%s of %s not connected", format.Thousands(s.Planned-s.Opened), format.Count(s.Planned, "client")), true
	case CheckOpenToEnd:
		if s.Dropped > 0 {
			return streams(s.Dropped, "ended early")
		} else if s.Unfinished > 0 {
			return streams(s.Unfinished, "did not end when requested")
		}
		return "", false // refused clients are part of CheckOpened
	case CheckMissed:
		return fmt.Sprintf("%s of %s lost on %s of %s", format.Thousands(m.Missed), format.Count(m.Expected, "message"),
			format.Thousands(m.ClientsWithLoss), format.Count(s.Planned, "client")), true
	case CheckDuplicated:
		return messages(m.Duplicated, "received twice")
	case CheckReordered:
		return messages(m.Reordered, "received out of order")
	case CheckCorrupted:
		return messages(m.Corrupted, "corrupted")
	case CheckMisrouted:
		return messages(m.Misrouted, "received from other topics")
	case CheckCutLoss:
		return fmt.Sprintf("%s of %s with lost or repeated messages", c.Actual, format.Count(v.allCuts().Count, "disconnect")), true
	case CheckConfirmed:
		if p := m.Published; p != nil && p.Sent > p.Confirmed {
			return fmt.Sprintf("%s of %s not confirmed by the service", format.Thousands(p.Sent-p.Confirmed), format.Count(p.Sent, "published message")), false
		}
	case CheckLate:
		return messages(m.Late, fmt.Sprintf("over %s late", format.Duration(v.Plan.LateLimit())))
	case CheckLifetime:
		n := int(min(v.Total(ledger.KindEndedEarly), 1<<31))
		return streams(n, "closed before the end of "+format.Form(n, "its", "their")+" lifetime")
	case CheckOverdue:
		n := int(min(v.Total(ledger.KindOverdue), 1<<31))
		return streams(n, "open for longer than "+format.Form(n, "its", "their")+" lifetime")
	}
	return c.Sentences()[0], false
}

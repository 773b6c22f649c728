package suite

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/host/machine"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

var storm = Suite{
	Name:   "storm",
	Short:  "disconnect most streams at once, and measure reconnects and the other streams",
	Script: []string{"load-tests", "sse", "storm.js"},
	Target: Target{Streams: true},
	Page:   Page{Doc: "docs/suites.md"},
	Plan: Plan{BySettings: true, Profiles: map[string][]string{
		"full":  {"CONNECTIONS=5000", "SECONDS=80", "NOOP_INTERVAL=1"},
		"smoke": {"CONNECTIONS=200", "SECONDS=20", "NOOP_INTERVAL=1"},
	}},
	Assess:    assessStorm,
	Disturbed: (*Run).isNotSelected,
}

func assessStorm(r *Run) verdict.Assessment {
	m, streams := r.Rounds[0], r.streams()
	bystanders, storms := r.streamsOf(r.isSelected), r.storms(streams)
	t := newTable("Storms", "times since the first drop; connects/s: average until 99 % had reconnected, ≥ if refused clients waited before the next attempt; "+
		"max in 1 s: most reconnects within one second; connect: dial to headers, in ms; slow: connects over SLOW_MS; "+
		"dial delay: how late the load generator dialed, in ms",
		"storm|dropped|50 % reconnected|99 %|all|connects/s|max in 1 s|connect p50|p99|max|slow|refused|dial delay p99")
	cpu := r.cpuTable("storm", "runners", "")
	a := verdict.Assessment{
		Streams: streams, Warnings: streams.Warnings,
		Checks: slices.Concat([]verdict.Check{checkObserved(m)}, stormFaults(streams), streams.AgreementChecks(), bystanderChecks(bystanders)),
	}
	for _, s := range storms {
		a.Facts = append(a.Facts, verdict.Fact{Name: s.Title, Value: s.String()})
		a.Checks = append(a.Checks, checkDisturbed(CheckDropped, s.Title+": dropped at once", s.dropped, s.Requests, s.Title+": only %v of %v streams were dropped; the others were not open"),
			s.checkDialDelay(r), s.checkReconnected(), s.checkRefusals(), s.checkConnectTimes())
		a.Passed = append(a.Passed, sentence("%s: all %v streams reconnected within %s", s.Title, s.dropped, s.reconnectText(1)))
		a.Metrics = append(a.Metrics, verdict.Metric{Name: "99 % reconnected, " + s.Title, Unit: "ms", Value: float64(s.reconnectTime(.99).Milliseconds())})
		t.Add(row(s.Title, s.dropped, s.reconnectText(.5), s.reconnectText(.99), s.reconnectText(1), s.rateText(), s.peak(),
			trend(s.connect, .5), trend(s.connect, .99), trend(s.connect, 1), s.slow, s.refusals(), trend(s.dialDelay, .99))...)
		cpu.Rows = append(cpu.Rows, s.machine.row(s.Title))
	}
	if len(storms) > 0 {
		a.Checks = append(a.Checks, storms[len(storms)-1].checkConnectRate(r))
	} else {
		a.Checks = append(a.Checks, check(CheckDropped, "dropped at once", "≥ 1 storm", "none", false, "no stream was dropped, because the script has no storm").AsDoubt())
	}
	a.Facts = append(a.Facts, verdict.Fact{Name: "other streams", Value: sentence("%v stayed open during the storms; %v of their %ss were late",
		bystanders.Connections.Planned, bystanders.Messages.Late, m.Service.Noun())})
	a.Facts = append(a.Facts, streamFacts(streams, m)...)
	a.Tables = []verdict.Table{t, r.queueTable(), cpu}
	return a
}

// bystanderChecks returns the checks for missed and late messages of the streams that stay open during the storms.
func bystanderChecks(bystanders *verdict.Streams) (out []verdict.Check) {
	for _, c := range bystanders.FaultChecks() {
		if c.ID == verdict.CheckMissed || c.ID == verdict.CheckLate {
			c.ID, c.Name, c.Why = bystander(c.ID), "other streams: "+c.Name, c.Why+" when others reconnect"
			for i := range c.Reasons {
				c.Reasons[i] = "other streams: " + c.Reasons[i]
			}
			out = append(out, c)
		}
	}
	return out
}

// stormFaults returns the checks of all streams. Messages missed by dropped streams count as failures only if the
// service numbers its messages, because a client cannot resume without ids.
func stormFaults(streams *verdict.Streams) []verdict.Check {
	checks := streams.FaultChecks()
	numbered := false // a numbered message is missing, which proves a loss
	for _, c := range streams.Records() {
		numbered = numbered || c.Numbered && c.Missed() > 0
	}
	for i := range checks {
		if c := &checks[i]; c.ID == verdict.CheckMissed && !c.Pass && !numbered {
			c.Severity = verdict.SeverityWarning
			c.Reasons = []string{c.Actual + " missed, most of them by dropped streams: the service does not number messages, so clients cannot resume"}
		}
	}
	return checks
}

// checkDialDelay returns the check that the load generator dropped and dialed the streams fast enough for a storm.
func (s *stormStage) checkDialDelay(r *Run) verdict.Check {
	limit := r.duration("DIAL_MS", time.Millisecond)
	name, limitText := s.Title+": dial delay of the generator", sentence("99 %% within %v", limit)
	if s.dialDelay.Trend == nil || s.dialDelay.Trend.Count() == 0 || len(s.reconnects) == 0 {
		return check(CheckDialDelay, name, limitText, "not known", false,
			s.Title+": no stream reconnected at its first attempt, so the dial delay of the load generator is unknown").AsDoubt()
	}
	gap, wait := s.dropGap, s.dialDelay.Trend.Quantile(.99)
	reason := sentence("%s: the load generator was saturated: it dropped 99 %% of the streams within %v, and its dial delay was %v at p99 (limit: %v, DIAL_MS); "+
		"use more machines, or fewer streams", s.Title, gap, wait, limit)
	if max(s.runnerDropGap, wait) <= limit { // each runner was fast enough
		reason = sentence("%s: the runners did not start at the same time: each dropped 99 %% of its streams within %v, and all together within %v (limit: %v, DIAL_MS); "+
			"set RUNNERS=1, or raise DIAL_MS", s.Title, s.runnerDropGap, gap, limit)
	}
	c := check(CheckDialDelay, name, limitText, sentence("dropped within %v, dialed %v late", gap, wait), max(gap, wait) <= limit, reason)
	if !c.Pass {
		c.ExplainedBy = verdict.SignalGenerator
	}
	return c.AsDoubt()
}

// checkReconnected returns the check that all dropped streams reconnected in time, and that no stream was lost in
// another way.
func (s *stormStage) checkReconnected() verdict.Check {
	limit := time.Duration(s.Seconds * float64(time.Second))
	inTime, _ := slices.BinarySearch(s.reconnects, limit+1)
	missing := max(s.dropped-len(s.reconnects), 0) + len(s.reconnects) - inTime
	c := check(CheckAllReconnected, s.Title+": all streams reconnected", sentence("within %v", limit), "within "+s.reconnectText(1), missing == 0 && s.lost == 0)
	if missing > 0 {
		c.Actual = text(missing) + " did not reconnect"
		reason := sentence("%s: %v of %v streams did not reconnect within %v", s.Title, missing, s.dropped, limit)
		if refused := s.refusalText(); refused != "" {
			reason += "; " + refused
		}
		c.Reasons = append(c.Reasons, reason)
	}
	c = attributeIf(missing > 0 && missing <= s.local && s.lost == 0, c)
	if s.lost > 0 {
		c.Actual += sentence("; %v lost", s.lost)
		c.Reasons = append(c.Reasons, fmt.Sprintf("%s: %s lost, but not dropped by the client", s.Title, format.Plural(s.lost, "stream was", "streams were")))
	}
	return c
}

// checkRefusals warns of refusals. They are not faults, because a service may refuse some clients to survive a storm.
func (s *stormStage) checkRefusals() verdict.Check {
	n := s.refusals()
	return warnIfUnmet(check(CheckRefusals, s.Title+": attempts refused", "0", n, n == 0, s.Title+": "+s.refusalText()))
}

func (s *stormStage) checkConnectTimes() verdict.Check {
	reason := sentence("%s: %v of %v connects took over %s, the longest %s", s.Title, s.slow, s.connect.Count, ms(s.slowMS), ms(s.connect.Max))
	if cause := s.machine.GeneratorLimit(); cause != "" {
		reason += "; the load generator may be the cause: " + cause
	}
	return warnIfUnmet(check(CheckSlowConnects, s.Title+": connects over "+ms(s.slowMS), "0", s.slow, s.slow == 0, reason))
}

func (s *stormStage) checkConnectRate(r *Run) verdict.Check {
	required := r.number("MIN_RATE")
	c := check(CheckRate, "connects per second", atLeast(required), s.rateText(), s.rate() >= required)
	if c.Pass {
		return c
	}
	if cause := s.backoffText(); cause != "" {
		c.Reasons = []string{sentence("it is unknown whether the service accepts %v connects per second: %s", required, cause)}
		return c.AsDoubt()
	}
	cause := s.machine.GeneratorLimit()
	if cause != "" {
		c.Reasons = []string{sentence("the service accepted %s connects per second, but %v are required; the load generator may be the cause: %s", c.Actual, required, cause)}
	}
	return attributeIf(cause != "", c)
}

func (r *Run) queueTable() verdict.Table {
	counters := []string{machine.Overflows, machine.Drops, machine.SYNRetrans}
	t := newTable("Accept queues", "over the whole run; a repeated SYN delays a connect by a second or more", "machine|used by|"+strings.Join(counters, "|"))
	for _, report := range verdict.MachinesOf((*verdict.Evidence)(r)) {
		subject := "runners"
		switch {
		case report.Target && len(report.Runners) > 0:
			subject = "service and runners"
		case report.Target:
			subject = "service"
		}
		cells := []string{report.String(), subject}
		for _, name := range counters {
			if c := report.Counter(name); c != nil {
				cells = append(cells, count(c.Increase))
			} else {
				cells = append(cells, "–")
			}
		}
		t.Add(cells...)
	}
	return t
}

package suite

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/machine"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

var storm = Suite{
	Name:   "storm",
	Short:  "drop most event streams at once, and see how the service takes them back and whether the others notice",
	Script: []string{"load-tests", "sse", "storm.js"},
	Settings: []Setting{
		{"HELD_PERCENT", "share of the streams that is held through the storms, 1 to 50 percent (default: 10)"},
		heldSetting,
		{"MIN_RATE", "minimum connects per second in the second storm, 0 for any (default: 0)"},
		{"SLOW_MS", "milliseconds from the dial to the headers above which a connect counts as slow (default: 1000)"},
		{"DIAL_MS", "milliseconds within which the load generator has to have dialed, or the run is invalid (default: 1000)"},
	},
	Target: Target{Streams: true},
	Page:   Page{Doc: "docs/suites.md"},
	Plan: Plan{Known: true, Profiles: map[string][]string{
		"full":  {"CONNECTIONS=5000", "SECONDS=80", "NOOP_INTERVAL=1"},
		"smoke": {"CONNECTIONS=200", "SECONDS=20", "NOOP_INTERVAL=1"},
	}},
	Assess: assessStorm,
}

func assessStorm(r *Run) verdict.Assessment {
	m, streams := r.Rounds[0], r.streams()
	held, storms := r.held(m, r.isHeld), r.storms(streams)
	a := verdict.Assessment{
		Streams: streams, Warnings: streams.Warnings,
		Checks: slices.Concat([]verdict.Check{everyStream(m)}, ofAll(streams), streams.Agreement(), ofHeld(held)),
		Tables: []verdict.Table{stormTable(storms), r.queueTable(), r.cpuTable("storm", "runners", "")},
	}
	for _, s := range storms {
		a.Facts = append(a.Facts, verdict.Fact{Name: s.Title, Value: s.String()})
		a.Checks = append(a.Checks, s.stormed(), s.dialed(r), s.returned(), s.unrefused(), s.quick(r))
		a.Passed = append(a.Passed, fmt.Sprintf("%s: all %s streams came back within %s", s.Title, format.Thousands(s.dropped), s.after(1)))
		a.Tables[2].Rows = append(a.Tables[2].Rows, s.machine.row(s.Title))
		a.Metrics = append(a.Metrics, verdict.Metric{Name: "99 % back, " + s.Title, Unit: "ms", Value: float64(s.backIn(.99).Milliseconds())})
	}
	if len(storms) > 0 {
		a.Checks = append(a.Checks, storms[len(storms)-1].enough(r))
	}
	a.Facts = append(append(a.Facts, verdict.Fact{Name: "held", Value: fmt.Sprintf("%s streams through the storms, %s of their %ss late", format.Thousands(held.Connections.Planned), format.Thousands(held.Messages.Late), m.Service.Noun())}), streamFacts(streams, m)...)
	return a
}

// ofHeld are the checks that the streams have to meet that were held: what they missed, and what was late.
func ofHeld(held *verdict.Streams) (out []verdict.Check) {
	for _, c := range faultsOf(held) {
		if c.ID == verdict.CheckMissed || c.ID == verdict.CheckLate {
			c.ID, c.Name, c.Why = bystander(c.ID), "held streams: "+c.Name, "who did not leave must not notice that others come back"
			out = append(out, c)
		}
	}
	return out
}

// ofAll are the checks for all streams. What those missed that were dropped is no fault where nobody can go on behind a
// message, because they have no numbers.
func ofAll(streams *verdict.Streams) []verdict.Check {
	all := streams.Faults()
	numbered := false // that one is missing is certain
	for c := range streams.Records() {
		numbered = numbered || c.Numbered && c.Missed() > 0
	}
	for i := range all {
		if c := &all[i]; c.ID == verdict.CheckMissed && !c.Pass && !numbered {
			c.Severity = verdict.SeverityWarning
			c.Reasons = []string{fmt.Sprintf("%s were missed, most of them by streams that were dropped: the service does not number them, so nobody can go on behind the last one", c.Actual)}
		}
	}
	return all
}

// stormed takes a pass back where not all streams were dropped, and together: that was no storm.
func (s *stormStage) stormed() verdict.Check {
	c := allOf(CheckDropped, s.Title+": dropped at once", s.dropped, s.Requests, "a storm that did not blow proves nothing", "streams were dropped, the others were not open")
	for i, text := range c.Reasons {
		c.Reasons[i] = s.Title + ": " + text
	}
	return c
}

// dialed takes a pass back where the load generator was too slow for a storm.
func (s *stormStage) dialed(r *Run) verdict.Check {
	limit := time.Duration(r.number("DIAL_MS") * float64(time.Millisecond))
	c := verdict.Check{
		ID: CheckDialed, Name: s.Title + ": the generator's own delay", Limit: "99 % within " + format.Duration(limit), Actual: "not known",
		Why: "connects that the generator holds back are no storm",
	}
	if s.waited.Trend == nil || s.waited.Trend.Count() == 0 || len(s.at) == 0 {
		c.Reasons = []string{s.Title + ": no stream came back with its first attempt, so nobody knows when the load generator dialed"}
		return c.InDoubt()
	}
	apart, wait := s.at[(len(s.at)*99-1)/100], s.waited.Trend.Quantile(.99)
	c.Actual, c.Pass = fmt.Sprintf("dropped within %s, dialed %s late", format.Duration(apart), format.Duration(wait)), max(apart, wait) <= limit
	if !c.Pass {
		c.ExplainedBy = verdict.SignalGenerator
		c.Reasons = []string{fmt.Sprintf("%s: the load generator was saturated: it dropped 99 %% of the streams within %s and dialed up to %s later than it should, and %s is the limit (DIAL_MS): use more machines, or fewer streams",
			s.Title, format.Duration(apart), format.Duration(wait), format.Duration(limit))}
	}
	return c.InDoubt()
}

func (s *stormStage) returned() verdict.Check {
	within := time.Duration(s.Seconds * float64(time.Second))
	late := 0
	for _, at := range s.back {
		if at > within {
			late++
		}
	}
	gone := max(s.dropped-len(s.back), 0) + late
	c := verdict.Check{
		ID: CheckReturned, Name: s.Title + ": all are back", Limit: "within " + format.Duration(within), Actual: "within " + s.after(1), Pass: gone == 0 && s.beside == 0, Why: "after the storm everybody is served again",
	}
	if gone > 0 {
		c.Actual = format.Thousands(gone) + " are not"
		c.Reasons = append(c.Reasons, strings.TrimSuffix(fmt.Sprintf("%s: %s of %s streams were not back within %s; %s", s.Title, format.Thousands(gone), format.Thousands(s.dropped), format.Duration(within), s.beforeRefusal()), "; "))
	}
	if s.beside > 0 {
		c.Actual = format.Thousands(s.beside) + " were lost besides"
		c.Reasons = append(c.Reasons, fmt.Sprintf("%s: %s lost, and not by this client", s.Title, format.Plural(s.beside, "stream was", "streams were")))
	}
	return c
}

// unrefused is advisory: to turn some away and take them later is a way through a storm.
func (s *stormStage) unrefused() verdict.Check {
	n := s.refusals()
	c := verdict.Check{ID: CheckUnrefused, Name: s.Title + ": attempts refused", Limit: "0", Actual: format.Thousands(n), Pass: n == 0, Severity: verdict.SeverityWarning, Why: "who is refused comes again, and later"}
	if n > 0 {
		c.Reasons = []string{s.Title + ": " + s.beforeRefusal()}
	}
	return c
}

// quick is advisory, as what is slow depends on who waits.
func (s *stormStage) quick(r *Run) verdict.Check {
	c := verdict.Check{
		ID: CheckQuick, Name: s.Title + ": connects over " + ms(s.slowMS), Limit: "0", Actual: format.Thousands(s.slow), Pass: s.slow == 0, Severity: verdict.SeverityWarning, Why: "a user waits for them",
	}
	if s.slow > 0 {
		text := fmt.Sprintf("%s: %s of %s connects took over %s, the longest %s", s.Title, format.Thousands(s.slow), format.Thousands(s.connect.Count), ms(s.slowMS), ms(s.connect.Max))
		if why := s.machine.GeneratorLimit(); why != "" {
			text += "; the load generator may be the reason: " + why
		}
		c.Reasons = []string{text}
	}
	return c
}

// enough compares the rate of the storm in which nobody waits with the least that a setting asks for.
func (s *stormStage) enough(r *Run) verdict.Check {
	least := r.number("MIN_RATE")
	c := verdict.Check{
		ID: CheckRate, Name: "connects per second", Limit: "any", Actual: s.rateText(), Pass: s.rate() >= least, Why: "a slow service prolongs the outage of its clients",
	}
	if least > 0 {
		c.Limit = "at least " + count(least)
	}
	if why := s.backoff(); !c.Pass && why != "" {
		c.Reasons = []string{fmt.Sprintf("whether the service admits %s connects per second was not measured: %s", count(least), why)}
		return c.InDoubt()
	}
	if why := s.machine.GeneratorLimit(); !c.Pass && why != "" {
		c.Reasons = []string{fmt.Sprintf("the service took %s connects per second, and %s are wanted; the load generator may be the reason: %s", c.Actual, count(least), why)}
		c.ExplainedBy = verdict.SignalGenerator
		return c.InDoubt()
	}
	return c
}

func stormTable(storms []stormStage) verdict.Table {
	t := verdict.Table{
		Title:   "Storms",
		Note:    "from the first drop; connects/s: ≥ if refused clients waited before the next attempt; connect: dial to headers, in ms; own delay: how late the load generator dialed, in ms",
		Columns: []string{"storm", "dropped", "50 % back", "99 % back", "all back", "connects/s", "most in 1 s", "connect p50", "p99", "max", "slow", "refused", "own delay p99"},
	}
	for _, s := range storms {
		t.Add(s.Title, format.Thousands(s.dropped), s.after(.5), s.after(.99), s.after(1), s.rateText(), format.Thousands(s.peak()),
			trend(s.connect, .5), trend(s.connect, .99), trend(s.connect, 1), format.Thousands(s.slow), format.Thousands(s.refusals()), trend(s.waited, .99))
	}
	return t
}

// queueTable is what the machines tell of connects that found an accept queue full, and were tried again.
func (r *Run) queueTable() verdict.Table {
	t := verdict.Table{
		Title: "Accept queues", Note: "over the whole run; a SYN that is sent again is a connect of a second or more",
		Columns: []string{"machine", "of", machine.Overflows, machine.Drops, machine.Repeated},
	}
	for _, one := range verdict.MachinesOf((*verdict.Evidence)(r)) {
		of := "runners"
		switch {
		case one.Target && len(one.Runners) > 0:
			of = "service and runners"
		case one.Target:
			of = "the service"
		}
		row := []string{one.String(), of}
		for _, name := range []string{machine.Overflows, machine.Drops, machine.Repeated} {
			if c := one.Counter(name); c != nil {
				row = append(row, count(c.Grown))
			} else {
				row = append(row, "–")
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

package suite

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/host/machine"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

var storm = Suite{
	Name:   "storm",
	Short:  "disconnect most streams at once, and measure the reconnects and the effect on others",
	Script: []string{"load-tests", "sse", "storm.js"},
	Settings: []Setting{
		{"OPEN_PERCENT", "percentage of streams that stay open through the storms, 1 to 50 (default: 10)"},
		bystanderSetting,
		{"MIN_RATE", "minimum connects per second in the second storm (0: any rate; default: 0)"},
		{"SLOW_MS", "time from dial to headers, in milliseconds, above which a connect is slow (default: 1000)"},
		{"DIAL_MS", "maximum time of a dial in milliseconds; above it the run is invalid (default: 1000)"},
	},
	Target: Target{Streams: true},
	Page:   Page{Doc: "docs/suites.md"},
	Plan: Plan{BySettings: true, Profiles: map[string][]string{
		"full":  {"CONNECTIONS=5000", "SECONDS=80", "NOOP_INTERVAL=1"},
		"smoke": {"CONNECTIONS=200", "SECONDS=20", "NOOP_INTERVAL=1"},
	}},
	Assess: assessStorm,
}

func assessStorm(r *Run) verdict.Assessment {
	m, streams := r.Rounds[0], r.streams()
	bystanders, storms := r.streamsOf(r.isSelected), r.storms(streams)
	t := newTable("Storms", "times since the first drop; connects/s: ≥ if refused clients waited before the next attempt; connect: dial to headers, in ms; "+
		"dial delay: how late the load generator dialed, in ms",
		"storm|dropped|50 % reconnected|99 %|all|connects/s|max in 1 s|connect p50|p99|max|slow|refused|dial delay p99")
	cpu := r.cpuTable("storm", "runners", "")
	a := verdict.Assessment{
		Streams: streams, Warnings: streams.Warnings,
		Checks: slices.Concat([]verdict.Check{checkObserved(m)}, stormFaults(streams), streams.Agreement(), bystanderChecks(bystanders)),
	}
	for _, s := range storms {
		a.Facts = append(a.Facts, verdict.Fact{Name: s.Title, Value: s.String()})
		a.Checks = append(a.Checks, s.checkDropped(), s.checkDialDelay(r), s.checkReconnected(), s.checkRefusals(), s.checkConnectTimes())
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

// bystanderChecks returns the checks of the streams that stay open during the storms: their missed and late messages.
func bystanderChecks(bystanders *verdict.Streams) (out []verdict.Check) {
	for _, c := range bystanders.Faults() {
		if c.ID == verdict.CheckMissed || c.ID == verdict.CheckLate {
			c.ID, c.Name, c.Why = bystander(c.ID), "other streams: "+c.Name, "connected clients lose messages when others reconnect"
			out = append(out, c)
		}
	}
	return out
}

// stormFaults returns the checks of all streams. Messages missed by dropped streams count as failures only if the
// service numbers its messages, because a client cannot resume without ids.
func stormFaults(streams *verdict.Streams) []verdict.Check {
	all := streams.Faults()
	numbered := false // a numbered message is missing, which proves a loss
	for c := range streams.Records() {
		numbered = numbered || c.Numbered && c.Missed() > 0
	}
	for i := range all {
		if c := &all[i]; c.ID == verdict.CheckMissed && !c.Pass && !numbered {
			c.Severity = verdict.SeverityWarning
			c.Reasons = []string{c.Actual + " missed, most of them by dropped streams: the service does not number messages, so clients cannot resume"}
		}
	}
	return all
}

func (s *stormStage) checkDropped() verdict.Check {
	return checkTreated(CheckDropped, s.Title+": dropped at once", s.dropped, s.Requests, s.Title+": only %v of %v streams were dropped, the others were not open")
}

// checkDialDelay returns the check that the load generator dropped and dialed the streams fast enough for a storm.
func (s *stormStage) checkDialDelay(r *Run) verdict.Check {
	limit := time.Duration(r.number("DIAL_MS") * float64(time.Millisecond))
	name, limitText := s.Title+": dial delay of the generator", sentence("99 %% within %v", limit)
	if s.dialDelay.Trend == nil || s.dialDelay.Trend.Count() == 0 || len(s.reconnects) == 0 {
		return check(CheckDialDelay, name, limitText, "not known", false,
			s.Title+": no stream reconnected at its first attempt, so the dial delay of the load generator is unknown").AsDoubt()
	}
	gap, wait := s.dropGap, s.dialDelay.Trend.Quantile(.99)
	reason := sentence("%s: the load generator was saturated: it dropped 99 %% of the streams within %v and dialed up to %v late (limit: %v, DIAL_MS); "+
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

// checkReconnected returns the check that all dropped streams reconnected in time, and that no other stream was lost.
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
	return advisory(check(CheckRefusals, s.Title+": attempts refused", "0", n, n == 0, s.Title+": "+s.refusalText()))
}

func (s *stormStage) checkConnectTimes() verdict.Check {
	reason := sentence("%s: %v of %v connects took over %s, the longest %s", s.Title, s.slow, s.connect.Count, ms(s.slowMS), ms(s.connect.Max))
	if cause := s.machine.GeneratorLimit(); cause != "" {
		reason += "; the load generator may be the cause: " + cause
	}
	return advisory(check(CheckSlowConnects, s.Title+": connects over "+ms(s.slowMS), "0", s.slow, s.slow == 0, reason))
}

// checkConnectRate returns the check that the service accepted at least MIN_RATE connects per second in the storm.
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
	t := newTable("Accept queues", "over the whole run; a repeated SYN delays a connect by a second or more", "machine|of|"+strings.Join(counters, "|"))
	for _, report := range verdict.MachinesOf((*verdict.Evidence)(r)) {
		subject := "runners"
		switch {
		case report.Target && len(report.Runners) > 0:
			subject = "service and runners"
		case report.Target:
			subject = "the service"
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

// A stormStage is one storm: streams are dropped at the same time, and reconnect.
type stormStage struct {
	shard.Stage
	dropped       int             // streams
	dropGap       time.Duration   // time from the first drop until 99 % were dropped
	runnerDropGap time.Duration   // the longest such time of one runner
	reconnects    []time.Duration // times of the reconnects since the first drop, sorted
	lost          int             // clients whose stream broke, bystanders included (see isStreamLoss)
	refused       map[string]int  // refused attempts, by reason
	local         int             // streams that did not reconnect in time for lack of a port or descriptor of the generator
	delayed       int             // streams with a refused attempt, after which clients wait longer before each attempt
	firstRefusal  time.Duration   // time of the first refused attempt since the first drop; 0: there was none
	dialDelay     shard.Metric    // ms by which the load generator dialed late
	connect       shard.Metric    // ms from the dial to the headers
	slow          int64           // connects that took over slowMS
	slowMS        float64         // SLOW_MS
	machine       Machine
}

// storms returns the declared storms, in order. A storm that was not started has no dropped streams.
func (r *Run) storms(streams *verdict.Streams) (out []stormStage) {
	m := r.Rounds[0]
	drops, dialDelay, connect := sumsByStage(m, "storm_dropped"), sumsByStage(m, "storm_dial_delay"), sumsByStage(m, "storm_connect")
	stages := stagesOf(m)
	for i, st := range stages {
		from := int64(math.MaxInt64)
		since := int64(0) // losses before the first storm count for it
		if d, ok := drops[st.Name]; ok {
			from = d.FirstUS
		}
		to := int64(math.MaxInt64)
		if i+1 < len(stages) {
			if next, ok := drops[stages[i+1].Name]; ok {
				to = next.FirstUS
			}
		}
		s := stormStage{Stage: st, dropped: int(drops[st.Name].Sum), dialDelay: dialDelay[st.Name], connect: connect[st.Name], slowMS: r.number("SLOW_MS")}
		if s.connect.Trend != nil {
			s.slow = s.connect.Trend.CountBy([]time.Duration{time.Duration(s.slowMS * float64(time.Millisecond))})[1]
		}
		if i > 0 {
			since = from
		}
		s.readLedgers(r, streams, since, from, to)
		start := time.UnixMicro(min(from, to))
		s.machine = r.machine(m, start, start.Add(max(s.reconnectTime(1), 2*time.Second)))
		out = append(out, s)
	}
	return out
}

// clockTolerance is the maximum time by which an event in a ledger may precede the script's sample of it. The script
// rounds its clock.
const clockTolerance = 100_000 // µs

// readLedgers counts the streams that the script dropped between from and to, with their refused attempts. It also
// counts those that were lost between since and to. Times are in microseconds. A storm drops a stream once, so the
// service caused any further planned end, which does not count.
func (s *stormStage) readLedgers(r *Run, streams *verdict.Streams, since, from, to int64) {
	m := r.Rounds[0]
	var drops, reconnects, refusals, local []int64
	byRunner := map[int][]int64{} // drops
	s.refused = map[string]int{}
	for c := range streams.Records() {
		runner, dropped := &m.Runners[c.Runner], false
		n, _ := m.Plan.Number(c.ID)
		bystander, lost := r.isSelected(n), false
		for _, o := range c.Outages {
			switch opened := runner.At(o.From).UnixMicro(); {
			case opened >= to-clockTolerance || opened < since-clockTolerance:
			case !o.Planned:
				lost = lost || r.isStreamLoss(o)
			case !bystander && !dropped && opened >= from-clockTolerance:
				dropped = true
				drops, reconnects = append(drops, opened), append(reconnects, runner.At(o.To).UnixMicro())
				byRunner[c.Runner] = append(byRunner[c.Runner], opened)
				refusals = append(refusals, s.countRefusals(runner, o.Refusals)...)
				if ledger.AreLocal(o.Refusals) {
					local = append(local, runner.At(o.To).UnixMicro())
				}
			}
		}
		if lost {
			s.lost++
		}
		if last := c.Longest; !bystander && !dropped && c.State != ledger.Completed && runner.At(last.From).UnixMicro() >= from-clockTolerance && runner.At(last.From).UnixMicro() < to-clockTolerance {
			refusals = append(refusals, s.countRefusals(runner, last.Refusals)...) // the client did not reconnect
			if ledger.AreLocal(last.Refusals) {
				s.local++
			}
		}
	}
	s.dropGap = dropGap(drops)
	for _, drops := range byRunner {
		s.runnerDropGap = max(s.runnerDropGap, dropGap(drops))
	}
	slices.Sort(reconnects)
	for i := range drops {
		s.reconnects = append(s.reconnects, time.Duration(reconnects[i]-drops[0])*time.Microsecond)
	}
	for _, at := range local {
		if float64(at-drops[0])/1e6 > s.Seconds {
			s.local++
		}
	}
	if len(refusals) > 0 && len(drops) > 0 {
		s.firstRefusal = time.Duration(max(slices.Min(refusals)-drops[0], 1)) * time.Microsecond
	}
}

// dropGap sorts the times of drops, in microseconds, and returns the time from the first one until 99 % were dropped.
func dropGap(drops []int64) time.Duration {
	if len(drops) == 0 {
		return 0
	}
	slices.Sort(drops)
	return time.Duration(drops[(len(drops)*99-1)/100]-drops[0]) * time.Microsecond
}

// countRefusals adds the refused attempts of one stream. It returns the first time of each reason, in µs since 1970.
func (s *stormStage) countRefusals(runner *shard.Runner, refusals []ledger.Refusal) (at []int64) {
	if len(refusals) > 0 {
		s.delayed++
	}
	for _, f := range refusals {
		s.refused[f.Reason] += f.Count
		at = append(at, runner.At(f.First).UnixMicro())
	}
	return at
}

// reconnectTime returns the time from the first drop until a share of the streams had reconnected; 0 if fewer did.
func (s *stormStage) reconnectTime(share float64) time.Duration {
	rank := int(math.Ceil(share * float64(s.dropped)))
	if rank == 0 || rank > len(s.reconnects) {
		return 0
	}
	return s.reconnects[rank-1]
}

func (s *stormStage) reconnectText(share float64) string {
	if d := s.reconnectTime(share); d > 0 {
		return format.Duration(d)
	}
	return "–"
}

// rate returns the connects per second until 99 % of the streams had reconnected; 0 if fewer did.
func (s *stormStage) rate() float64 {
	duration := s.reconnectTime(.99)
	if duration == 0 {
		return 0
	}
	return .99 * float64(s.dropped) / duration.Seconds()
}

// isLimitedByBackoff reports whether the waits of clients after refused attempts may have limited the rate. That is the
// case if the service refused over 1 % of the streams, because the rate excludes the slowest 1 %.
func (s *stormStage) isLimitedByBackoff() bool { return 100*s.delayed > s.dropped }

// rateText formats the rate, with ≥ if waits of the clients limited it.
func (s *stormStage) rateText() string {
	if s.isLimitedByBackoff() && s.rate() > 0 {
		return "≥ " + count(s.rate())
	}
	return count(s.rate())
}

// backoffText states why the rate is a lower bound; "" if waits of the clients did not limit it.
func (s *stormStage) backoffText() string {
	if !s.isLimitedByBackoff() {
		return ""
	}
	return sentence("refusals delayed %v of %v clients, so the rate is a lower bound", s.delayed, s.dropped)
}

func (s *stormStage) peak() int { return verdict.MaxPerInterval(s.reconnects, time.Second) }

func (s *stormStage) refusals() (n int) {
	for _, count := range s.refused {
		n += count
	}
	return n
}

// refusalText states the refusals, and the number of connects before the first one; "" if there are none.
func (s *stormStage) refusalText() string {
	if s.refusals() == 0 {
		return ""
	}
	n, _ := slices.BinarySearch(s.reconnects, s.firstRefusal)
	return sentence("refused: %s, the first after %v and %s", reasonCounts(s.refused), s.firstRefusal, format.Count(n, "connect"))
}

func (s *stormStage) String() string {
	out := []string{sentence("%v streams dropped", s.dropped)}
	if s.rate() > 0 {
		out = append(out, sentence("99 %% reconnected after %s: %s connects/s, at most %v in a second", s.reconnectText(.99), s.rateText(), s.peak()))
	}
	for _, text := range []string{s.backoffText(), s.refusalText()} {
		if text != "" {
			out = append(out, text)
		}
	}
	return strings.Join(out, "; ")
}

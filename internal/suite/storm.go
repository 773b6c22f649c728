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
		{"HELD_PERCENT", "percentage of streams that stay open through the storms, 1 to 50 (default: 10)"},
		bystanderSetting,
		{"MIN_RATE", "minimum of connects per second in the second storm (0: any rate; default: 0)"},
		{"SLOW_MS", "time from the dial to the headers above which a connect is slow, in milliseconds (default: 1000)"},
		{"DIAL_MS", "maximum time for the load generator to dial in milliseconds; above it the run is invalid (default: 1000)"},
	},
	Target: Target{Streams: true},
	Page:   Page{Doc: "docs/suites.md"},
	Plan: Plan{DeclaredLoad: true, Profiles: map[string][]string{
		"full":  {"CONNECTIONS=5000", "SECONDS=80", "NOOP_INTERVAL=1"},
		"smoke": {"CONNECTIONS=200", "SECONDS=20", "NOOP_INTERVAL=1"},
	}},
	Assess: assessStorm,
}

func assessStorm(r *Run) verdict.Assessment {
	m, streams := r.Rounds[0], r.streams()
	untouched, storms := r.streamsOf(r.isEvery), r.storms(streams)
	t := newTable("Storms", "from the first drop; connects/s: ≥ if refused clients waited before the next attempt; connect: dial to headers, in ms; "+
		"own delay: how late the load generator dialed, in ms",
		"storm|dropped|50 % back|99 % back|all back|connects/s|most in 1 s|connect p50|p99|max|slow|refused|own delay p99")
	cpu := r.cpuTable("storm", "runners", "")
	a := verdict.Assessment{
		Streams: streams, Warnings: streams.Warnings,
		Checks: slices.Concat([]verdict.Check{everyStream(m)}, stormFaults(streams), streams.Agreement(), bystanderChecks(untouched)),
	}
	for _, s := range storms {
		a.Facts = append(a.Facts, verdict.Fact{Name: s.Title, Value: s.String()})
		a.Checks = append(a.Checks, s.checkDropped(), s.checkDialDelay(r), s.checkReconnected(), s.checkRefusals(), s.checkConnectTimes())
		a.Passed = append(a.Passed, sentence("%s: all %v streams reconnected within %s", s.Title, s.dropped, s.backText(1)))
		a.Metrics = append(a.Metrics, verdict.Metric{Name: "99 % back, " + s.Title, Unit: "ms", Value: float64(s.backIn(.99).Milliseconds())})
		t.Add(row(s.Title, s.dropped, s.backText(.5), s.backText(.99), s.backText(1), s.rateText(), s.peak(),
			trend(s.connect, .5), trend(s.connect, .99), trend(s.connect, 1), s.slow, s.refusals(), trend(s.waited, .99))...)
		cpu.Rows = append(cpu.Rows, s.machine.row(s.Title))
	}
	if len(storms) > 0 {
		a.Checks = append(a.Checks, storms[len(storms)-1].checkConnectRate(r))
	}
	a.Facts = append(a.Facts, verdict.Fact{Name: "held", Value: sentence("%v streams through the storms, %v of their %ss late",
		untouched.Connections.Planned, untouched.Messages.Late, m.Service.Noun())})
	a.Facts = append(a.Facts, streamFacts(streams, m)...)
	a.Tables = []verdict.Table{t, r.queueTable(), cpu}
	return a
}

// bystanderChecks returns the checks of the streams that stay open during the storms: their missed and late messages.
func bystanderChecks(untouched *verdict.Streams) (out []verdict.Check) {
	for _, c := range bystanderFaults(untouched) {
		if c.ID == verdict.CheckMissed || c.ID == verdict.CheckLate {
			c.ID, c.Name, c.Why = bystander(c.ID), "held streams: "+c.Name, "clients that stayed lose messages when others reconnect"
			out = append(out, c)
		}
	}
	return out
}

// stormFaults returns the checks of all streams. Messages missed by dropped streams count as failures only if the service
// numbers its messages: without ids a client cannot resume.
func stormFaults(streams *verdict.Streams) []verdict.Check {
	all := streams.Faults()
	numbered := false // a missing message is certain
	for c := range streams.Records() {
		numbered = numbered || c.Numbered && c.Missed() > 0
	}
	for i := range all {
		if c := &all[i]; c.ID == verdict.CheckMissed && !c.Pass && !numbered {
			c.Severity = verdict.SeverityWarning
			c.Reasons = []string{c.Actual + " were missed, most of them by streams that were dropped: the service does not number them, so clients cannot resume"}
		}
	}
	return all
}

// checkDropped turns a pass into invalid unless all streams were dropped, and together.
func (s *stormStage) checkDropped() verdict.Check {
	return allOf(CheckDropped, s.Title+": dropped at once", s.dropped, s.Requests, s.Title+": only %v of %v streams were dropped, the others were not open")
}

// checkDialDelay turns a pass into invalid if the load generator was too slow for a storm.
func (s *stormStage) checkDialDelay(r *Run) verdict.Check {
	limit := time.Duration(r.number("DIAL_MS") * float64(time.Millisecond))
	name, limitText := s.Title+": the generator's own delay", sentence("99 %% within %v", limit)
	if s.waited.Trend == nil || s.waited.Trend.Count() == 0 || len(s.dropTimes) == 0 {
		return check(CheckDialed, name, limitText, "not known", false,
			s.Title+": no stream reconnected at its first attempt, so it is not known when the load generator dialed").Inconclusive()
	}
	gap, wait := s.dropTimes[(len(s.dropTimes)*99-1)/100], s.waited.Trend.Quantile(.99)
	c := check(CheckDialed, name, limitText, sentence("dropped within %v, dialed %v late", gap, wait), max(gap, wait) <= limit,
		sentence("%s: the load generator was saturated: it dropped 99 %% of the streams within %v and dialed up to %v late, and %v is the limit (DIAL_MS); "+
			"use more machines, or fewer streams", s.Title, gap, wait, limit))
	if !c.Pass {
		c.ExplainedBy = verdict.SignalGenerator
	}
	return c.Inconclusive()
}

func (s *stormStage) checkReconnected() verdict.Check {
	limit := time.Duration(s.Seconds * float64(time.Second))
	inTime, _ := slices.BinarySearch(s.back, limit+1)
	missing := max(s.dropped-len(s.back), 0) + len(s.back) - inTime
	c := check(CheckReturned, s.Title+": all are back", sentence("within %v", limit), "within "+s.backText(1), missing == 0 && s.lost == 0)
	if missing > 0 {
		c.Actual = text(missing) + " are not"
		reason := sentence("%s: %v of %v streams were not back within %v", s.Title, missing, s.dropped, limit)
		if refused := s.beforeRefusal(); refused != "" {
			reason += "; " + refused
		}
		c.Reasons = append(c.Reasons, reason)
	}
	if s.lost > 0 {
		c.Actual = text(s.lost) + " were also lost"
		c.Reasons = append(c.Reasons, fmt.Sprintf("%s: %s lost, and not by this client", s.Title, format.Plural(s.lost, "stream was", "streams were")))
	}
	return c
}

// checkRefusals warns of refusals: a service may survive a storm by refusing some clients for a while.
func (s *stormStage) checkRefusals() verdict.Check {
	n := s.refusals()
	return advisory(check(CheckUnrefused, s.Title+": attempts refused", "0", n, n == 0, s.Title+": "+s.beforeRefusal()))
}

// checkConnectTimes warns of slow connects.
func (s *stormStage) checkConnectTimes() verdict.Check {
	reason := sentence("%s: %v of %v connects took over %s, the longest %s", s.Title, s.slow, s.connect.Count, ms(s.slowMS), ms(s.connect.Max))
	if why := s.machine.GeneratorLimit(); why != "" {
		reason += "; the load generator may be the reason: " + why
	}
	return advisory(check(CheckQuick, s.Title+": connects over "+ms(s.slowMS), "0", s.slow, s.slow == 0, reason))
}

// checkConnectRate compares the rate of the storm in which no client waits with the minimum of a setting.
func (s *stormStage) checkConnectRate(r *Run) verdict.Check {
	least := r.number("MIN_RATE")
	c := check(CheckRate, "connects per second", atLeast(least), s.rateText(), s.rate() >= least)
	if c.Pass {
		return c
	}
	if why := s.backoff(); why != "" {
		c.Reasons = []string{sentence("whether the service admits %v connects per second was not measured: %s", least, why)}
		return c.Inconclusive()
	}
	if why := s.machine.GeneratorLimit(); why != "" {
		c.Reasons = []string{sentence("the service admitted %s connects per second, and %v are required; the load generator may be the reason: %s", c.Actual, least, why)}
		c.ExplainedBy = verdict.SignalGenerator
		return c.Inconclusive()
	}
	return c
}

// queueTable returns the counters of connects that found an accept queue full, by machine.
func (r *Run) queueTable() verdict.Table {
	counters := []string{machine.Overflows, machine.Drops, machine.Repeated}
	t := newTable("Accept queues", "over the whole run; a SYN that is sent again is a connect of a second or more", "machine|of|"+strings.Join(counters, "|"))
	for _, one := range verdict.MachinesOf((*verdict.Evidence)(r)) {
		subject := "runners"
		switch {
		case one.Target && len(one.Runners) > 0:
			subject = "service and runners"
		case one.Target:
			subject = "the service"
		}
		cells := []string{one.String(), subject}
		for _, name := range counters {
			if c := one.Counter(name); c != nil {
				cells = append(cells, count(c.Increase))
			} else {
				cells = append(cells, "–")
			}
		}
		t.Add(cells...)
	}
	return t
}

// A stormStage is one storm: streams that are dropped at once, and reconnect.
type stormStage struct {
	shard.Stage
	dropped   int             // streams
	dropTimes []time.Duration // when each was dropped, since the first one; sorted
	back      []time.Duration // when each was back, since the first drop; sorted
	lost      int             // streams, held ones included, that ended in between although neither client nor service ended them on purpose
	refused   map[string]int  // attempts, by reason
	delayed   int             // streams with a refused attempt: their clients wait longer before each further attempt
	first     time.Duration   // when the first of these failed, 0 if none did
	waited    shard.Metric
	connect   shard.Metric
	slow      int64
	slowMS    float64
	machine   Machine
}

// storms returns the storms that were started, in order.
func (r *Run) storms(streams *verdict.Streams) (out []stormStage) {
	m := r.Rounds[0]
	drops, waited, connect := sumsByStage(m, "storm_dropped"), sumsByStage(m, "storm_waited"), sumsByStage(m, "storm_connect")
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
		s := stormStage{Stage: st, dropped: int(drops[st.Name].Sum), waited: waited[st.Name], connect: connect[st.Name], slowMS: r.number("SLOW_MS")}
		if s.connect.Trend != nil {
			s.slow = s.connect.Trend.CountBy([]time.Duration{time.Duration(s.slowMS * float64(time.Millisecond))})[1]
		}
		if i > 0 {
			since = from
		}
		s.follow(r, streams, since, from, to)
		start := time.UnixMicro(min(from, to))
		s.machine = r.machine(m, start, start.Add(max(s.backIn(1), 2*time.Second)))
		out = append(out, s)
	}
	return out
}

// sooner is the maximum time by which a ledger may date an event before the script, whose clock is rounded.
const sooner = 100_000 // µs

// follow reads the streams from the ledgers that this client dropped from one instant until another, in µs, and those that were
// lost since an earlier instant. A storm drops a stream once: if it ends again on purpose, the service ended it.
func (s *stormStage) follow(r *Run, streams *verdict.Streams, since, from, to int64) {
	m := r.Rounds[0]
	var at, back, failed []int64
	s.refused = map[string]int{}
	for c := range streams.Records() {
		runner, dropped := &m.Runners[c.Runner], false
		n, _ := m.Plan.Number(c.ID)
		untouched, lost := r.isEvery(n), false
		for _, o := range c.Outages {
			switch opened := runner.At(o.From).UnixMicro(); {
			case opened >= to-sooner || opened < since-sooner:
			case !o.Planned:
				lost = lost || r.lostStream(o)
			case !untouched && !dropped && opened >= from-sooner:
				dropped = true
				at, back = append(at, opened), append(back, runner.At(o.To).UnixMicro())
				failed = append(failed, s.countRefusals(runner, o.Refusals)...)
			}
		}
		if lost {
			s.lost++
		}
		if last := c.Longest; !untouched && !dropped && c.State != ledger.Completed && runner.At(last.From).UnixMicro() >= from-sooner && runner.At(last.From).UnixMicro() < to-sooner {
			failed = append(failed, s.countRefusals(runner, last.Refusals)...) // the client did not reconnect
		}
	}
	slices.Sort(at)
	slices.Sort(back)
	for i := range at {
		s.dropTimes, s.back = append(s.dropTimes, time.Duration(at[i]-at[0])*time.Microsecond), append(s.back, time.Duration(back[i]-at[0])*time.Microsecond)
	}
	if len(failed) > 0 && len(at) > 0 {
		s.first = time.Duration(max(slices.Min(failed)-at[0], 1)) * time.Microsecond
	}
}

// countRefusals adds the failed attempts of one stream and returns when the first of each reason failed.
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

// backIn returns when a share of the streams was back; 0 if it never was.
func (s *stormStage) backIn(share float64) time.Duration {
	rank := int(math.Ceil(share * float64(s.dropped)))
	if rank == 0 || rank > len(s.back) {
		return 0
	}
	return s.back[rank-1]
}

// backText formats backIn.
func (s *stormStage) backText(share float64) string {
	if d := s.backIn(share); d > 0 {
		return format.Duration(d)
	}
	return "–"
}

// rate returns the connects per second until 99 % of the streams had reconnected; 0 if fewer did.
func (s *stormStage) rate() float64 {
	took := s.backIn(.99)
	if took == 0 {
		return 0
	}
	return .99 * float64(s.dropped) / took.Seconds()
}

// byBackoff reports whether the clients' own waits after refused attempts may have limited the rate: more streams were refused
// than the 1 % that the rate leaves out.
func (s *stormStage) byBackoff() bool { return 100*s.delayed > s.dropped }

// rateText formats the rate, with ≥ if the clients' own waits limited it.
func (s *stormStage) rateText() string {
	if s.byBackoff() && s.rate() > 0 {
		return "≥ " + count(s.rate())
	}
	return count(s.rate())
}

// backoff returns why the rate is a lower bound; "" if the clients' own waits did not limit it.
func (s *stormStage) backoff() string {
	if !s.byBackoff() {
		return ""
	}
	return sentence("%v of %v clients were refused and waited before the next attempt, so the rate is a lower bound of what the service admits",
		s.delayed, s.dropped)
}

// peak returns the maximum number of streams that reconnected within a second.
func (s *stormStage) peak() int { return verdict.MostWithin(s.back, time.Second) }

func (s *stormStage) refusals() (n int) {
	for _, count := range s.refused {
		n += count
	}
	return n
}

// beforeRefusal states what the service accepted before its first refusal; "" if it refused nothing.
func (s *stormStage) beforeRefusal() string {
	if s.refusals() == 0 {
		return ""
	}
	n, _ := slices.BinarySearch(s.back, s.first)
	return sentence("refused: %s, the first after %v and %s", reasonCounts(s.refused), s.first, format.Count(n, "connect"))
}

func (s *stormStage) String() string {
	out := []string{sentence("%v streams dropped", s.dropped)}
	if s.rate() > 0 {
		out = append(out, sentence("99 %% back after %s: %s connects/s, at most %v in a second", s.backText(.99), s.rateText(), s.peak()))
	}
	for _, text := range []string{s.backoff(), s.beforeRefusal()} {
		if text != "" {
			out = append(out, text)
		}
	}
	return strings.Join(out, "; ")
}

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// A span is a count known to be between Min and Max, inclusive.
type span struct{ Min, Max int }

func exactCount(n int) span { return span{n, n} }

func (s *span) add(o span) { s.Min, s.Max = s.Min+o.Min, s.Max+o.Max }

func (s span) contains(n int) bool { return n >= s.Min && n <= s.Max }

// unbounded is the maximum of a count without a limit.
const unbounded = 1 << 40

var anyCount = span{0, unbounded}

// countNames lists, in order, the counts of a verdict that compare checks unless AnyCounts is set.
var countNames = []string{"missed", "duplicated", "reordered", "corrupted", "late", "dropped", "refused", "unfinished", "reconnected"}

// A counts maps the names of counts to their expected values. The value of a missing name is 0.
type counts map[string]span

func (c counts) add(name string, s span) {
	sum := c[name]
	sum.add(s)
	c[name] = sum
}

// A verdictExpectation is the verdict that a scenario should have.
type verdictExpectation struct {
	Outcomes        []verdict.Outcome
	Counts          counts
	ConnectionsOnly bool              // the verdict must be pass (connections only)
	AnyCounts       bool              // counts that are not listed may have any value, and Clients is not compared
	Clients         map[string]bool   // ids that must be named (true) or may be named (false); nil: not compared
	Unmet           []verdict.CheckID // checks of which at least one must be unmet; empty: any may be unmet
	Undetectable    int               // number of losses that may be undetectable; compare accepts a pass that lists them
}

var (
	passes = []verdict.Outcome{verdict.Pass}
	fails  = []verdict.Outcome{verdict.Fail}
)

// expectPass returns the expectation that a run passes without faults. Messages may be late.
func expectPass() *verdictExpectation {
	return &verdictExpectation{Outcomes: passes, Counts: counts{"late": anyCount}, Clients: map[string]bool{}}
}

func (e *verdictExpectation) allows(o verdict.Outcome) bool { return slices.Contains(e.Outcomes, o) }

// expectInvalid returns the expectation that the run is invalid because one of these checks is unmet.
func expectInvalid(checks ...verdict.CheckID) *verdictExpectation {
	return &verdictExpectation{Outcomes: []verdict.Outcome{verdict.Invalid}, AnyCounts: true, Unmet: checks}
}

func countsOf(j *verdict.Verdict) map[string]int {
	c := j.Connections
	counts := map[string]int{"dropped": c.Dropped, "refused": c.Refused, "unfinished": c.Unfinished, "reconnected": c.Reconnected}
	for _, n := range j.Messages.Each() {
		counts[n.Name] = int(n.Count)
	}
	for _, c := range j.Cuts {
		counts["cuts lost"] += int(c.Lost)
		counts["cuts duplicated"] += int(c.Duplicated)
		counts["cuts announced"] += int(c.Announced)
		counts["cuts broken"] += c.Count - c.WithoutLoss
		counts["cuts not made"] += c.Planned - c.Count
		counts["cuts broken by "+c.Kind] = c.Count - c.WithoutLoss
	}
	for _, a := range j.Actions {
		if e := a.Effect; e != nil {
			counts["action: streams lost"] += e.Lost
			counts["action: streams not reconnected"] += e.NotReconnected
			counts["action: missed"] += int(e.Missed)
			counts["action: duplicated"] += int(e.Duplicated)
			counts["action: not resumed"] += int(e.NotResumed)
		}
	}
	if counts["coverage"] = 1000; j.Watched != nil {
		counts["coverage"] = int(1000 * j.Watched.Share)
	}
	countResponses(counts, j.Responses)
	m := j.Messages
	counts["undetectable"] = int(j.Evidence.Undetectable)
	counts["received"], counts["repeated"], counts["foreign"], counts["heartbeats"] = int(m.Received), int(m.Repeated), int(m.Foreign), int(m.Heartbeats)
	counts["announced"], counts["misrouted"], counts["not expected"] = int(m.Announced), int(m.Misrouted), int(m.NotExpected)
	counts["id resets"], counts["no ids"] = int(j.Total(ledger.KindIDReset)), int(j.Total(ledger.KindNoID))
	counts["checked"] = int(m.Checked)
	if p := m.Published; p != nil {
		counts["messages confirmed"], counts["messages refused"], counts["messages open"] = int(p.Confirmed), int(p.Refused), int(p.Open)
	}
	return counts
}

// compare returns the differences between a verdict and the expectation. undecided reports whether the verdict is an
// unexpected pass that lists the losses as undetectable.
func (e *verdictExpectation) compare(j *verdict.Verdict) (differences []string, undecided bool) {
	if j.Verdict == verdict.Pass && !e.allows(verdict.Pass) {
		if e.Undetectable > 0 && int(j.Evidence.Undetectable) >= e.Undetectable {
			return nil, true
		}
		return []string{fmt.Sprintf("the verdict is pass instead of %v (undetectable losses: %d listed, %d possible)", e.Outcomes, j.Evidence.Undetectable, e.Undetectable)}, false
	}
	if !e.allows(j.Verdict) {
		differences = append(differences, fmt.Sprintf("the verdict is %s instead of %v", j.Verdict, e.Outcomes))
	}
	if unmet := unmetChecks(j); len(e.Unmet) > 0 && !slices.ContainsFunc(e.Unmet, func(id verdict.CheckID) bool { return slices.Contains(unmet, id) }) {
		differences = append(differences, fmt.Sprintf("one of the checks %q must be unmet; the unmet checks are %q", e.Unmet, unmet))
	}
	if j.ConnectionsOnly() != e.ConnectionsOnly {
		differences = append(differences, fmt.Sprintf("connections only is %t instead of %t", j.ConnectionsOnly(), e.ConnectionsOnly))
	}
	found := countsOf(j)
	var names []string
	if !e.AnyCounts {
		names = slices.Clone(countNames)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Counts)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		if want := e.Counts[name]; !want.contains(found[name]) {
			differences = append(differences, fmt.Sprintf("%s is %d instead of %s", name, found[name], want))
		}
	}
	if e.AnyCounts {
		return differences, false
	}
	return append(differences, e.compareClients(j)...), false
}

func unmetChecks(j *verdict.Verdict) (ids []verdict.CheckID) {
	for _, c := range j.Checks {
		if !c.Pass && !c.Unjudged {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// compareClients returns differences between the clients that findings name and the faulty clients.
func (e *verdictExpectation) compareClients(j *verdict.Verdict) (differences []string) {
	if e.Clients == nil {
		return nil
	}
	findings := map[string]bool{}
	for _, f := range j.Findings {
		if f.Kind != "late" {
			findings[f.ID] = true
		}
	}
	var unexpected, unnamed []string
	for id := range findings {
		if _, ok := e.Clients[id]; !ok {
			unexpected = append(unexpected, id)
		}
	}
	differences = summarizeIDs(differences, "named without a fault", unexpected)
	if len(j.Findings) >= 50 {
		return differences // the verdict may not list every client
	}
	for id, mustBeNamed := range e.Clients {
		if mustBeNamed && !findings[id] {
			unnamed = append(unnamed, id)
		}
	}
	return summarizeIDs(differences, "faulty, but not named", unnamed)
}

func summarizeIDs(differences []string, label string, ids []string) []string {
	slices.Sort(ids)
	switch {
	case len(ids) == 0:
		return differences
	case len(ids) > 5:
		return append(differences, fmt.Sprintf("%s: %d clients, %s …", label, len(ids), strings.Join(ids[:3], " ")))
	}
	return append(differences, label+": "+strings.Join(ids, " "))
}

func (s span) String() string {
	switch s.Max {
	case s.Min:
		return fmt.Sprint(s.Min)
	case unbounded:
		return fmt.Sprintf("at least %d", s.Min)
	}
	return fmt.Sprintf("%d to %d", s.Min, s.Max)
}

// expectStreams returns the expected verdict of a run, from the record of the service that sent the noops.
func expectStreams(sc *scenario, s *fakeservice.Service) *verdictExpectation {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	e := expectPass()
	for _, d := range s.Clients {
		c := sc.expectNoopClient(d)
		mustFail, mayFail, mustName := false, false, false
		for name, s := range c {
			e.Counts.add(name, s)
			if name == "late" || name == "reconnected" {
				continue
			}
			mustFail = mustFail || s.Min > 0
			mustName = mustName || s.Min > 0 && name != "unfinished" // unfinished streams are counted, but not named
			mayFail = mayFail || s.Max > 0
			e.Undetectable += s.Max * btoi(s.Min == 0)
		}
		if mayFail {
			e.Clients[d.ID] = mustName
		}
		if mustFail {
			e.Outcomes = fails
		}
	}
	if e.Undetectable > 0 && len(e.Clients) > 0 && e.allows(verdict.Pass) {
		e.Outcomes = fails // compare also accepts a pass that lists the undetectable losses
	}
	if sc.Fails {
		e.Outcomes = fails
		for _, id := range sc.Strike.Clients {
			if _, listed := e.Clients[id]; !listed {
				e.Clients[id] = false // the client may be named in a reason instead of in a finding
			}
		}
	}
	if sc.Kind != "delay" {
		e.Counts["late"] = anyCount
	} else if e.Counts["late"].Min > 0 && sc.Plan.MaxLate >= 0 {
		e.Outcomes = fails
	}
	return e
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (sc *scenario) expectNoopClient(d *fakeservice.NoopClient) counts {
	c := counts{}
	if len(d.Spans) == 0 {
		c.add("refused", exactCount(1))
		return c
	}
	if sc.Strike.NeverEnds && sc.Strike.Matches(d.ID) {
		c.add("unfinished", exactCount(1))
	}
	c.add("dropped", sc.expectNoopDrop(d))
	c.add("reconnected", reconnectCount(&d.Client, d.LastExpected()))
	c.add("missed", sc.expectMissed(d))
	for i := range d.Noops {
		n := &d.Noops[i]
		if n.Lost(d.CutAt) {
			continue
		}
		afterEnd := n.At.After(d.LastExpected()) // such a noop counts only if it arrives before the stream has ended
		add := func(name string, count int) {
			c.add(name, span{count * btoi(!afterEnd), count})
		}
		if !sc.Plan.Reconnect {
			add("duplicated", n.Copies-1)
		}
		add("reordered", btoi(n.Overtaken && sc.Service.Numbered()))
		add("corrupted", btoi(n.Corrupt))
		if !afterEnd {
			c.add("late", longer(n.At.Sub(n.Due), sc.Plan.lateLimit(), sc.slack()))
		}
	}
	return c
}

// expectNoopDrop returns 1 for a client whose stream ended early. If clients reconnect, only an outage at the end that
// is longer than MAX_OUTAGE counts. If the last stream was open when its end was requested, closedAsIdle decides.
func (sc *scenario) expectNoopDrop(d *fakeservice.NoopClient) span {
	if d.EndedOnRequest() {
		return sc.closedAsIdle(d)
	}
	if !sc.Plan.Reconnect {
		return exactCount(1)
	}
	return sc.tooLong(d.Spans[0].From.Add(sc.Plan.hold()).Sub(d.LastExpected()))
}

// closedAsIdle returns 1 for a client that closed a silent stream and then requested the end of this stream. Behind a
// proxy or on a busy machine, the service may receive the request before it notices the close.
func (sc *scenario) closedAsIdle(d *fakeservice.NoopClient) span {
	if sc.Plan.Reconnect || sc.Strike.Action == fakeservice.ActQuiet {
		return span{}
	}
	for i := len(d.Noops) - 1; i >= 0; i-- {
		if n := &d.Noops[i]; !n.Lost(d.CutAt) {
			return longer(d.EndRequestedAt.Sub(n.At), sc.Plan.interval()*5/2, sc.slack())
		}
	}
	return span{}
}

// tooLong returns 1 for a client that was disconnected at the end for longer than MAX_OUTAGE, and 0 otherwise.
func (sc *scenario) tooLong(disconnected time.Duration) span {
	return longer(disconnected, sc.Plan.maxOutage(), 2*hubSlack)
}

// longer returns 1 if d is longer than a limit, and 0 if it is not. Within slack of the limit, either is accepted.
func longer(d, limit, slack time.Duration) span {
	return span{btoi(d > limit+slack), btoi(d > limit-slack)}
}

// reconnectCount returns the number of streams after the first one. If the last stream started just before end, its
// headers may not have reached the client, so a count without this stream is also accepted.
func reconnectCount(c *fakeservice.Client, end time.Time) span {
	count := exactCount(len(c.Spans) - 1)
	if count.Max > 0 && end.Sub(c.Last().From) < hubSlack {
		count.Min--
	}
	return count
}

// slack returns how far the times of client and service may differ.
func (sc *scenario) slack() time.Duration {
	return time.Duration((sc.Service.Schedule.Jitter+0.08)*float64(sc.Service.Schedule.Interval)) + 80*time.Millisecond
}

// expectMissed counts the noops that a client expected and that did not arrive. The span allows for losses that only
// the interval can reveal, because these may be undetectable at the start or end of a stream.
func (sc *scenario) expectMissed(d *fakeservice.NoopClient) (sum span) {
	end := d.LastExpected()
	expected := d.Noops[:0:0]
	for _, n := range d.Noops {
		if n.Due.Before(end) {
			expected = append(expected, n)
		}
	}
	first, last := -1, -1
	for i := range expected {
		if !expected[i].Lost(d.CutAt) {
			if last = i; first < 0 {
				first = i
			}
		}
	}
	for i := range expected {
		n := &expected[i]
		if !n.Lost(d.CutAt) {
			continue
		}
		startsOutage := n.Disconnected && (i == 0 || !expected[i-1].Disconnected)
		switch byNumber := sc.Service.Numbered() && !n.Unserved && !n.OtherEvent; {
		case i > last && byNumber && sc.Service.KeepsLedger():
			sum.add(exactCount(1))
		case i > last:
			sum.add(span{btoi(end.Sub(n.Due) > sc.Plan.tolerance()+sc.slack()), 1}) // may be undetectable near the end
		case i < first && !byNumber && i == 0:
			sum.add(sc.lossAtStart(d, &expected[first]))
		case startsOutage && !sc.Service.Numbered(): // the next stream may have a different phase
			sum.add(span{0, 1})
		default:
			sum.add(exactCount(1))
		}
	}
	if first < 0 && sum.Min > 0 && !sc.Service.KeepsLedger() {
		sum.Min-- // without a noop, the interval is unknown
	}
	return sum
}

// lossAtStart returns the count of a lost first noop that only the interval can reveal. The loss is undetectable if
// slot 2 was due about one interval after the headers, because a correct service may send its first noop then.
func (sc *scenario) lossAtStart(d *fakeservice.NoopClient, next *fakeservice.Noop) span {
	head := next.Due.Sub(d.Spans[0].From) - time.Duration(next.Slot-2)*sc.Service.Schedule.Interval
	return span{btoi(head > sc.Plan.interval()*3/2+sc.slack()), 1}
}

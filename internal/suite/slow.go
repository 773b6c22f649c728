package suite

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

var slowReaders = Suite{
	Name:    "slow",
	Short:   "let clients read slowly, and measure other clients and the service's memory",
	Script:  []string{"load-tests", "sse", "slow.js"},
	Target:  Target{Streams: true},
	Runners: oneRunner,
	Page:    Page{Doc: "docs/suites.md", Ended: "slow streams disconnected"},
	Plan: Plan{BySettings: true, Profiles: map[string][]string{
		"full":  {"CONNECTIONS=500", "SECONDS=91", "NOOP_INTERVAL=1", "RUNNERS=1", "MESSAGE_KB=32"},
		"smoke": {"CONNECTIONS=50", "SECONDS=23", "NOOP_INTERVAL=1", "RUNNERS=1", "MESSAGE_KB=60"},
	}},
	Assess:    assessSlow,
	Disturbed: (*Run).isSelected,
}

func assessSlow(r *Run) verdict.Assessment {
	m, open := r.Rounds[0], r.streamsOf(r.isNotSelected)
	s := r.slowStreams()
	closed := [2]string{"–", "–"}
	if s.closed.Count > 0 {
		closed = [2]string{fmt.Sprintf("%.1f", s.closed.Min/1000), fmt.Sprintf("%.1f", s.closed.Max/1000)}
	}
	t := newTable("Slow streams", "first, last: seconds until a disconnect that the client detected during the slow phase; detected later: disconnects "+
		"that clients detected only after the slow phase; backlog: unread data in KB at the end of the slow phase, of streams without a detected disconnect",
		"streams|disconnected|first|last|detected later|cause|open, complete|open, incomplete|backlog p50|max")
	t.Add(row(s.started, s.closed.Count, closed[0], closed[1], s.lateDetections, reasonCounts(s.reasons), s.complete, s.incomplete(),
		trend(s.backlog, .5), trend(s.backlog, 1))...)
	a := verdict.Assessment{
		Streams: open, Warnings: open.Warnings,
		Checks: slices.Concat([]verdict.Check{checkObserved(m)}, open.FaultChecks(), open.AgreementChecks(),
			[]verdict.Check{r.checkBystanders(open), s.checkAllSlow()}, s.checkAccepted(), []verdict.Check{s.checkBuffers(r, len(open.Codings) > 0)}, s.checkDelivered(), s.checkPolicy(r), []verdict.Check{s.checkComplete()}, s.checkGrowth(r)),
		Facts: append([]verdict.Fact{
			{Name: "slow streams", Value: sentence("%v of %v, whose clients read %s for %v", s.started, m.Plan.Connections, s.rate, s.duration)},
			{Name: "outcome", Value: s.outcome()},
			{Name: "memory", Value: s.memory.String()},
		}, readerFacts(open, m)...),
		Passed: []string{fmt.Sprintf("%s that read %s: %s; the other clients received all messages", format.Plural(s.started, "client", "clients"), s.rate, s.outcome())},
		Tables: []verdict.Table{t, s.memory.table()},
	}
	if !s.broadcasts {
		a.Facts = append(a.Facts, verdict.Fact{Name: "unknown", Value: "when the service closed streams whose clients detected the end only later; " +
			"and which part of the service's memory is for messages that it keeps for all clients"})
	}
	if s.memory.isKnown {
		a.Metrics = []verdict.Metric{{Name: "memory grew by", Unit: "MiB", Value: s.memory.peak}}
	}
	return a
}

// readerFacts returns the facts of the streams that are read at full speed. It replaces their lateness, because the
// histogram includes the slow streams.
func readerFacts(open *verdict.Streams, m *shard.Merged) []verdict.Fact {
	var longest time.Duration
	for _, c := range open.Records() {
		longest = max(longest, c.MaxLateness)
	}
	facts := streamFacts(open, m)
	for i := range facts {
		if facts[i].Name == "lateness" {
			facts[i].Value = fmt.Sprintf("at most %s on the other streams", ms(float64(longest)/float64(time.Millisecond)))
		}
	}
	return facts
}

type slowStreams struct {
	planned, started         int            // streams
	filled                   int            // slow streams that were disconnected, or fell FILL_KB behind
	confirmed, unconfirmed   int            // messages while streams were slow
	due, arrived, repeated   int            // deliveries of confirmed broadcasts on the other streams
	broadcasts               bool           // the messages are broadcasts of our backend, not of a publisher or a feed
	feed                     bool           // the service publishes the messages, not the run
	rate                     string         // data that a slow client reads: "nothing", or KB per second
	duration                 time.Duration  // of the slow phase
	closed, backlog          shard.Metric   // ms until slow streams were closed; KB that the clients of the open ones had not read
	lateDetections, complete int            // slow streams: end detected after the slow phase; open, with all messages
	reasons                  map[string]int // reasons of the ends of slow streams
	closeTime                time.Duration  // time until our backend had closed all slow streams; 0 if unknown
	memory                   memory
}

func (r *Run) slowStreams() slowStreams {
	m := r.Rounds[0]
	metric := func(name string) shard.Metric { return sumsByStage(m, "slow_"+name)["slow"] }
	sum := func(name string) int { return int(metric(name).Sum) }
	s := slowStreams{
		started: sum("started"), filled: sum("filled"), confirmed: sum("accepted"), unconfirmed: sum("rejected"),
		due: sum("due"), arrived: sum("arrived"), repeated: sum("repeated"),
		broadcasts: !m.Plan.Published() && !m.Service.ComparesClients(), feed: m.Service.ComparesClients(), rate: "nothing", duration: r.duration("SLOW_SECONDS", time.Second),
		closed: metric("closed"), backlog: metric("backlog"), lateDetections: sum("closed_later"), complete: sum("complete"), reasons: map[string]int{},
	}
	if kb := r.number("SLOW_KB"); kb > 0 {
		s.rate = count(kb) + " KB/s"
	}
	for _, st := range stagesOf(m) {
		s.planned = st.Requests
	}
	complete := 0
	for _, c := range r.streamsOf(r.isSelected).Records() {
		switch {
		case c.State == ledger.Dropped:
			s.reasons[c.Reason]++
		case c.State == ledger.Completed && c.Missed() == 0:
			complete++
		}
	}
	if !s.broadcasts {
		s.complete = complete
	}
	if first := metric("started").FirstUS; first > 0 {
		s.memory = r.memoryDuring(r.parameter("GAUGE"), time.UnixMicro(first), s.duration)
		s.closeTime = r.closeTime(time.UnixMicro(first), s.started)
		for _, p := range m.Publishers() {
			s.count(p, first)
		}
	}
	return s
}

// count adds the messages that were published while streams were slow. from is the start of that phase, in microseconds
// since 1970.
func (s *slowStreams) count(p *shard.Published, from int64) {
	for k := range p.Topics {
		for _, m := range p.Topic(k) {
			switch {
			case m.SentUS < from || m.SentUS > from+s.duration.Microseconds():
			case m.State == shard.Confirmed:
				s.confirmed++
			default:
				s.unconfirmed++
			}
		}
	}
}

func (s *slowStreams) closedCount() int { return int(s.closed.Count) + s.lateDetections }

// incomplete returns the number of slow streams that stayed open and did not receive all messages.
func (s *slowStreams) incomplete() int { return s.started - s.closedCount() - s.complete }

func (s *slowStreams) outcome() string {
	var out []string
	add := func(n int, text string) {
		if n > 0 {
			out = append(out, format.Thousands(n)+" "+text)
		}
	}
	add(int(s.closed.Count), fmt.Sprintf("disconnected, the first after %.1f s, the last after %.1f s", s.closed.Min/1000, s.closed.Max/1000))
	result := "disconnected"
	if s.closeTime > 0 {
		result += fmt.Sprintf(" within %.0f s", s.closeTime.Seconds())
	}
	add(s.lateDetections, result+" (detected by the clients only after the slow phase)")
	add(s.complete, "still open, with all messages at the end")
	add(s.incomplete(), "still open, with messages missing at the end")
	if len(out) == 0 {
		return "none was slow"
	}
	return strings.Join(out, "; ")
}

func (s *slowStreams) checkAllSlow() verdict.Check {
	return checkDisturbed(CheckSlow, "clients are slow", s.started, s.planned,
		"only %v of %v clients were slow: the streams of the others were not open, or cannot be read slowly (see the log of k6)")
}

// checkAccepted returns the check that the service accepted all messages, or nil for a feed, because the run publishes
// nothing. The check is a doubt if no message was published. It is also a doubt if the service accepted none of the
// broadcasts, because the service then probably has no endpoint for them.
func (s *slowStreams) checkAccepted() []verdict.Check {
	if s.feed {
		return nil
	}
	published := s.confirmed + s.unconfirmed
	c := check(verdict.CheckConfirmed, "messages accepted by the service", text(published), s.confirmed, s.confirmed > 0 && s.unconfirmed == 0,
		sentence("the service did not accept %v of %v messages while some clients were slow", s.unconfirmed, published))
	switch {
	case c.Pass:
	case published == 0:
		c.Reasons = []string{"no message was published while clients were slow, so the buffers of the service were not filled"}
		c = c.AsDoubt()
	case s.confirmed == 0 && s.broadcasts:
		c.Reasons = []string{"the service accepted none of the messages that fill its buffers: this suite needs POST BACKEND_URL/event/broadcast (docs/suites.md)"}
		c = c.AsDoubt()
	}
	return []verdict.Check{c}
}

// checkBuffers returns the check that each slow stream was disconnected or fell FILL_KB behind. If it is not met, the
// run is invalid unless another check fails it.
func (s *slowStreams) checkBuffers(r *Run, compressed bool) verdict.Check {
	remedy := "send more data (MESSAGE_KB, MESSAGE_RATE or PUBLISH_RATE, SECONDS)"
	if s.feed {
		remedy = "keep the streams open for longer (SECONDS), or publish larger messages"
	}
	if compressed {
		remedy = "the messages were compressed; set ACCEPT_ENCODING=none, or " + remedy
	}
	return check(CheckBacklog, "slow streams disconnected or far behind", text(s.started), s.filled, s.filled == s.started,
		sentence("%v of %v slow streams were neither disconnected nor %v KB behind (FILL_KB), so the service may not have buffered data for them: %s",
			s.started-s.filled, s.started, r.number("FILL_KB"), remedy)).AsDoubt()
}

// checkDelivered returns the checks of broadcasts, or nil if no delivery was expected. Other messages are part of the
// check of missed messages.
func (s *slowStreams) checkDelivered() []verdict.Check {
	if s.due == 0 {
		return nil
	}
	return []verdict.Check{
		check(CheckDelivered, "large messages on the other streams", text(s.due), s.arrived, s.arrived >= s.due,
			sentence("%v of %v large messages did not arrive on the other streams", s.due-s.arrived, s.due)),
		check(CheckDeliveredOnce, "large messages duplicated or out of order", "0", s.repeated, s.repeated == 0,
			format.Plural(s.repeated, "large message arrived", "large messages arrived")+" twice, or after a later one, on the other streams"),
	}
}

// checkPolicy returns the check that the service disconnected slow streams as CUT_SLOW requires, or nil if CUT_SLOW
// requires nothing.
func (s *slowStreams) checkPolicy(r *Run) []verdict.Check {
	const name = "slow streams disconnected"
	switch r.number("CUT_SLOW") {
	case 1:
		return []verdict.Check{check(CheckSlowClosed, name, "all "+text(s.started), s.closedCount(), s.closedCount() == s.started,
			sentence("the service did not disconnect %v of %v slow streams within %v, but it must (CUT_SLOW=1)", s.started-s.closedCount(), s.started, s.duration))}
	case 0:
		return []verdict.Check{check(CheckSlowClosed, name, "0", s.closedCount(), s.closedCount() == 0,
			sentence("the service disconnected %v of %v slow streams (%s), but it must not (CUT_SLOW=0)", s.closedCount(), s.started, reasonCounts(s.reasons)))}
	}
	return nil
}

// checkComplete warns of slow streams that stayed open and did not receive all messages.
func (s *slowStreams) checkComplete() verdict.Check {
	n := s.incomplete()
	return warnIfUnmet(check(CheckSlowComplete, "open slow streams with messages missing", "0", n, n <= 0,
		sentence("%v of %v slow streams stayed open and did not receive all messages: the service dropped messages, or AFTER_SECONDS is too short to read them", n, s.started)))
}

func (s *slowStreams) checkGrowth(r *Run) []verdict.Check {
	limit, memory := r.number("MAX_GROWTH"), s.memory
	if limit < 0 {
		return nil
	}
	c := check(CheckMemory, "memory growth", fmt.Sprintf("at most %.0f MiB", limit), fmt.Sprintf("%.1f MiB", memory.peak), memory.isKnown && memory.peak <= limit,
		fmt.Sprintf("the service's memory grew by %.1f MiB while clients were slow (limit: %.0f MiB, MAX_GROWTH); at the end the growth was %+.1f MiB",
			memory.peak, limit, memory.after))
	if memory.isKnown {
		return []verdict.Check{c}
	}
	c.Actual = "not known"
	c.Reasons = []string{"the service's memory is unknown before or after the slow phase, or for at least half of it; set GAUGE, for example to " +
		"process_resident_memory_bytes, or set MAX_GROWTH=-1"}
	if memory.isCounter {
		c.Reasons = []string{counterReason(r.parameter("GAUGE"), "the service's memory, such as process_resident_memory_bytes")}
	}
	return []verdict.Check{c.AsDoubt()}
}

// A memory value holds the memory usage of the service before, during and after the slow phase, in MiB.
type memory struct {
	isKnown     bool // there are samples before, after, and for most of the time in between
	isCounter   bool // GAUGE is a counter
	before      float64
	peak, after float64 // growth relative to before: the maximum, and the value at the last sample
	readings    []reading
}

// memoryDuring returns the service's memory before, during and after a phase. A sample counts at the end of its second.
func (r *Run) memoryDuring(gauge string, start time.Time, duration time.Duration) (out memory) {
	hasBefore, hasAfter := false, false
	known, unknown := 0, 0 // samples while clients were slow: a service close to its limit may not report its memory
	for _, s := range r.Samples {
		v, ok := float64(s.BackendRSS+s.NginxRSS)/(1<<20), s.BackendRSS > 0
		if gauge != "" {
			v, ok = gaugeOf(s, gauge)
			v /= 1 << 20
		}
		at := endOf(s).Sub(start)
		switch {
		case !ok && at > 0 && at <= duration:
			unknown++
			continue
		case !ok:
			continue
		case at <= 0:
			out.before, hasBefore = v, true
			continue
		case at <= duration:
			known++
		default:
			hasAfter = true
		}
		out.peak, out.after = max(out.peak, v-out.before), v-out.before
		out.readings = addReading(out.readings, reading{at, v})
	}
	out.isCounter = r.counterGauge()
	out.isKnown = hasBefore && hasAfter && known > unknown && !out.isCounter
	return out
}

func (m *memory) String() string {
	if !m.isKnown {
		return "not known"
	}
	return fmt.Sprintf("%.0f MiB before, %+.0f MiB at most, %+.0f MiB at the end", m.before, m.peak, m.after)
}

func (m *memory) table() verdict.Table {
	t := newTable("Memory of the service", "in MiB; seconds since the clients became slow", "seconds|memory")
	if !m.isKnown {
		return t
	}
	t.Add("before", fmt.Sprintf("%.1f", m.before))
	for _, r := range selectReadings(m.readings) {
		t.Add(fmt.Sprintf("%.1f", r.elapsed.Seconds()), fmt.Sprintf("%.1f", r.value))
	}
	return t
}

// closeTime returns the time until our backend had n fewer streams than before. It returns 0 if that never happened,
// and for other services.
func (r *Run) closeTime(start time.Time, n int) time.Duration {
	before := 0
	for _, s := range r.Samples {
		at := endOf(s).Sub(start)
		switch {
		case s.BackendRSS == 0:
		case at <= 0:
			before = s.Streams
		case n > 0 && s.Streams <= before-n:
			return at
		}
	}
	return 0
}

func endOf(s resources.Sample) time.Time { return time.Unix(s.Unix+1, 0) }

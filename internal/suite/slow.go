package suite

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

var slowReaders = Suite{
	Name:   "slow",
	Short:  "let some clients read slowly or not at all, and see whether the others notice and the service's memory holds",
	Script: []string{"load-tests", "sse", "slow.js"},
	Settings: []Setting{
		{"SLOW_PERCENT", "share of the streams that is slow, 1 to 50 percent (default: 10, smoke: 20)"},
		{"SLOW_KB", "KB per second that a slow stream reads; 0: nothing (default: 0)"},
		{"AFTER_SECONDS", "seconds at the end, in which they read all there is (default: 20, smoke: 3)"},
		{"MESSAGE_RATE", "such messages per second to every stream; of a described service PUBLISH_RATE and TOPICS say that (default: 4, smoke: 10)"},
		{"FILL_KB", "KB by which a slow stream has to fall behind, unless it is cut; else the run is invalid (default: 4096)"},
		{"CUT_SLOW", "1: the service has to cut slow streams, 0: it must not, -1: either (default: -1)"},
		{"MAX_GROWTH", "MiB by which the service's memory may grow; -1: any number (default: 200)"},
		{"GAUGE", "the service's memory in bytes: a metric of BACKEND_URL/metrics, pid:N for process N of this machine and its children, or PromQL with PROMETHEUS_URL (default: that of our backend and nginx)"},
		heldSetting,
	},
	Target:  Target{Streams: true},
	Runners: oneRunner,
	Page:    Page{Doc: "docs/suites.md", Ended: "slow ones cut"},
	Plan: Plan{Known: true, Profiles: map[string][]string{
		"full":  {"CONNECTIONS=500", "SECONDS=91", "NOOP_INTERVAL=1", "RUNNERS=1", "MESSAGE_KB=32"},
		"smoke": {"CONNECTIONS=50", "SECONDS=23", "NOOP_INTERVAL=1", "RUNNERS=1", "MESSAGE_KB=60"},
	}},
	Assess: assessSlow,
}

func assessSlow(r *Run) verdict.Assessment {
	m, every := r.Rounds[0], r.every()
	held := r.held(m, func(n int) bool { return n%every != 0 })
	s := r.slowed(m)
	a := verdict.Assessment{
		Streams: held, Warnings: held.Warnings,
		Checks: slices.Concat([]verdict.Check{everyStream(m)}, faultsOf(held), held.Agreement(),
			[]verdict.Check{r.kept(held), s.all(), s.volume(), s.wereFilled(r)}, s.delivered(), s.policy(r), s.growth(r)),
		Facts: append([]verdict.Fact{
			{Name: "slow", Value: fmt.Sprintf("%s of %s streams, which read %s for %s", format.Thousands(s.begun), format.Thousands(m.Plan.Connections), s.rate, format.Duration(s.lasted))},
			{Name: "of these", Value: s.fate()},
			{Name: "memory", Value: s.memory.String()},
		}, heldFacts(held, m)...),
		Passed: []string{fmt.Sprintf("%s that read %s: %s; the others had all their messages", format.Plural(s.begun, "stream", "streams"), s.rate, s.fate())},
		Tables: []verdict.Table{s.table(), s.memory.table()},
	}
	if !s.broadcasts {
		a.Facts = append(a.Facts, verdict.Fact{Name: "not known", Value: "when the service closed streams whose clients saw it only later; and which part of its memory is of messages that it keeps for all"})
	}
	if s.memory.known {
		a.Metrics = []verdict.Metric{{Name: "memory grew by", Unit: "MiB", Value: s.memory.peak}}
	}
	return a
}

// heldFacts are those of the streams that are read. The histogram of lateness has that of the slow ones, too.
func heldFacts(held *verdict.Streams, m *shard.Merged) []verdict.Fact {
	var most time.Duration
	for c := range held.Records() {
		most = max(most, c.MaxLateness)
	}
	facts := streamFacts(held, m)
	for i := range facts {
		switch facts[i].Name {
		case "lateness":
			facts[i].Value = fmt.Sprintf("at most %s on the streams that are read", ms(float64(most)/float64(time.Millisecond)))
		case "server":
			facts[i].Value += "; the large messages are in its count"
		}
	}
	return facts
}

// A slowness is what slow streams were, and what became of them.
type slowness struct {
	planned, begun, filled int  // streams
	taken, untaken         int  // messages, while they were slow
	due, arrived, again    int  // of these, on streams that were held, and what came there once more; of published messages the account of each stream knows
	broadcasts             bool // they are broadcasts of our backend; otherwise the run publishes
	rate                   string
	lasted                 time.Duration
	cut, behind            shard.Metric
	unseen, whole          int
	reasons                map[string]int // why slow streams ended
	closed                 time.Duration  // after which our backend had closed all of them, by its own gauge; 0: not known
	memory                 memory
}

func (r *Run) slowed(m *shard.Merged) slowness {
	sum := func(name string) int { return int(sumsByStage(m, name)["slow"].Sum) }
	s := slowness{
		begun: sum("slow_begun"), filled: sum("slow_filled"), taken: sum("slow_taken"), untaken: sum("slow_untaken"), due: sum("slow_due"), arrived: sum("slow_arrived"), again: sum("slow_again"),
		broadcasts: !m.Plan.Published(), rate: "nothing", lasted: time.Duration(r.number("SLOW_SECONDS") * float64(time.Second)),
		cut: sumsByStage(m, "slow_cut")["slow"], behind: sumsByStage(m, "slow_behind")["slow"], unseen: sum("slow_cut_unseen"), whole: sum("slow_whole"),
		reasons: map[string]int{},
	}
	if kb := r.number("SLOW_KB"); kb > 0 {
		s.rate = count(kb) + " KB/s"
	}
	for _, st := range stagesOf(m) {
		s.planned = st.Requests
	}
	if m.Plan.Published() {
		s.whole = r.wholeOnes(m)
	}
	for _, c := range m.Connections.All() {
		if n, ok := m.Plan.Number(c.ID); ok && n%r.every() == 0 && c.State == ledger.Dropped {
			s.reasons[c.Reason]++
		}
	}
	if first := sumsByStage(m, "slow_begun")["slow"].FirstUS; first > 0 {
		s.memory = r.memoryWhile(m.Suite.Parameters["GAUGE"], time.UnixMicro(first), s.lasted)
		s.closed = r.closedAfter(time.UnixMicro(first), s.begun)
		for _, p := range m.Publishers() {
			s.count(p, first)
		}
	}
	return s
}

// count adds the messages that were published while streams were slow, from an instant on.
func (s *slowness) count(p *shard.Published, from int64) {
	for k := range p.Topics {
		for _, m := range p.Topic(k) {
			switch {
			case m.SentUS < from || m.SentUS > from+s.lasted.Microseconds():
			case m.State == shard.Confirmed:
				s.taken++
			default:
				s.untaken++
			}
		}
	}
}

// wholeOnes are the slow streams that were not cut and got all that they were owed in the end.
func (r *Run) wholeOnes(m *shard.Merged) (n int) {
	for c := range r.held(m, func(n int) bool { return n%r.every() == 0 }).Records() {
		if c.State == ledger.Completed && c.Missed() == 0 {
			n++
		}
	}
	return n
}

// cuts are the slow streams that ended.
func (s *slowness) cuts() int { return int(s.cut.Count) + s.unseen }

// fate says what became of the slow streams.
func (s *slowness) fate() string {
	var out []string
	add := func(n int, text string) {
		if n > 0 {
			out = append(out, format.Thousands(n)+" "+text)
		}
	}
	if s.cut.Count > 0 {
		out = append(out, fmt.Sprintf("%s cut, the first after %.1f s, the last after %.1f s", format.Thousands(int(s.cut.Count)), s.cut.Min/1000, s.cut.Max/1000))
	}
	if s.closed > 0 {
		add(s.unseen, fmt.Sprintf("cut, which they saw only when they read on: the backend had closed the last after %.0f s", s.closed.Seconds()))
	} else {
		add(s.unseen, "cut, which they saw only when they read on")
	}
	add(s.whole, "kept, with all messages in the end")
	add(s.begun-s.cuts()-s.whole, "kept, but with messages missing in the end")
	if len(out) == 0 {
		return "none was slow"
	}
	return strings.Join(out, "; ")
}

func (s *slowness) all() verdict.Check {
	return allOf(CheckSlow, "clients are slow", s.begun, s.planned, "who reads fills no buffer",
		"clients were slow: the streams of the others were not open, or cannot be read slowly (k6's log says)")
}

// volume is a fault where the service took some messages and others not: one that takes none has no broadcasts.
func (s *slowness) volume() verdict.Check {
	c := verdict.Check{
		ID: verdict.CheckConfirmed, Name: "messages taken by the service", Limit: format.Thousands(s.taken + s.untaken), Actual: format.Thousands(s.taken), Pass: s.taken > 0 && s.untaken == 0,
		Why: "who publishes must not wait for who does not read",
	}
	switch {
	case c.Pass:
	case s.taken+s.untaken == 0:
		c.Reasons = []string{"no message was published while clients were slow, so nothing filled the service's buffers"}
		return c.InDoubt()
	case s.taken == 0 && s.broadcasts:
		c.Reasons = []string{"the service took none of the messages that were to fill its buffers: this suite needs POST BACKEND_URL/event/broadcast (docs/suites.md)"}
		return c.InDoubt()
	default:
		c.Reasons = []string{fmt.Sprintf("the service did not take %s of %s messages while some clients did not read", format.Thousands(s.untaken), c.Limit)}
	}
	return c
}

// wereFilled takes a pass back where nothing was tested.
func (s *slowness) wereFilled(r *Run) verdict.Check {
	c := verdict.Check{
		ID: CheckFilled, Name: "slow streams that fell behind", Limit: format.Thousands(s.begun), Actual: format.Thousands(s.filled), Pass: s.filled == s.begun,
		Why: "buffers of the kernels hide that nobody reads",
	}
	if !c.Pass {
		c.Reasons = []string{fmt.Sprintf("%s of %s slow streams were neither cut nor behind by %s KB (FILL_KB), so the service had nothing to keep for them: send more (MESSAGE_KB, MESSAGE_RATE or PUBLISH_RATE, SECONDS)",
			format.Thousands(s.begun-s.filled), format.Thousands(s.begun), count(r.number("FILL_KB")))}
	}
	return c.InDoubt()
}

// delivered is of broadcasts: where the run publishes, "messages missed" says the same.
func (s *slowness) delivered() []verdict.Check {
	if s.due == 0 {
		return nil
	}
	c := verdict.Check{
		ID: CheckDelivered, Name: "large messages on the other streams", Limit: format.Thousands(s.due), Actual: format.Thousands(s.arrived), Pass: s.arrived >= s.due,
		Why: "who reads must not pay for who does not",
	}
	if !c.Pass {
		c.Reasons = []string{fmt.Sprintf("%s of %s large messages did not come to streams that were read", format.Thousands(s.due-s.arrived), format.Thousands(s.due))}
	}
	once := verdict.Check{ID: CheckDeliveredOnce, Name: "large messages again or out of order", Limit: "0", Actual: format.Thousands(s.again), Pass: s.again == 0, Why: "a message that came twice"}
	if !once.Pass {
		once.Reasons = []string{fmt.Sprintf("%s to streams that were read once more, or behind a later one", format.Plural(s.again, "large message came", "large messages came"))}
	}
	return []verdict.Check{c, once}
}

// policy judges what the service does with slow streams, where a setting says what it should do.
func (s *slowness) policy(r *Run) []verdict.Check {
	c := verdict.Check{ID: CheckSlowClosed, Name: "slow streams cut", Actual: format.Thousands(s.cuts())}
	switch r.number("CUT_SLOW") {
	case 1:
		c.Limit, c.Pass, c.Why = "all "+format.Thousands(s.begun), s.cuts() == s.begun, "a client that never reads must not be kept for ever"
		c.Reasons = []string{fmt.Sprintf("the service did not cut %s of %s slow streams within %s, and it has to (CUT_SLOW=1)", format.Thousands(s.begun-s.cuts()), format.Thousands(s.begun), format.Duration(s.lasted))}
	case 0:
		c.Limit, c.Pass, c.Why = "0", s.cuts() == 0, "a client on a thin line is to be served as well"
		c.Reasons = []string{fmt.Sprintf("%s of %s slow streams were cut (%s), and the service must not (CUT_SLOW=0)", format.Thousands(s.cuts()), format.Thousands(s.begun), s.why())}
	default:
		return nil
	}
	if c.Pass {
		c.Reasons = nil
	}
	return []verdict.Check{c}
}

// why says how slow streams ended.
func (s *slowness) why() string {
	var out []string
	for _, reason := range slices.Sorted(maps.Keys(s.reasons)) {
		out = append(out, fmt.Sprintf("%s × %s", format.Thousands(s.reasons[reason]), reason))
	}
	if len(out) == 0 {
		return "–"
	}
	return strings.Join(out, ", ")
}

func (s *slowness) table() verdict.Table {
	t := verdict.Table{
		Title: "Slow streams", Note: "cut: seconds after which those were cut that saw it at once; behind: KB by which the others were when they read on",
		Columns: []string{"slow", "cut", "first", "last", "cut, seen later", "how", "kept, all came", "kept, some missing", "behind p50", "max"},
	}
	first, last := "–", "–"
	if s.cut.Count > 0 {
		first, last = fmt.Sprintf("%.1f", s.cut.Min/1000), fmt.Sprintf("%.1f", s.cut.Max/1000)
	}
	t.Add(format.Thousands(s.begun), format.Thousands(int(s.cut.Count)), first, last, format.Thousands(s.unseen), s.why(), format.Thousands(s.whole),
		format.Thousands(s.begun-s.cuts()-s.whole), trend(s.behind, .5), trend(s.behind, 1))
	return t
}

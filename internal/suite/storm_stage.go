package suite

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A stormStage is what became of the streams that were dropped at once.
type stormStage struct {
	shard.Stage
	dropped int             // streams
	at      []time.Duration // when each was dropped, since the first one; sorted
	back    []time.Duration // when each was back; sorted
	beside  int             // streams that were lost in its time, held ones among them, and that neither this client dropped nor the service ends on purpose
	refused map[string]int  // attempts, by reason
	delayed int             // streams with a refused attempt: their clients wait longer before each further attempt
	first   time.Duration   // when the first of these failed, 0 where none did
	waited  shard.Metric
	connect shard.Metric
	slow    int64
	slowMS  float64
	machine Machine
}

// storms are those that were begun, in order.
func (r *Run) storms(streams *verdict.Streams) (out []stormStage) {
	m := r.Rounds[0]
	drops, waited, connect := sumsByStage(m, "storm_dropped"), sumsByStage(m, "storm_waited"), sumsByStage(m, "storm_connect")
	stages := stagesOf(m)
	for i, st := range stages {
		from := int64(math.MaxInt64)
		since := int64(0) // what was lost before the first storm is lost as well
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
		begun := time.UnixMicro(min(from, to))
		s.machine = r.machine(m, begun, begun.Add(max(s.backIn(1), 2*time.Second)))
		out = append(out, s)
	}
	return out
}

// sooner is by how much what a ledger notes may be before what its script counts: the clocks of samples are rounded.
const sooner = 100_000 // µs

// follow reads from the ledgers what became of the streams that this client dropped from one instant until another, in µs, and
// which were lost besides since an earlier one. A stream is dropped once in a storm: what ends it then on purpose is its service.
func (s *stormStage) follow(r *Run, streams *verdict.Streams, since, from, to int64) {
	m := r.Rounds[0]
	var at, back, failed []int64
	s.refused = map[string]int{}
	for c := range streams.Records() {
		runner, dropped := &m.Runners[c.Runner], false
		n, _ := m.Plan.Number(c.ID)
		held, lost := r.isHeld(n), false
		for _, o := range c.Outages {
			switch begun := runner.At(o.From).UnixMicro(); {
			case begun >= to-sooner || begun < since-sooner:
			case !o.Planned:
				lost = lost || r.lost(o)
			case !held && !dropped && begun >= from-sooner:
				dropped = true
				at, back = append(at, begun), append(back, runner.At(o.To).UnixMicro())
				failed = append(failed, s.countRefusals(runner, o.Refusals)...)
			}
		}
		if lost {
			s.beside++
		}
		if last := c.Longest; !held && !dropped && c.State != ledger.Completed && runner.At(last.From).UnixMicro() >= from-sooner && runner.At(last.From).UnixMicro() < to-sooner {
			failed = append(failed, s.countRefusals(runner, last.Refusals)...) // it did not come back
		}
	}
	slices.Sort(at)
	slices.Sort(back)
	for i := range at {
		s.at, s.back = append(s.at, time.Duration(at[i]-at[0])*time.Microsecond), append(s.back, time.Duration(back[i]-at[0])*time.Microsecond)
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

// backIn is when that share of the streams was back; 0 where it was never.
func (s *stormStage) backIn(share float64) time.Duration {
	rank := int(math.Ceil(share * float64(s.dropped)))
	if rank == 0 || rank > len(s.back) {
		return 0
	}
	return s.back[rank-1]
}

// after is backIn as text.
func (s *stormStage) after(share float64) string {
	if d := s.backIn(share); d > 0 {
		return format.Duration(d)
	}
	return "–"
}

// rate returns the connects per second until 99 % of the streams were back; 0 if fewer came back.
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
	return fmt.Sprintf("%s of %s clients were refused and waited before the next attempt, so the rate is a lower bound of what the service admits",
		format.Thousands(s.delayed), format.Thousands(s.dropped))
}

// peak is the most streams that came back within a second.
func (s *stormStage) peak() (most int) {
	first := 0
	for i, at := range s.back {
		for s.back[first] <= at-time.Second {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

func (s *stormStage) refusals() (n int) {
	for _, count := range s.refused {
		n += count
	}
	return n
}

// beforeRefusal says how much the service took before it first refused; "" where it did not.
func (s *stormStage) beforeRefusal() string {
	if s.refusals() == 0 {
		return ""
	}
	n, _ := slices.BinarySearch(s.back, s.first)
	var why []string
	for _, reason := range slices.Sorted(maps.Keys(s.refused)) {
		why = append(why, fmt.Sprintf("%s × %s", format.Thousands(s.refused[reason]), reason))
	}
	return fmt.Sprintf("refused: %s, the first after %s and %s", strings.Join(why, ", "), format.Duration(s.first), format.Count(n, "connect"))
}

// String sums the storm up.
func (s *stormStage) String() string {
	out := []string{fmt.Sprintf("%s streams dropped", format.Thousands(s.dropped))}
	if s.rate() > 0 {
		out = append(out, fmt.Sprintf("99 %% back after %s: %s connects/s, at most %s in a second", s.after(.99), s.rateText(), format.Thousands(s.peak())))
	}
	if text := s.backoff(); text != "" {
		out = append(out, text)
	}
	if text := s.beforeRefusal(); text != "" {
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

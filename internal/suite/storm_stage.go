package suite

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A stormStage is one storm: streams are dropped at the same time, and reconnect.
type stormStage struct {
	shard.Stage
	dropped       int             // streams
	dropGap       time.Duration   // time from the first drop until 99 % were dropped
	runnerDropGap time.Duration   // the longest such time of one runner
	reconnects    []time.Duration // times of the reconnects since the first drop, sorted
	lost          int             // clients whose stream broke, bystanders included (see isStreamLoss)
	refused       map[string]int  // refused attempts, by reason
	local         int             // streams that did not reconnect in time, because the generator lacked a port, descriptor or IPv6 address
	delayed       int             // streams with a refused attempt, after which clients wait longer before each attempt
	firstRefusal  time.Duration   // time of the first refused attempt since the first drop; 0 if no attempt was refused
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
		since := int64(0) // the first storm also counts the losses before it
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

// clockTolerance is the maximum time by which a drop in a ledger may precede its sample, which is taken after the drop.
const clockTolerance = 100_000 // µs

// readLedgers counts the streams that the script dropped between from and to, with their refused attempts. It also
// counts the streams that were lost between since and to. Times are in microseconds since 1970. A storm drops a stream
// once, so the service caused any further planned end, which does not count.
func (s *stormStage) readLedgers(r *Run, streams *verdict.Streams, since, from, to int64) {
	m := r.Rounds[0]
	var drops, reconnects, refusals, local []int64
	byRunner := map[int][]int64{} // drops
	s.refused = map[string]int{}
	for _, c := range streams.Records() {
		runner, dropped := &m.Runners[c.Runner], false
		n, _ := m.Plan.Number(c.ID)
		bystander, lost := r.isSelected(n), false
		for _, o := range c.Outages {
			switch lostAt := runner.At(o.From).UnixMicro(); {
			case lostAt >= to-clockTolerance || lostAt < since-clockTolerance:
			case !o.Planned:
				lost = lost || r.isStreamLoss(o)
			case !bystander && !dropped && lostAt >= from-clockTolerance:
				dropped = true
				drops, reconnects = append(drops, lostAt), append(reconnects, runner.At(o.To).UnixMicro())
				byRunner[c.Runner] = append(byRunner[c.Runner], lostAt)
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

// reconnectTime returns the time from the first drop until a share of the streams had reconnected, or 0 if fewer did.
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

// rate returns the connects per second until 99 % of the streams had reconnected, or 0 if fewer did.
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

// backoffText states why the rate is a lower bound, or returns "" if waits of the clients did not limit the rate.
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

// refusalText states the refusals, and the number of connects before the first one. It returns "" if the service
// refused no attempt.
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
		out = append(out, sentence("99 %% reconnected within %s (on average %s connects/s); at most %v streams reconnected within one second", s.reconnectText(.99), s.rateText(), s.peak()))
	}
	for _, text := range []string{s.backoffText(), s.refusalText()} {
		if text != "" {
			out = append(out, text)
		}
	}
	return strings.Join(out, "; ")
}

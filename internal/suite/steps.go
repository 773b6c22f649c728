package suite

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/clamp"
	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A step is some connections that were held for a while, and what went wrong meanwhile: each fault
// counts against the step in which it was due, not against the one in which it was noticed.
type step struct {
	shard.Stage
	from, to                       time.Time
	refused, dropped, missed, late int64
	wrong                          int64 // noops that came twice, out of order or damaged: no load explains them
	idle                           int64 // of those dropped: this side gave up, because nothing came
	connect                        shard.Metric
	lateness                       *shard.Histogram
	machine                        Machine
	tolerance                      time.Duration // LATE_MS: what counts as late is later than this
}

// try says how a step was sustained. Lateness may be the generator's own, and so may silence on
// which it gave up; a refusal, a cut or a loss while a stream is held is not.
func (s step) try() Tried {
	var why []string
	for _, f := range []struct {
		n    int64
		what string
	}{{s.refused, "connects failed"}, {s.dropped, "streams dropped"}, {s.missed, "noops missed"}, {s.late, "noops late"}, {s.wrong, "noops doubled, overtaken or damaged"}} {
		if f.n > 0 {
			why = append(why, format.Thousands(f.n)+" "+f.what)
		}
	}
	switch {
	case len(why) == 0:
		return Tried{float64(s.Concurrency), Good, ""}
	case s.refused+s.wrong == 0 && s.dropped == s.idle && (s.missed == 0 || s.idle > 0) && s.explained():
		return Tried{float64(s.Concurrency), ByGenerator, strings.Join(append(why, s.excuse()), "; ")}
	}
	return Tried{float64(s.Concurrency), Bad, strings.Join(why, ", ")}
}

// leastSilence is the shortest silence after which a client of a suite drops its stream as idle.
const leastSilence = 10 * time.Second

// explained says that the generator's own waits are long enough to explain the late noops and idle streams.
func (s step) explained() bool {
	late := s.tolerance
	if s.lateness != nil {
		late = max(late, s.lateness.Max())
	}
	if s.idle > 0 {
		late = max(late, leastSilence)
	}
	return s.machine.Explains(late) || s.machine.crowded(late, false) != ""
}

// excuse says what of the generator explains a step.
func (s step) excuse() string {
	if s.machine.Dropped > 0 {
		return s.machine.dropped()
	}
	return fmt.Sprintf("a runner waited up to %s to run", ms(1000*s.machine.Wait.Seconds()))
}

// steps are those that were begun, in order, with the faults that the ledgers count against each.
func (r *Run) steps(streams *verdict.Streams) (out []step) {
	m := r.Rounds[0]
	open, connect := sumsByStage(m, "capacity_streams"), sumsByStage(m, "capacity_connect")
	for _, st := range stagesOf(m) {
		seen, ok := open[st.Name]
		if !ok {
			continue
		}
		s := step{Stage: st, from: time.UnixMicro(seen.FirstUS), to: time.UnixMicro(seen.LastUS), connect: connect[st.Name]}
		s.lateness = lateness(m, s.from, s.to)
		s.machine, s.tolerance = r.machine(m, s.from, s.to), time.Duration(m.Plan.LateMS)*time.Millisecond
		out = append(out, s)
	}
	if len(out) == 0 {
		return nil
	}
	for c := range streams.Records() {
		if n, ok := m.Plan.Number(c.ID); ok {
			charge(out, n, c, &m.Runners[c.Runner], m.Plan.Interval())
		}
	}
	return out
}

// charge counts the faults of the nth stream against their steps.
func charge(steps []step, n int, c *shard.Connection, runner *shard.Runner, interval time.Duration) {
	own := opener(steps, n)
	if c.Streams == 0 || runner.At(c.OpenedAt).After(own.to) {
		own.refused++ // an answer that takes longer than the step is none
	}
	switch {
	case c.State != ledger.Dropped:
	case c.Reason == "idle":
		s := underWay(steps, own, runner.At(c.LastAt+interval))
		s.dropped++
		s.idle++
	default:
		underWay(steps, own, runner.At(c.ClosedAt)).dropped++
	}
	// A record lists only the first findings. Those beyond the list were found later than all listed ones.
	missed, late, wrong := clamp.Int64(c.Missed()), clamp.Int64(c.Late), clamp.Int64(c.Faults())
	lastMissed, lastLate, lastWrong := own, own, own
	for _, f := range c.Findings {
		switch f.Kind {
		case ledger.KindLate:
			lastLate = underWay(steps, own, runner.At(f.At-f.Lateness))
			lastLate.late++
			late--
		case ledger.KindDuplicated, ledger.KindReordered, ledger.KindCorrupted:
			lastWrong = underWay(steps, own, runner.At(f.At))
			lastWrong.wrong++
			wrong--
		case ledger.KindLost, ledger.KindUnsent, ledger.KindTail:
			for due, left := firstDue(c, f, interval), f.Count; left > 0 && missed > 0; due += interval {
				k := uint64(1)
				if due > f.At {
					k = left // no instant is known of these
				}
				lastMissed = underWay(steps, own, runner.At(due))
				lastMissed.missed += min(int64(k), missed)
				missed -= min(int64(k), missed)
				left -= k
			}
		}
	}
	lastMissed.missed += missed
	lastLate.late += max(late, 0)
	lastWrong.wrong += max(wrong, 0)
}

// firstDue is when the first of the noops of a finding was due. The others follow at intervals.
func firstDue(c *shard.Connection, f ledger.Finding, interval time.Duration) ledger.Instant {
	if f.Kind == ledger.KindTail || f.Kind == ledger.KindLost && f.From > c.Last {
		return c.LastAt + interval // nothing came after them
	}
	// A noop came at f.At, and they were due before it.
	most := clamp.Uint64(int64((f.At-c.OpenedAt)/interval)) + 1
	return max(f.At-time.Duration(min(f.Count, most, math.MaxInt32))*interval, c.OpenedAt)
}

// opener is the step that opened the nth stream.
func opener(steps []step, n int) *step {
	for i := range steps {
		if n < steps[i].Concurrency {
			return &steps[i]
		}
	}
	return &steps[len(steps)-1]
}

// underWay is the last step that had begun at an instant, for a stream that the step first opened.
func underWay(steps []step, first *step, at time.Time) *step {
	out := first
	for i := range steps {
		if s := &steps[i]; s.Concurrency > first.Concurrency && !s.from.After(at) {
			out = s
		}
	}
	return out
}

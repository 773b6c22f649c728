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

// A step is a number of open streams for a while, and their faults. A fault counts against the step in which it was due, not against
// the one in which it was found.
type step struct {
	shard.Stage
	from, to                       time.Time
	refused, dropped, missed, late int64
	faults                         int64 // duplicated, reordered or corrupted noops: no load explains them
	idle                           int64 // of those dropped: the client gave up after silence
	connect                        shard.Metric
	lateness                       *shard.Histogram
	machine                        Machine
	tolerance                      time.Duration // LATE_MS: a later noop counts as late
}

// trial returns how a step was sustained. The generator may explain lateness, and silence after which it gave up, but not a
// refusal, a disconnect or a loss on an open stream.
func (s step) trial() Trial {
	var reason []string
	for _, f := range []struct {
		n     int64
		phase string
	}{{s.refused, "connects failed"}, {s.dropped, "streams dropped"}, {s.missed, "noops missed"}, {s.late, "noops late"}, {s.faults, "noops doubled, overtaken or damaged"}} {
		if f.n > 0 {
			reason = append(reason, format.Thousands(f.n)+" "+f.phase)
		}
	}
	switch {
	case len(reason) == 0:
		return Trial{float64(s.Concurrency), Good, ""}
	case s.refused+s.faults == 0 && s.dropped == s.idle && (s.missed == 0 || s.idle > 0) && s.hasExplanation():
		return Trial{float64(s.Concurrency), ByGenerator, strings.Join(append(reason, s.generatorDelay()), "; ")}
	}
	return Trial{float64(s.Concurrency), Bad, strings.Join(reason, ", ")}
}

// minSilence is the shortest silence after which a client drops its stream as idle.
const minSilence = 10 * time.Second

// hasExplanation reports whether the generator's own waits are long enough to explain late noops and idle streams.
func (s step) hasExplanation() bool {
	late := s.tolerance
	if s.lateness != nil {
		late = max(late, s.lateness.Max())
	}
	if s.idle > 0 {
		late = max(late, minSilence)
	}
	return s.machine.Explains(late) || s.machine.machineLimit(late, false) != ""
}

// generatorDelay states the delay of the generator that explains a step.
func (s step) generatorDelay() string {
	if s.machine.Dropped > 0 {
		return s.machine.dropText()
	}
	return fmt.Sprintf("a runner waited up to %s to run", ms(1000*s.machine.Wait.Seconds()))
}

// steps returns the steps that were started, in order, with their faults by the ledgers.
func (r *Run) steps(streams *verdict.Streams) (out []step) {
	m := r.Rounds[0]
	open, connect := sumsByStage(m, "capacity_streams"), sumsByStage(m, "capacity_connect")
	for _, st := range stagesOf(m) {
		isOpen, ok := open[st.Name]
		if !ok {
			continue
		}
		s := step{Stage: st, from: time.UnixMicro(isOpen.FirstUS), to: time.UnixMicro(isOpen.LastUS), connect: connect[st.Name]}
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

// charge adds the faults of the nth stream to their steps.
func charge(steps []step, n int, c *shard.Connection, runner *shard.Runner, interval time.Duration) {
	opening := opener(steps, n)
	if c.Streams == 0 || runner.At(c.OpenedAt).After(opening.to) {
		opening.refused++ // a response slower than the step counts as none
	}
	switch {
	case c.State != ledger.Dropped:
	case c.Reason == "idle":
		s := underWay(steps, opening, runner.At(c.LastAt+interval))
		s.dropped++
		s.idle++
	default:
		underWay(steps, opening, runner.At(c.ClosedAt)).dropped++
	}
	// A record lists only the first findings. Those beyond the list were found later than all listed ones.
	missed, late, faults := clamp.Int64(c.Missed()), clamp.Int64(c.Late), clamp.Int64(c.Faults())
	lastMissed, lastLate, lastWrong := opening, opening, opening
	for _, f := range c.Findings {
		switch f.Kind {
		case ledger.KindLate:
			lastLate = underWay(steps, opening, runner.At(f.At-f.Lateness))
			lastLate.late++
			late--
		case ledger.KindDuplicated, ledger.KindReordered, ledger.KindCorrupted:
			lastWrong = underWay(steps, opening, runner.At(f.At))
			lastWrong.faults++
			faults--
		case ledger.KindLost, ledger.KindUnsent, ledger.KindTail:
			for due, left := firstDue(c, f, interval), f.Count; left > 0 && missed > 0; due += interval {
				k := uint64(1)
				if due > f.At {
					k = left // their instants are not known
				}
				lastMissed = underWay(steps, opening, runner.At(due))
				lastMissed.missed += min(int64(k), missed)
				missed -= min(int64(k), missed)
				left -= k
			}
		}
	}
	lastMissed.missed += missed
	lastLate.late += max(late, 0)
	lastWrong.faults += max(faults, 0)
}

// firstDue returns when the first noop of a finding was due. The others follow at intervals.
func firstDue(c *shard.Connection, f ledger.Finding, interval time.Duration) ledger.Instant {
	if f.Kind == ledger.KindTail || f.Kind == ledger.KindLost && f.From > c.Last {
		return c.LastAt + interval // they are the last ones
	}
	// They were due before the noop that arrived at f.At.
	most := clamp.Uint64(int64((f.At-c.OpenedAt)/interval)) + 1
	return max(f.At-time.Duration(min(f.Count, most, math.MaxInt32))*interval, c.OpenedAt)
}

// opener returns the step that opened the nth stream.
func opener(steps []step, n int) *step {
	for i := range steps {
		if n < steps[i].Concurrency {
			return &steps[i]
		}
	}
	return &steps[len(steps)-1]
}

// underWay returns the last step that had started at an instant, for a stream that the step first opened.
func underWay(steps []step, first *step, at time.Time) *step {
	out := first
	for i := range steps {
		if s := &steps[i]; s.Concurrency > first.Concurrency && !s.from.After(at) {
			out = s
		}
	}
	return out
}

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

// A step is a part of a run that adds streams, and the faults of all open streams in that part. A missed or late
// message counts for the step in which it was due, not for the step in which the fault was detected.
type step struct {
	shard.Stage
	from, to                       time.Time
	refused, dropped, missed, late int64
	faults                         int64 // duplicated, reordered or corrupted messages, which no load explains
	local                          int64 // the part of refused for which the generator had no port, descriptor or IPv6 address
	idle                           int64 // the part of dropped that the clients closed as idle
	connect                        shard.Metric
	lateness                       *shard.Histogram
	machine                        Machine
	tolerance                      time.Duration // LATE_MS
}

// trial returns the step as a trial. Delays of the generator may explain late messages and idle streams, and missed
// messages if streams were idle. They do not explain a refusal, any other disconnect, or a loss on an open stream.
func (s step) trial() Trial {
	var reason []string
	for _, fault := range []struct {
		n           int64
		noun, state string
	}{{s.refused, "connect", "failed"}, {s.dropped, "stream", "dropped"}, {s.missed, "noop", "missed"}, {s.late, "noop", "late"}, {s.faults, "noop", "duplicated, reordered or corrupted"}} {
		if fault.n > 0 {
			reason = append(reason, format.Count(fault.n, fault.noun)+" "+fault.state)
		}
	}
	switch {
	case len(reason) == 0:
		return Trial{float64(s.Concurrency), Good, ""}
	case s.refused == s.local && s.dropped+s.missed+s.late+s.faults == 0:
		return Trial{float64(s.Concurrency), ByGenerator, strings.Join(append(reason, "the load generator had "+lackedResources), "; ")}
	case s.refused+s.faults == 0 && s.dropped == s.idle && (s.missed == 0 || s.idle > 0) && s.hasExplanation():
		return Trial{float64(s.Concurrency), ByGenerator, strings.Join(append(reason, s.generatorDelay()), "; ")}
	}
	return Trial{float64(s.Concurrency), Bad, strings.Join(reason, ", ")}
}

// minSilence is the minimum silence after which a client closes its stream as idle.
const minSilence = 10 * time.Second

// hasExplanation reports whether waits of the generator are long enough to explain late messages and idle streams. It
// also returns true if the machine may have delayed the service.
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

func (s step) generatorDelay() string {
	if s.machine.PacketsDropped > 0 {
		return s.machine.dropText()
	}
	return fmt.Sprintf("a runner waited up to %s for a CPU", ms(1000*s.machine.Wait.Seconds()))
}

// steps returns the steps that were started, in order, with their faults according to the ledgers.
func (r *Run) steps(streams *verdict.Streams) (out []step) {
	m := r.Rounds[0]
	open, connect := sumsByStage(m, "capacity_streams"), sumsByStage(m, "capacity_connect") // by step
	for _, st := range stagesOf(m) {
		streams, ok := open[st.Name]
		if !ok {
			continue
		}
		s := step{Stage: st, from: time.UnixMicro(streams.FirstUS), to: time.UnixMicro(streams.LastUS), connect: connect[st.Name]}
		s.lateness = lateness(m, s.from, s.to)
		s.machine, s.tolerance = r.machine(m, s.from, s.to), time.Duration(m.Plan.LateMS)*time.Millisecond
		out = append(out, s)
	}
	if len(out) == 0 {
		return nil
	}
	for _, c := range streams.Records() {
		if n, ok := m.Plan.Number(c.ID); ok {
			addFaults(out, n, c, &m.Runners[c.Runner], m.Plan.Interval())
		}
	}
	return out
}

// addFaults adds the faults of stream n, from 0, to the steps to which they belong.
func addFaults(steps []step, n int, c *shard.Connection, runner *shard.Runner, interval time.Duration) {
	opening := openingStep(steps, n)
	if c.Streams == 0 || runner.At(c.OpenedAt).After(opening.to) {
		opening.refused++ // a stream that never opened, or opened only after the end of the step
		if ledger.AreLocal(c.Refusals) {
			opening.local++
		}
	}
	switch {
	case c.State != ledger.Dropped:
	case c.Reason == "idle":
		s := stepAt(steps, opening, runner.At(c.LastAt+interval))
		s.dropped++
		s.idle++
	default:
		stepAt(steps, opening, runner.At(c.ClosedAt)).dropped++
	}
	// A record lists only the first findings. Unlisted ones were detected later, and count for the step of the last
	// listed finding of their kind, or for the opening step.
	missed, late, faults := clamp.Int64(c.Missed()), clamp.Int64(c.Late), clamp.Int64(c.Faults())
	lastMissed, lastLate, lastWrong := opening, opening, opening
	for _, f := range c.Findings {
		switch f.Kind {
		case ledger.KindLate:
			lastLate = stepAt(steps, opening, runner.At(f.At-f.Lateness))
			lastLate.late++
			late--
		case ledger.KindDuplicated, ledger.KindReordered, ledger.KindCorrupted:
			lastWrong = stepAt(steps, opening, runner.At(f.At))
			lastWrong.faults++
			faults--
		case ledger.KindLost, ledger.KindUnsent, ledger.KindTail:
			for due, remaining := firstDue(c, f, interval), f.Count; remaining > 0 && missed > 0; due += interval {
				n := uint64(1)
				if due > f.At {
					n = remaining // the times of the rest are unknown
				}
				lastMissed = stepAt(steps, opening, runner.At(due))
				lastMissed.missed += min(int64(n), missed)
				missed -= min(int64(n), missed)
				remaining -= n
			}
		}
	}
	lastMissed.missed += missed
	lastLate.late += max(late, 0)
	lastWrong.faults += max(faults, 0)
}

// firstDue returns when the first message of a finding was due. The other messages follow, one per interval.
func firstDue(c *shard.Connection, f ledger.Finding, interval time.Duration) ledger.Instant {
	if f.Kind == ledger.KindTail || f.Kind == ledger.KindLost && f.From > c.Last {
		return c.LastAt + interval // the finding is about the last messages of the stream
	}
	// The messages were due before the one that arrived at f.At.
	limit := clamp.Uint64(int64((f.At-c.OpenedAt)/interval)) + 1
	return max(f.At-time.Duration(min(f.Count, limit, math.MaxInt32))*interval, c.OpenedAt)
}

// openingStep returns the step that opened stream n, from 0.
func openingStep(steps []step, n int) *step {
	for i := range steps {
		if n < steps[i].Concurrency {
			return &steps[i]
		}
	}
	return &steps[len(steps)-1]
}

// stepAt returns the step that was in progress at a time. opening is the step that opened the stream; stepAt returns it
// for an earlier time.
func stepAt(steps []step, opening *step, at time.Time) *step {
	out := opening
	for i := range steps {
		if s := &steps[i]; s.Concurrency > opening.Concurrency && !s.from.After(at) {
			out = s
		}
	}
	return out
}

package verdict

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/host/machine"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// A machineSignals compares the faults of streams with the counters of their runners' machines. Dropped packets
// explain a silence only if it ended soon afterwards: the longest wait of TCP before a retransmission is the time
// that has already passed.
type machineSignals struct {
	explanations
	affected []affectedFaults // by machine
}

// An affectedFaults counts the faults on a machine's streams while one of its counters increased.
type affectedFaults struct {
	refused, dropped, late uint64 // while packets were dropped
	lateBySteal            uint64 // messages that arrived late while the hypervisor used the CPU
}

func (a *affectedFaults) byPackets() bool { return a.refused+a.dropped+a.late > 0 }

func (a *affectedFaults) String() string {
	var out []string
	for _, one := range []struct {
		n                uint64
		singular, plural string
	}{
		{a.refused, "connect timed out", "connects timed out"},
		{a.dropped, "stream went silent", "streams went silent"},
		{a.late, "message arrived late", "messages arrived late"},
	} {
		if one.n > 0 {
			out = append(out, format.Plural(one.n, one.singular, one.plural))
		}
	}
	return strings.Join(out, ", ")
}

// A window is a time in which a counter of a runner's machine moved.
type window struct {
	machine int
	machine.Stretch
	effect machine.Effect
}

// windows returns the windows of each runner. Packets between a runner and a target on one machine pass no network.
func windows(all []MachineReport, runners int) [][]window {
	out := make([][]window, runners)
	for n := range all {
		for _, c := range all[n].Counters {
			effect := effectOf(c.Name)
			if effect != machine.Delays && (effect != machine.Silences || all[n].Target) {
				continue
			}
			for _, at := range all[n].runners {
				for _, moved := range c.increases {
					out[at] = append(out[at], window{n, moved, effect})
				}
			}
		}
	}
	return out
}

// DroppedByAWS returns how many packets AWS dropped of the runners' machines between two instants. Slowness and timeouts in that time
// cannot be attributed to the service.
func DroppedByAWS(e *Evidence, from, to time.Time) (packets float64) {
	packets, _ = e.increase(from, to, func(m *MachineReport) bool { return len(m.runners) > 0 && !m.Target }, func(c machine.Counter) bool { return c.Effect == machine.Silences })
	return packets
}

// OnTarget returns by how much some counters of the target's machines grew between two instants.
func OnTarget(e *Evidence, from, to time.Time, match func(machine.Counter) bool) (increase float64, known bool) {
	return e.increase(from, to, func(m *MachineReport) bool { return m.Target }, match)
}

// increase returns by how much some counters of some machines grew between two instants. ok is false if none of these
// machines has such a counter.
func (e *Evidence) increase(from, to time.Time, selects func(*MachineReport) bool, match func(machine.Counter) bool) (sum float64, known bool) {
	for _, m := range MachinesOf(e) {
		for _, c := range m.Counters {
			if counter, ok := machine.CounterOf(c.Name); !ok || !selects(&m) || !match(counter) {
				continue
			}
			known = true
			for _, moved := range c.increases {
				if moved.From().Before(to) && moved.To().After(from) {
					sum += moved.By
				}
			}
		}
	}
	return sum, known
}

func effectOf(name string) machine.Effect {
	c, _ := machine.CounterOf(name)
	return c.Effect
}

// signalsOf compares the faults of streams with the counters of all machines.
func signalsOf(all []MachineReport, s *Streams) *machineSignals {
	out := &machineSignals{explanations: explanations{}, affected: make([]affectedFaults, len(all))}
	if s == nil {
		return out
	}
	byRunner := windows(all, len(s.m.Runners))
	if !slices.ContainsFunc(byRunner, func(w []window) bool { return len(w) > 0 }) {
		return out
	}
	for r := range s.Records() {
		out.count(&s.m.Runners[r.Runner], r, byRunner[r.Runner])
	}
	return out
}

func (m *machineSignals) count(runner *shard.Runner, r *shard.Connection, all []window) {
	silence := func(from, to ledger.Instant) *window {
		return covers(all, runner.At(from), runner.At(to), machine.Silences)
	}
	for _, f := range r.Findings {
		switch {
		case f.Kind == ledger.KindRefused && r.State == ledger.Refused && f.Note == timedOut:
			took := r.Connect / time.Duration(max(r.RefusedAttempts(), 1)) // of the last attempt
			if w := silence(f.At-took, f.At); w != nil {
				m.add(SignalPackets, unopened, 1)
				m.add(SignalPackets, unheld, 1)
				m.affected[w.machine].refused++
			}
		case f.Kind == ledger.KindDropped && f.Note == idle:
			if w := silence(r.LastAt, f.At); w != nil {
				m.add(SignalPackets, unheld, 1)
				m.add(SignalPackets, unserved, r.Tail)
				m.affected[w.machine].dropped++
			}
		case f.Kind == ledger.KindLate:
			if w := silence(f.At-f.Lateness, f.At); w != nil {
				m.add(SignalPackets, delayed, 1)
				m.affected[w.machine].late++
			} else if w := stealWindow(runner, f, all); w != nil {
				m.add(SignalSteal, delayed, 1)
				m.affected[w.machine].lateBySteal++
			}
		}
	}
}

// stealWindow returns a window in which the hypervisor used the CPU while a message was late; nil if the control
// group, which the same process reads, was on time in the window. A dropped packet delays one stream only, so the
// control group does not show it.
func stealWindow(runner *shard.Runner, f ledger.Finding, all []window) *window {
	from, to := runner.At(f.At-f.Lateness), runner.At(f.At)
	if group := runner.Controlled; decides(group) {
		if delay, _ := delayWithin(group, from, to); !explains(group, delay) {
			return nil
		}
	}
	return covers(all, from, to, machine.Delays)
}

// covers returns a window that covers the start of a silence, or at least half of it.
func covers(all []window, from, to time.Time, effect machine.Effect) *window {
	half := from.Add(to.Sub(from) / 2)
	for i := range all {
		if w := &all[i]; w.effect == effect && !w.From().After(to) && !w.To().Before(half) {
			return w
		}
	}
	return nil
}

// formatStretch formats a stretch, as exact as the samples.
func formatStretch(m machine.Stretch) string {
	return fmt.Sprintf("between %s and %s UTC", m.From().UTC().Format(time.TimeOnly), m.To().UTC().Format(time.TimeOnly))
}

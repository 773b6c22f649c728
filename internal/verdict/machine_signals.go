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

// machineSignals is the comparison of the faults of streams with the counters of their runners' machines. Dropped
// packets explain a silence only if some were dropped in its second half. After the last drop, TCP waits for the next
// retransmission at most as long as the silence has lasted.
type machineSignals struct {
	explanations
	byMachine []concurrentFaults
}

// concurrentFaults counts the faults on a machine's streams while one of its counters increased.
type concurrentFaults struct {
	refused, dropped, late uint64 // while packets were dropped
	lateBySteal            uint64 // late messages while the hypervisor used the CPU
}

func (a *concurrentFaults) byPackets() bool { return a.refused+a.dropped+a.late > 0 }

// String lists the faults that streams had while packets were dropped, with their numbers.
func (a *concurrentFaults) String() string {
	var out []string
	for _, fault := range []struct {
		n                uint64
		singular, plural string
	}{
		{a.refused, "connect timed out", "connects timed out"},
		{a.dropped, "stream went silent", "streams went silent"},
		{a.late, "message arrived late", "messages arrived late"},
	} {
		if fault.n > 0 {
			out = append(out, format.Plural(fault.n, fault.singular, fault.plural))
		}
	}
	return strings.Join(out, ", ")
}

// A counterIncrease is a time in which a counter of a runner's machine increased.
type counterIncrease struct {
	machine int
	machine.Stretch
	effect machine.Effect
}

// increasesByRunner returns the increases of the counters of each runner. It ignores dropped packets of a machine with
// both runner and target, because packets between these do not cross a network.
func increasesByRunner(all []MachineReport, runners int) [][]counterIncrease {
	out := make([][]counterIncrease, runners)
	for n := range all {
		for _, c := range all[n].Counters {
			effect := c.kind.Effect
			if effect != machine.Delays && (effect != machine.Silences || all[n].Target) {
				continue
			}
			for _, runner := range all[n].runners {
				for _, increase := range c.increases {
					out[runner] = append(out[runner], counterIncrease{n, increase, effect})
				}
			}
		}
	}
	return out
}

// DroppedByAWS returns how many packets of the runners' machines AWS dropped between two times. It ignores a machine
// that also has the target. Slowness and timeouts between these times cannot be attributed to the service.
func DroppedByAWS(e *Evidence, from, to time.Time) (packets float64) {
	hasRunners := func(m *MachineReport) bool { return len(m.runners) > 0 && !m.Target }
	packets, _ = e.increase(from, to, hasRunners, func(c machine.Counter) bool { return c.Effect == machine.Silences })
	return packets
}

// IncreaseOnTarget returns by how much the matching counters of the target's machines increased between two times.
// known is false if these machines have no such counter.
func IncreaseOnTarget(e *Evidence, from, to time.Time, match func(machine.Counter) bool) (increase float64, known bool) {
	return e.increase(from, to, func(m *MachineReport) bool { return m.Target }, match)
}

// increase returns by how much the matching counters of the matching machines increased between two times. An increase
// between two samples counts in full, even if only a part of the time between the samples is in this period. known
// reports whether such a counter exists.
func (e *Evidence) increase(from, to time.Time, matchMachine func(*MachineReport) bool, match func(machine.Counter) bool) (sum float64, known bool) {
	for _, m := range MachinesOf(e) {
		for _, c := range m.Counters {
			if !matchMachine(&m) || !match(c.kind) {
				continue
			}
			known = true
			for _, increase := range c.increases {
				if increase.From().Before(to) && increase.To().After(from) {
					sum += increase.Increase
				}
			}
		}
	}
	return sum, known
}

func signalsOf(all []MachineReport, s *Streams) *machineSignals {
	out := &machineSignals{explanations: explanations{}, byMachine: make([]concurrentFaults, len(all))}
	if s == nil {
		return out
	}
	out.countLocalRefusals(s)
	byRunner := increasesByRunner(all, len(s.m.Runners))
	if !slices.ContainsFunc(byRunner, func(w []counterIncrease) bool { return len(w) > 0 }) {
		return out
	}
	for _, r := range s.Records() {
		out.count(&s.m.Runners[r.Runner], r, byRunner[r.Runner])
	}
	return out
}

// countLocalRefusals counts the clients that could not connect, or reconnect in time, for lack of a local port,
// descriptor or IPv6 address. It also counts the messages that these clients missed in such outages.
func (m *machineSignals) countLocalRefusals(s *Streams) {
	for _, r := range s.Records() {
		missed := s.missedInLocalOutages(r)
		m.add(SignalGenerator, missedMessage, missed)
		switch o := r.LastOutage; {
		case r.State == ledger.Refused && r.Streams == 0 && ledger.AreLocal(r.Refusals):
			m.add(SignalGenerator, connectTimeout, 1)
			m.add(SignalGenerator, earlyEnd, 1)
		case r.State == ledger.Dropped && o != nil && ledger.AreLocal(o.Refusals):
			m.add(SignalGenerator, earlyEnd, 1)
		case missed == 0 || missed < r.Missed():
			continue
		}
		m.add(SignalGenerator, failedCheck, 1)
	}
}

// missedInLocalOutages returns the number of messages that a client missed in outages that a lack of local ports,
// descriptors or IPv6 addresses prolonged. A longer outage can lose messages, because a service keeps them only for a
// limited time.
func (s *Streams) missedInLocalOutages(r *shard.Connection) (n uint64) {
	for _, f := range r.Findings {
		if f.Kind != ledger.KindLost && f.Kind != ledger.KindUnsent {
			continue
		}
		if slices.ContainsFunc(r.Outages, func(o ledger.Outage) bool {
			noticed := o.To
			if s.m.Service.HasInterval() { // a loss is noticed at the first noop after the outage
				noticed += s.m.Plan.Interval()*3/2 + s.m.Plan.LateLimit()
			}
			return ledger.AreLocal(o.Refusals) && o.From <= f.At && f.At <= noticed
		}) {
			n += f.Count
		}
	}
	return n
}

// count adds the findings of one client to the faults that the increases of its runner's counters explain.
func (m *machineSignals) count(runner *shard.Runner, r *shard.Connection, all []counterIncrease) {
	silence := func(from, to ledger.Instant) *counterIncrease {
		return overlappingIncrease(all, runner.At(from), runner.At(to), machine.Silences)
	}
	for _, f := range r.Findings {
		switch {
		case f.Kind == ledger.KindRefused && r.State == ledger.Refused && f.Note == causeTimeout:
			average := r.Connect / time.Duration(max(r.RefusedAttempts(), 1)) // duration of an attempt
			if w := silence(f.At-average, f.At); w != nil {
				m.add(SignalPackets, connectTimeout, 1)
				m.add(SignalPackets, earlyEnd, 1)
				m.add(SignalPackets, failedCheck, 1)
				m.byMachine[w.machine].refused++
			}
		case f.Kind == ledger.KindDropped && f.Note == causeIdle:
			if w := silence(r.LastAt, f.At); w != nil {
				m.add(SignalPackets, earlyEnd, 1)
				m.add(SignalPackets, failedCheck, 1)
				m.add(SignalPackets, missedMessage, r.Tail)
				m.byMachine[w.machine].dropped++
			}
		case f.Kind == ledger.KindLate:
			if w := silence(f.At-f.Lateness, f.At); w != nil {
				m.add(SignalPackets, lateMessage, 1)
				m.byMachine[w.machine].late++
			} else if w := stealIncrease(runner, f, all); w != nil {
				m.add(SignalSteal, lateMessage, 1)
				m.byMachine[w.machine].lateBySteal++
			}
		}
	}
}

// stealIncrease returns a time in which the hypervisor used the CPU while a message was late. It returns nil if the
// control group, which the same process reads, was on time. The control group cannot disprove dropped packets, because
// these delay single streams.
func stealIncrease(runner *shard.Runner, f ledger.Finding, all []counterIncrease) *counterIncrease {
	from, to := runner.At(f.At-f.Lateness), runner.At(f.At)
	if group := runner.ControlGroup; decides(group) {
		if delay, _ := delayWithin(group, from, to); !explains(group, delay) {
			return nil
		}
	}
	return overlappingIncrease(all, from, to, machine.Delays)
}

// overlappingIncrease returns the first increase with the given effect in the second half of a period, or nil.
func overlappingIncrease(all []counterIncrease, from, to time.Time, effect machine.Effect) *counterIncrease {
	middle := from.Add(to.Sub(from) / 2)
	for i := range all {
		if w := &all[i]; w.effect == effect && !w.From().After(to) && !w.To().Before(middle) {
			return w
		}
	}
	return nil
}

// formatStretch formats a stretch to the second, which is the precision of samples.
func formatStretch(m machine.Stretch) string {
	return fmt.Sprintf("between %s and %s UTC", format.Clock(format.Unix(m.From())), format.Clock(format.Unix(m.To())))
}

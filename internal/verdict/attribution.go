package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// A Signal is a measurement that may explain faults by a cause outside of the service.
type Signal string

// The signals and their thresholds.
const (
	// SignalControl means that the control group was late at the same time. Its delay was over half of LATE_MS, and at
	// least the delay that causes the fault.
	SignalControl Signal = "control-group"
	// SignalStall means that there was no conclusive control group, and that a runner woke up late at some time during
	// the run. Its delay was over half of LATE_MS, or at least the delay that causes the fault.
	SignalStall Signal = "stall"
	// SignalPackets means that AWS dropped or held back packets of the runner's machine in the second half of the silence or
	// delay.
	SignalPackets Signal = "dropped-packets"
	// SignalSteal means that the hypervisor used the CPU of the runner's machine in the second half of the delay. A
	// conclusive control group, if there was one, was late too.
	SignalSteal Signal = "steal"
	// SignalGenerator means one of two things: a suite measured a delay of the load generator that may explain the unmet
	// check, or the generator had no port, descriptor or IPv6 address for a connection.
	SignalGenerator Signal = "generator"
)

// A faultKind is a kind of fault that a signal may explain.
type faultKind int

const (
	noFault        faultKind = iota
	connectTimeout           // a connect that timed out, or for which the generator had no port, descriptor or IPv6 address
	earlyEnd                 // a connectTimeout, or a stream that became silent
	failedCheck              // a client that failed a check of the script
	missedMessage            // a message that was expected on a silent stream, or during an outage
	lateMessage              // a message that arrived late
	longOutage               // an outage or a silence over its limit, or a connected time under its limit
	overdueStream            // a stream that was open for longer than its lifetime
	faultKinds
)

// faults is the number of faults of one kind that make a check fail.
type faults struct {
	kind faultKind
	n    uint64
}

// rules states which faults each signal may explain. No signal explains a refusal, a reset or a wrong message, because
// the service sent these. No signal explains a numbered message that is missing on a stream that continued, because TCP
// loses no data.
var rules = []struct {
	signal   Signal
	explains []faultKind
}{
	// The control group explains earlyEnd and missedMessage only if messages are counted by interval.
	{SignalControl, []faultKind{lateMessage, earlyEnd, missedMessage, longOutage, overdueStream}},
	{SignalStall, []faultKind{lateMessage, longOutage, overdueStream}},
	{SignalPackets, []faultKind{connectTimeout, earlyEnd, failedCheck, missedMessage, lateMessage}},
	{SignalSteal, []faultKind{lateMessage}},
	{SignalGenerator, []faultKind{connectTimeout, earlyEnd, failedCheck, missedMessage, longOutage}}, // only attempts that never reached the service
}

// explanations counts the faults that each signal explains.
type explanations map[Signal]*[faultKinds]uint64

// add counts faults if a rule permits the signal to explain them.
func (e explanations) add(signal Signal, kind faultKind, n uint64) {
	for _, rule := range rules {
		if rule.signal != signal || !slices.Contains(rule.explains, kind) {
			continue
		}
		if e[signal] == nil {
			e[signal] = new([faultKinds]uint64)
		}
		e[signal][kind] += n
	}
}

// attribute returns the check as inconclusive if the signals explain all of its faults.
func (e explanations) attribute(c Check) Check {
	if c.Pass || c.Severity == SeverityWarning || c.Unjudged || c.faults.kind == noFault || c.faults.n == 0 {
		return c
	}
	var explained, highest uint64
	var best Signal
	for _, rule := range rules {
		if counts := e[rule.signal]; counts != nil {
			n := counts[c.faults.kind]
			if explained += n; n > highest {
				best, highest = rule.signal, n
			}
		}
	}
	if explained < c.faults.n {
		return c
	}
	c.ExplainedBy = best
	return c.AsDoubt()
}

// attribute returns the check as inconclusive if the control group explains its faults. Without a conclusive control
// group, the stalls of the runners may explain late messages and overdue streams. kinds are the kinds of findings of a
// check that depends on the interval.
func (s *Streams) attribute(c Check, kinds ...ledger.Kind) Check {
	e := explanations{}
	switch c.faults.kind {
	case lateMessage:
		e.add(s.Control.signal(), lateMessage, s.lateByGenerator())
	case earlyEnd, missedMessage:
		if c.weight == byClock && !c.Pass && s.isControlLateAt(kinds) {
			e.add(SignalControl, c.faults.kind, c.faults.n)
			c.Reasons = []string{fmt.Sprintf("%s: %s (limit: %s); the control group was late at the same times, by up to %s, so %s may be the cause",
				c.Name, c.Actual, c.Limit, format.Duration(s.Control.longest), s.Control.suspect())}
		}
	case overdueStream:
		for _, r := range s.Records() {
			for _, f := range r.Findings {
				if delay, signal := s.delayOf(r.Runner, f.At, f.At); f.Kind == ledger.KindOverdue && delay > s.m.Plan.LateLimit()/2 {
					e.add(signal, overdueStream, 1)
				}
			}
		}
	case noFault, connectTimeout, failedCheck, longOutage, faultKinds:
	}
	return e.attribute(c)
}

// lateByGenerator returns the number of late messages that the load generator may have delayed.
func (s *Streams) lateByGenerator() uint64 {
	c, late := s.Control, s.Messages.Late
	if !c.decides() {
		if useOf(s.m).Stall > s.m.Plan.LateLimit()/2 {
			return late
		}
		return 0
	}
	unexplained := c.LateWithoutGroup + c.unexplained
	if rest := late - min(late, c.LateWithGroup+c.LateWithoutGroup+c.LateUnknown); rest > 0 && !s.hasStallWithoutGroup() {
		unexplained += rest // messages of runners without a conclusive control group
	}
	return late - min(late, unexplained)
}

func (s *Streams) hasStallWithoutGroup() bool {
	return slices.ContainsFunc(s.m.Runners, func(r shard.Runner) bool {
		return !decides(r.ControlGroup) && time.Duration(r.StallMaxUS)*time.Microsecond > s.m.Plan.LateLimit()/2
	})
}

// isControlLateAt reports whether findings of the kinds exist, and the control group was late enough to cause each.
func (s *Streams) isControlLateAt(kinds []ledger.Kind) bool {
	if !s.Control.decides() {
		return false
	}
	hasFinding := false
	for _, r := range s.Records() {
		runner := &s.m.Runners[r.Runner]
		for _, f := range r.Findings {
			if !slices.Contains(kinds, f.Kind) {
				continue
			}
			group := runner.ControlGroup
			if hasFinding = true; !listsAll(r, kinds) || !decides(group) {
				return false
			}
			at := runner.At(f.At)
			if delay, _ := delayWithin(group, at.Add(-s.m.Plan.Interval()*3/2), at); !explains(group, delay) || delay < s.minDelay(r, f) {
				return false
			}
		}
	}
	return hasFinding
}

// listsAll reports whether a record certainly lists all of its findings of the given kinds. The list has a limited
// length, and late messages may fill it.
func listsAll(r *shard.Connection, kinds []ledger.Kind) bool {
	if r.Unlisted == 0 || !slices.Contains(kinds, ledger.KindTail) {
		return r.Unlisted == 0
	}
	var missing uint64
	for _, f := range r.Findings {
		switch f.Kind {
		case ledger.KindLost, ledger.KindUnsent, ledger.KindTail:
			missing += f.Count
		default:
		}
	}
	return missing >= r.Lost+r.Unsent+r.Tail
}

// minDelay returns the minimum delay that causes a fault on a stream whose messages were all sent on time.
func (s *Streams) minDelay(r *shard.Connection, f ledger.Finding) time.Duration {
	interval := s.m.Plan.Interval()
	switch slots := float64(min(f.Count, 1<<20)); {
	case f.Kind == ledger.KindDropped:
		interval = cmp.Or(s.m.Service.Heartbeat(), interval)
		return f.At - max(r.LastAt, r.OpenedAt) - interval*3/2
	case f.Kind == ledger.KindUnsent: // a slot remains empty only if its message was over half an interval late
		return time.Duration((slots - .5) * float64(interval))
	case slots > 1: // the last message may have been due immediately before the end
		return time.Duration((slots - 1) * float64(interval))
	}
	return 0
}

// delayOf returns the longest delay that the load generator, or the network to the reference server, may have caused
// for a client between two instants. It also returns the signal that shows this delay. Without a conclusive control
// group, the delay is the longest stall of the runner in the whole run.
func (s *Streams) delayOf(runner int, from, to ledger.Instant) (time.Duration, Signal) {
	r := &s.m.Runners[runner]
	group := r.ControlGroup
	if !decides(group) {
		return time.Duration(r.StallMaxUS) * time.Microsecond, SignalStall
	}
	if delay, _ := delayWithin(group, r.At(from), r.At(to)); explains(group, delay) {
		return delay, SignalControl
	}
	return 0, SignalControl
}

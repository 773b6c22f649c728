package verdict

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/machine"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// A fault is a kind of fault that the machine of a runner may explain.
type fault int

const (
	none     fault = iota
	unopened       // a connect that timed out
	unheld         // that, or a stream on which nothing came any more
	unserved       // what such a stream was still owed
	delayed        // a message that came late
	faultKinds
)

// faults are how many of a kind have to be explained before a check that is not met proves nothing.
type faults struct {
	kind fault
	n    uint64
}

// A harm is what the machines of the runners may have done to the streams there. Only silence is explained by packets
// that were dropped: a refusal, a reset and a wrong message are answers, which somebody gave, and a message that is
// missing on a stream that went on was never sent, as TCP loses nothing. And a silence is explained only if it ended
// soon after: TCP tries again at the latest when as much time has passed again.
type harm struct {
	explained [faultKinds]uint64
	by        []suffered // by machine
}

// suffered is what the streams of a machine's runners suffered in the time in which one of its counters moved.
type suffered struct {
	refused, dropped, late uint64 // when packets were dropped
	stalled                uint64 // messages that came late when the hypervisor took the CPU
}

func (s *suffered) silences() bool { return s.refused+s.dropped+s.late > 0 }

func (s *suffered) String() string {
	var out []string
	for _, one := range []struct {
		n           uint64
		one, others string
	}{
		{s.refused, "connect timed out", "connects timed out"},
		{s.dropped, "stream went silent", "streams went silent"},
		{s.late, "message came late", "messages came late"},
	} {
		if one.n > 0 {
			out = append(out, format.Plural(one.n, one.one, one.others))
		}
	}
	return strings.Join(out, ", ")
}

// a window is a time in which a counter of a runner's machine moved.
type window struct {
	machine int
	machine.Stretch
	effect machine.Effect
}

// windows are those of each runner. What a runner and its target say to each other on one machine passes no network.
func windows(all []Machine, runners int) [][]window {
	out := make([][]window, runners)
	for n := range all {
		for _, c := range all[n].Counters {
			effect := effectOf(c.Name)
			if effect != machine.Delays && (effect != machine.Silences || all[n].Target) {
				continue
			}
			for _, at := range all[n].at {
				for _, moved := range c.moved {
					out[at] = append(out[at], window{n, moved, effect})
				}
			}
		}
	}
	return out
}

// DroppedByAWS is how many packets AWS dropped of the machines of the runners between two instants: what was slow or timed
// out then is not known to be the service's.
func DroppedByAWS(e *Evidence, from, to time.Time) (packets float64) {
	for _, m := range MachinesOf(e) {
		if len(m.at) == 0 || m.Target {
			continue
		}
		for _, c := range m.Counters {
			for _, moved := range c.moved {
				if effectOf(c.Name) == machine.Silences && moved.From().Before(to) && moved.To().After(from) {
					packets += moved.By
				}
			}
		}
	}
	return packets
}

// OnTarget is by how much some counters of the target's machines grew in the stretches that begin and end around two instants;
// not known where none of these machines shows one of them.
func OnTarget(e *Evidence, from, to time.Time, which func(machine.Counter) bool) (grown float64, known bool) {
	for _, m := range MachinesOf(e) {
		for _, c := range m.Counters {
			if of, ok := machine.Of(c.Name); !ok || !m.Target || !which(of) {
				continue
			}
			known = true
			for _, moved := range c.moved {
				if moved.From().Before(to) && moved.To().After(from) {
					grown += moved.By
				}
			}
		}
	}
	return grown, known
}

func effectOf(name string) machine.Effect {
	c, _ := machine.Of(name)
	return c.Effect
}

// harmOf compares what streams suffered with when counters of their runners' machines moved.
func harmOf(all []Machine, s *Streams) *harm {
	h := &harm{by: make([]suffered, len(all))}
	if s == nil {
		return h
	}
	byRunner := windows(all, len(s.m.Runners))
	if !slices.ContainsFunc(byRunner, func(w []window) bool { return len(w) > 0 }) {
		return h
	}
	for r := range s.Records() {
		h.count(&s.m.Runners[r.Runner], r, byRunner[r.Runner])
	}
	return h
}

// Reasons by which a stream or an attempt ends on which nothing came.
const timedOut = "connect_timeout"

func (h *harm) count(runner *shard.Runner, r *shard.Connection, all []window) {
	silence := func(from, to ledger.Instant) *window {
		return covers(all, runner.At(from), runner.At(to), machine.Silences)
	}
	for _, f := range r.Findings {
		switch {
		case f.Kind == ledger.KindRefused && r.State == ledger.Refused && f.Note == timedOut:
			took := r.Connect / time.Duration(max(r.RefusedAttempts(), 1)) // of the last attempt
			if w := silence(f.At-took, f.At); w != nil {
				h.explained[unopened]++
				h.explained[unheld]++
				h.by[w.machine].refused++
			}
		case f.Kind == ledger.KindDropped && f.Note == idle:
			if w := silence(r.LastAt, f.At); w != nil {
				h.explained[unheld]++
				h.explained[unserved] += r.Tail
				h.by[w.machine].dropped++
			}
		case f.Kind == ledger.KindLate:
			if w := silence(f.At-f.Lateness, f.At); w != nil {
				h.explained[delayed]++
				h.by[w.machine].late++
			} else if w := h.stolen(runner, f, all); w != nil {
				h.explained[delayed]++
				h.by[w.machine].stalled++
			}
		}
	}
}

// stolen finds a window in which the hypervisor took the CPU of the machine while a message was late. A control group that was in time meanwhile
// knows better: what is read by the same process was not delayed. Of a dropped packet it knows nothing, which is of one
// stream.
func (h *harm) stolen(runner *shard.Runner, f ledger.Finding, all []window) *window {
	from, to := runner.At(f.At-f.Lateness), runner.At(f.At)
	if group := runner.Controlled; decides(group) {
		if delay, _ := during(group, from, to); !explains(group, delay) {
			return nil
		}
	}
	return covers(all, from, to, machine.Delays)
}

// covers finds a window in which a silence may have begun or gone on, and that lasted for at least half of it.
func covers(all []window, from, to time.Time, effect machine.Effect) *window {
	half := from.Add(to.Sub(from) / 2)
	for i := range all {
		if w := &all[i]; w.effect == effect && !w.From().After(to) && !w.To().Before(half) {
			return w
		}
	}
	return nil
}

// excuse makes a doubt of each check whose faults all are explained.
func (h *harm) excuse(all []Check) {
	for i := range all {
		c := &all[i]
		if c.Pass || c.Severity == SeverityWarning || c.Unjudged || c.faults.kind == none || c.faults.n == 0 || h.explained[c.faults.kind] < c.faults.n {
			continue
		}
		*c = c.InDoubt()
	}
}

// between is when something was, as exact as the samples.
func between(m machine.Stretch) string {
	return fmt.Sprintf("between %s and %s UTC", m.From().UTC().Format(time.TimeOnly), m.To().UTC().Format(time.TimeOnly))
}

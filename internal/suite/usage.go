package suite

import (
	"cmp"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/machine"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/resources"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// Usage is the use of the limited resources of a service and a load generator in a stage. Each group of figures has a field that
// reports whether it is known.
type Usage struct {
	Inside bool // the processes of the target are on this machine and known
	Proxy  bool // nginx among them
	Host   bool // the machine of the target was sampled

	Periods, Throttled float64 // of the target's control groups: with a limit of CPU, and over it
	Procs              float64 // cores that the backends compute on at most; 0: not known
	Files, MaxFiles    float64 // open files of the backends, at most; no MaxFiles: not known
	NginxFull          float64 // share of its descriptors that the fullest process of nginx had open
	Log                resources.NginxLog

	Memory, Available float64 // of the target's machine; the least that was available
	Killed            float64 // processes there, as memory ran out
	Queue             bool    // Overflows is known
	Overflows         float64 // connects that found an accept queue full

	Loopback  bool    // requests crossed no network
	Link      float64 // use of this machine's network cards in the busier direction, 0 to 1; below 0: not known
	Allowance float64 // packets of the target's machine that AWS delayed or dropped
	Allowed   bool    // AWS reports these

	TargetCores, GeneratorCores float64 // of their own, or of their machines; 0: not known

	PerRequest          bool    // the next three are known
	Each, Accepts, Runs float64 // per request: CPU seconds of backend and nginx, connections to nginx, times that a thread was scheduled
}

// usage reads the samples of a stage. Counters are compared between two samples within it.
func (r *Run) usage(m *shard.Merged, from, to time.Time) (t Usage) {
	t.Loopback, t.Link = r.OneHost || plan.OnLoopback(m.Plan.BackendURL), -1
	r.cores(&t, m)
	e := (*verdict.Evidence)(r)
	t.Killed, _ = verdict.OnTarget(e, from, to, func(c machine.Counter) bool { return c.Name == machine.Killed })
	t.Allowance, t.Allowed = verdict.OnTarget(e, from, to, func(c machine.Counter) bool { return c.ByAWS() && c.Effect == machine.Silences })
	for _, s := range r.Samples { // a backend without free descriptors does not report it
		t.MaxFiles = max(t.MaxFiles, float64(s.MaxFiles))
	}
	within := r.within(from, to)
	if len(within) < 2 {
		t.MaxFiles = 0
		return t
	}
	first, last := within[0], within[len(within)-1]
	t.Inside, t.Proxy = last.BackendRuns > 0, last.NginxRuns > 0
	t.Host = t.Loopback || last.OfTarget
	t.Queue = t.Host && last.NetworkKnown
	grown := func(of func(*resources.Sample) float64) float64 { return max(of(&last)-of(&first), 0) }
	t.Periods = grown(func(s *resources.Sample) float64 { return float64(s.Periods) })
	t.Throttled = grown(func(s *resources.Sample) float64 { return float64(s.Throttled) })
	t.Overflows = grown(func(s *resources.Sample) float64 { return float64(s.Overflows) })
	t.Log = resources.NginxLog{
		QueueFull: last.QueueFull - first.QueueFull, NoConnections: last.NoConnections - first.NoConnections, NoFiles: last.NoFiles - first.NoFiles,
	}
	t.Available = float64(first.Available)
	for _, s := range within {
		t.Procs, t.Files, t.NginxFull = max(t.Procs, float64(s.Procs)), max(t.Files, float64(s.Files)), max(t.NginxFull, s.NginxFull)
		t.Memory, t.Available = max(t.Memory, float64(s.Memory)), min(t.Available, float64(s.Available))
	}
	seconds := last.At().Sub(first.At()).Seconds()
	if last.LinkRate > 0 && seconds > 0 && !t.Loopback {
		sent, received := grown(func(s *resources.Sample) float64 { return float64(s.LinkSent) }), grown(func(s *resources.Sample) float64 { return float64(s.LinkReceived) })
		t.Link = max(sent, received) / seconds / float64(last.LinkRate)
	}
	served := grown(func(s *resources.Sample) float64 { return float64(s.Served) })
	if t.PerRequest = t.Inside && served > 0; t.PerRequest {
		t.Each = grown(func(s *resources.Sample) float64 { return s.Ran }) / served
		t.Runs = grown(func(s *resources.Sample) float64 { return float64(s.BackendRuns + s.NginxRuns) }) / served
		t.Accepts = grown(func(s *resources.Sample) float64 { return float64(s.NginxAccepted) }) / served
	}
	return t
}

// within returns the samples between two instants.
func (r *Run) within(from, to time.Time) (out []resources.Sample) {
	for _, s := range r.Samples {
		if at := s.At(); !at.Before(from) && !at.After(to) {
			out = append(out, s)
		}
	}
	return out
}

// cores counts the cores of target and runners.
func (r *Run) cores(t *Usage, m *shard.Merged) {
	if t.Loopback {
		t.TargetCores, t.GeneratorCores = float64(cmp.Or(r.ServiceCores, r.Cores)), float64(cmp.Or(r.RunnerCores, r.Cores))
		return
	}
	machines := map[string]bool{}
	for i := range m.Runners {
		if of := m.Runners[i].Machine; of != nil && !machines[of.Boot] {
			machines[of.Boot] = true
			t.GeneratorCores += float64(of.Cores)
		}
	}
	for _, of := range r.Machines {
		if !strings.HasPrefix(of.Name, "runner") {
			t.TargetCores += float64(of.Cores)
		}
	}
}

package suite

import (
	"cmp"
	"fmt"
	"time"

	"github.com/sse-soak/sse-soak/internal/host/machine"
	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A Machine is the load of machines and processes during a stage. CPU is in percent of one core.
type Machine struct {
	Runners, Backend, Nginx float64
	Host                    float64       // the whole machine, including other programs
	HostPeak                float64       // maximum of Host in one second
	RunDelay                float64       // seconds per second that the runners' threads waited for a core
	Stall                   time.Duration // maximum delay with which a runner woke up
	Wait                    time.Duration // longest wait for a core in a runner
	PacketsDropped          float64       // packets of the runners' machines that AWS dropped
	Cores                   int           // 0 if unknown
	ControlDelay            time.Duration // maximum delay of the generator in its control groups; valid if HasControl
	HasControl              bool          // the control groups of all runners measured delays all the time
	SharedHost              bool          // target and runners share the machine
	TooShort                bool          // the stage has too few samples for figures
	SeparateCores           bool          // service and runners have separate cores
	ServiceBusy             float64       // used share of the service's cores, by any process, 0 to 1; valid if SeparateCores
	GeneratorBusy           float64       // used share of the runners' cores, by any process, 0 to 1; valid if SeparateCores
	Usage                   Usage
	ForeignLoad             bool // other programs used most of the busy time of the service's cores; valid if SeparateCores
}

func (m Machine) busyCores() string {
	return fmt.Sprintf("the service's cores were %s busy, the generator's %s", percent(m.ServiceBusy), percent(m.GeneratorBusy))
}

func (r *Run) machine(m *shard.Merged, from, to time.Time) Machine {
	out := Machine{Cores: r.Cores, SharedHost: (*verdict.Evidence)(r).SharesHost(m.Plan.BackendURLs()...), TooShort: to.Sub(from).Seconds() < minDuration}
	if !to.After(from) {
		return out
	}
	for _, second := range m.Seconds {
		start, end := time.UnixMicro(second.FromUS), time.UnixMicro(second.ToUS)
		w := overlap(start, end, from, to)
		if w <= 0 {
			continue
		}
		part := w / end.Sub(start).Seconds() / to.Sub(from).Seconds()
		out.Runners += 100 * part * second.CPUSeconds
		out.RunDelay += part * float64(second.RunDelayMS) / 1000
		out.Stall = max(out.Stall, time.Duration(second.StallMS)*time.Millisecond)
		out.Wait = max(out.Wait, waitOf(second))
	}
	out.Usage = r.usage(m, from, to)
	out.PacketsDropped = verdict.DroppedByAWS((*verdict.Evidence)(r), from, to)
	out.ControlDelay, out.HasControl = control(m, from, to)
	from, to, known := r.sampleRange(from, to)
	out.Backend = r.cpuPercent(from, to, func(s resources.Sample) float64 { return s.BackendCPU })
	out.Nginx = r.cpuPercent(from, to, func(s resources.Sample) float64 { return s.NginxCPU })
	out.Host = r.cpuPercent(from, to, func(s resources.Sample) float64 { return s.BusySeconds })
	if out.SeparateCores = r.ServiceCores > 0 && r.RunnerCores > 0; out.SeparateCores {
		out.ServiceBusy = min(r.cpuPercent(from, to, func(s resources.Sample) float64 { return s.Host.ServiceCores })/100/float64(r.ServiceCores), 1)
		out.GeneratorBusy = min(r.cpuPercent(from, to, func(s resources.Sample) float64 { return s.Host.RunnerCores })/100/float64(r.RunnerCores), 1)
		out.TooShort = out.TooShort || !known || out.GeneratorBusy == 0
		out.ForeignLoad = 100*out.ServiceBusy*float64(r.ServiceCores) > 2*(out.Backend+out.Nginx)
	}
	for at := from; at.Before(to); at = at.Add(time.Second) {
		out.HostPeak = max(out.HostPeak, r.cpuPercent(at, at.Add(time.Second), func(s resources.Sample) float64 { return s.BusySeconds }))
	}
	return out
}

// replaceWaits returns the machine with the waits of a longer period, in which requests of the stage were open.
func (m Machine) replaceWaits(period Machine) Machine {
	m.Stall, m.Wait, m.ControlDelay, m.HasControl = period.Stall, period.Wait, period.ControlDelay, period.HasControl
	return m
}

// control returns the maximum delay that the control groups of the runners measured between two times, plus the delay
// that they cannot detect. ok is false if a runner has no group, or if no bucket overlaps these times. It is also false
// if a group was silent, received fewer than half of its events, or had a late reference server.
func control(m *shard.Merged, from, to time.Time) (delay time.Duration, ok bool) {
	for i := range m.Runners {
		group := m.Runners[i].ControlGroup
		if group == nil || !group.HasEvents() {
			return 0, false
		}
		for _, moment := range group.Moments {
			if moment.Silent && overlap(moment.At, moment.End(), from, to) > 0 {
				return 0, false
			}
		}
		delay = max(delay, group.Resolution())
	}
	resolution := delay
	for _, b := range m.Series {
		start := time.Unix(b.Unix, 0)
		if overlap(start, start.Add(shard.BucketWidth), from, to) <= 0 {
			continue
		}
		if b.Control == nil || b.Control.Received == 0 || b.Control.Received < b.Control.Expected/2 || time.Duration(b.Control.ReferenceUS)*time.Microsecond > maxStall {
			return 0, false
		}
		delay, ok = max(delay, resolution+time.Duration(b.Control.LongestUS)*time.Microsecond), true
	}
	return delay, ok
}

// sampleRange returns the times of the first and the last sample between two times. With fewer than two samples it
// returns from, to and false. Samples from Prometheus do not count, because their times are whole seconds.
func (r *Run) sampleRange(from, to time.Time) (first, last time.Time, ok bool) {
	for _, s := range r.Samples {
		if at := s.At(); s.AtUS != 0 && !at.Before(from) && !at.After(to) {
			if first.IsZero() {
				first = at
			}
			last = at
		}
	}
	if !last.After(first) {
		return from, to, false
	}
	return first, last, true
}

// cpuPercent returns the growth of a counter of CPU seconds between two times, in percent of one core.
func (r *Run) cpuPercent(from, to time.Time, value func(resources.Sample) float64) float64 {
	var growth, seconds float64
	if len(r.Samples) == 0 {
		return 0
	}
	previous := r.Samples[0]
	for _, current := range r.Samples[1:] {
		width := current.At().Sub(previous.At()).Seconds()
		if width <= 0 {
			continue // two samples at the same time
		}
		if value(current) == 0 && value(previous) > 0 {
			continue // a process without free descriptors cannot report its CPU time
		}
		w := overlap(previous.At(), current.At(), from, to)
		if delta := value(current) - value(previous); delta >= 0 { // a counter falls if the process was restarted
			growth += delta * w / width
			seconds += w
		}
		previous = current
	}
	if seconds == 0 {
		return 0
	}
	return 100 * growth / seconds
}

// overlap returns the length of the intersection of two time spans in seconds.
func overlap(aFrom, aTo, bFrom, bTo time.Time) float64 {
	from, to := aFrom, aTo
	if bFrom.After(from) {
		from = bFrom
	}
	if bTo.Before(to) {
		to = bTo
	}
	return max(to.Sub(from).Seconds(), 0)
}

// Usage is the use of the limited resources of a service and a load generator in a stage.
type Usage struct {
	HasProcesses bool // the processes of the target are on this machine, and known
	HasProxy     bool // nginx is one of these processes
	HasHost      bool // the machine of the target was sampled

	Periods, Throttled float64 // CPU periods of the target's limited cgroups, and the throttled ones
	MaxCores           float64 // maximum number of cores that the backends may use; 0 if unknown
	Files, MaxFiles    float64 // open files of the backends, and their limit; 0 if unknown
	NginxFull          float64 // highest used share of the descriptor limit, over the processes of nginx
	Log                resources.NginxLog

	Memory, Available float64 // memory of the target's machine: total, and minimum available
	Killed            float64 // processes on that machine killed by the OOM killer
	HasOverflows      bool    // Overflows is known
	Overflows         float64 // connects to a full accept queue

	Loopback             bool    // requests used the loopback interface
	Link                 float64 // use of this machine's network cards in the busier direction, 0 to 1; negative if unknown
	AllowanceExceeded    float64 // packets of the target's machine that AWS delayed or dropped
	HasAllowanceExceeded bool    // AllowanceExceeded is known

	TargetCores, GeneratorCores float64 // cores reserved for each, or cores of their machines; 0 if unknown

	HasPerRequest bool // the next three fields are known
	// Per request: CPU seconds of backend and nginx, connections to nginx, and context switches of backend and nginx.
	CPU, Accepts, ContextSwitches float64
}

func (r *Run) usage(m *shard.Merged, from, to time.Time) (t Usage) {
	e := (*verdict.Evidence)(r)
	t.Loopback, t.Link = e.SharesHost(m.Plan.BackendURLs()...), -1
	r.cores(&t, m)
	t.Killed, _ = verdict.IncreaseOnTarget(e, from, to, func(c machine.Counter) bool { return c.Name == machine.OOMKills })
	t.AllowanceExceeded, t.HasAllowanceExceeded = verdict.IncreaseOnTarget(e, from, to, func(c machine.Counter) bool { return c.ByAWS() && c.Effect == machine.Silences })
	for _, s := range r.Samples { // of any time, because a backend without free descriptors cannot report its limit
		t.MaxFiles = max(t.MaxFiles, float64(s.MaxFiles))
	}
	samples := r.samplesBetween(from, to)
	if len(samples) < 2 {
		t.MaxFiles = 0
		return t
	}
	first, last := samples[0], samples[len(samples)-1]
	t.HasProcesses, t.HasProxy = last.BackendRuns > 0, last.NginxRuns > 0
	t.HasHost = t.Loopback || last.OfTarget
	t.HasOverflows = t.HasHost && last.NetworkKnown
	growth := func(value func(*resources.Sample) float64) float64 { return max(value(&last)-value(&first), 0) }
	t.Periods = growth(func(s *resources.Sample) float64 { return float64(s.Periods) })
	t.Throttled = growth(func(s *resources.Sample) float64 { return float64(s.Throttled) })
	t.Overflows = growth(func(s *resources.Sample) float64 { return float64(s.Overflows) })
	t.Log = resources.NginxLog{
		QueueFull: last.QueueFull - first.QueueFull, NoConnections: last.NoConnections - first.NoConnections, NoFiles: last.NoFiles - first.NoFiles,
	}
	t.Available = float64(first.Available)
	for _, s := range samples {
		t.MaxCores, t.Files, t.NginxFull = max(t.MaxCores, float64(s.Procs)), max(t.Files, float64(s.Files)), max(t.NginxFull, s.NginxFull)
		t.Memory, t.Available = max(t.Memory, float64(s.Memory)), min(t.Available, float64(s.Available))
	}
	seconds := last.At().Sub(first.At()).Seconds()
	if last.LinkRate > 0 && seconds > 0 && !t.Loopback {
		sent, received := growth(func(s *resources.Sample) float64 { return float64(s.LinkSent) }), growth(func(s *resources.Sample) float64 { return float64(s.LinkReceived) })
		t.Link = max(sent, received) / seconds / float64(last.LinkRate)
	}
	served := growth(func(s *resources.Sample) float64 { return float64(s.Served) })
	if t.HasPerRequest = t.HasProcesses && served > 0; t.HasPerRequest {
		t.CPU = growth(func(s *resources.Sample) float64 { return s.RunSeconds }) / served
		t.ContextSwitches = growth(func(s *resources.Sample) float64 { return float64(s.BackendRuns + s.NginxRuns) }) / served
		t.Accepts = growth(func(s *resources.Sample) float64 { return float64(s.NginxAccepted) }) / served
	}
	return t
}

func (r *Run) samplesBetween(from, to time.Time) (out []resources.Sample) {
	for _, s := range r.Samples {
		if at := s.At(); !at.Before(from) && !at.After(to) {
			out = append(out, s)
		}
	}
	return out
}

func (r *Run) cores(t *Usage, m *shard.Merged) {
	if t.Loopback {
		t.TargetCores, t.GeneratorCores = float64(cmp.Or(r.ServiceCores, r.Cores)), float64(cmp.Or(r.RunnerCores, r.Cores))
		return
	}
	machines := map[string]bool{}
	for i := range m.Runners {
		if record := m.Runners[i].Machine; record != nil && !machines[record.Boot] {
			machines[record.Boot] = true
			t.GeneratorCores += float64(record.Cores)
		}
	}
	for _, record := range r.Machines {
		if !record.IsRunner() {
			t.TargetCores += float64(record.Cores)
		}
	}
}

package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/run/target"
	"github.com/sse-soak/sse-soak/internal/suite"
)

// A meter samples CPU and memory of target and host, and keeps the last sample for the progress line.
type meter struct {
	targets                   target.Targets // targets with the metrics of our backend
	gaugeTargets              target.Targets // targets with a gauge of the service
	path                      string
	interval                  time.Duration
	serviceCores, runnerCores []int                                  // reserved cores; empty: service and runners share all
	gauge                     string                                 // gauge of the service that the suite watches; "": none
	onSample                  func(resources.Sample)                 // called with each sample; may be nil
	logs                      map[*target.Local]*resources.LogReader // readers of nginx's error logs
	lookups                   *resources.Lookups                     // lookups of the target's name; nil: no name, or a proxy looks it up
	listeners                 map[*target.Target]*resources.Listener // processes of loopback targets not started by soak
	reportsCPU                map[*target.Target]bool                // targets whose metrics page has reported their CPU
	firstSample               chan struct{}                          // closed after the first sample
	start                     time.Time                              // base of the sample times, which follow the monotonic clock

	mu        sync.Mutex
	last      resources.Sample
	cpu       float64 // CPU of the backend between the last two samples, in percent of a core
	lastError string
}

// newMeter returns a meter of the target and of the cluster that the suite compares with it. For a service whose
// protocol differs from our backend's, the meter samples only the host, the DNS lookups and the gauge.
func newMeter(s *session) *meter {
	m := &meter{
		lookups: s.lookups(), path: s.dir.Path(results.ResourcesFile), interval: cmp.Or(s.Suite.Sampling.Interval, time.Second),
		gauge: s.gauge(), gaugeTargets: s.targets, firstSample: make(chan struct{}), start: time.Now(),
		serviceCores: s.record.ServiceCores, runnerCores: s.record.RunnerCores,
	}
	if s.Plan.IsShort() {
		m.interval = time.Second
	}
	if model := s.setting("MODEL_URL", ""); s.Suite.Target.Kind == suite.Model && model != "" { // the target is a gateway
		m.gaugeTargets = target.Targets{target.Remote(model, "")}
	}
	if !s.service.Backend {
		return m
	}
	m.logs, m.listeners, m.reportsCPU = map[*target.Local]*resources.LogReader{}, map[*target.Target]*resources.Listener{}, map[*target.Target]bool{}
	for _, t := range s.allTargets() {
		m.targets = append(append(m.targets, t), t.Backends()[1:]...)
		if t.Local != nil {
			m.logs[t.Local] = &resources.LogReader{}
		} else {
			m.listeners[t] = resources.ListenerOf(t.URL)
		}
	}
	m.gaugeTargets = m.targets
	return m
}

// lookups returns the DNS lookups of the name of the service; nil if the runners make none.
func (s *session) lookups() *resources.Lookups {
	if len(s.record.Proxies) > 0 || len(s.Plan.BackendURLs()) == 0 {
		return nil
	}
	return resources.LookupsOf(s.Plan.BackendURLs()[0])
}

func (m *meter) run(ctx context.Context) {
	markSampled := sync.OnceFunc(func() { close(m.firstSample) })
	defer markSampled()
	if m.lookups != nil {
		var running sync.WaitGroup
		ctx, cancel := context.WithCancel(ctx)
		running.Go(func() { m.lookups.Run(ctx) })
		defer running.Wait()
		defer cancel()
	}
	f, err := os.OpenFile(m.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644) // #nosec G302 -- the mode of other files of the folder; `soak attach` appends
	if err != nil {
		m.noteError(err)
		return
	}
	defer f.Close()
	out := json.NewEncoder(f)
	tick := time.NewTicker(m.interval)
	defer tick.Stop()
	for {
		sample := m.sample(ctx, min(m.interval, resources.Interval))
		if m.onSample != nil {
			m.onSample(sample)
		}
		if err := out.Encode(sample); err != nil {
			m.noteError(err)
		}
		markSampled()
		select {
		case <-ctx.Done():
			if err := out.Encode(m.sample(context.WithoutCancel(ctx), resources.Interval)); err != nil { // covers the time since the previous sample
				m.noteError(err)
			}
			return
		case <-tick.C:
		}
	}
}

// sample samples this host, and the target if it responds within timeout.
func (m *meter) sample(ctx context.Context, timeout time.Duration) (s resources.Sample) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	now := m.start.Add(time.Since(m.start))
	s.Unix, s.AtUS = now.Unix(), now.UnixMicro()
	s.FromHost()
	s.FromLookups(m.lookups)
	s.FromCores(m.serviceCores, m.runnerCores)
	for _, t := range m.targets {
		cpu := s.BackendCPU
		m.read(ctx, s.FromMetrics, t.Metrics)
		l := t.Local
		if l == nil {
			m.sampleListeners(&s, t, s.BackendCPU > cpu)
			continue
		}
		s.FromService(l.BackendPIDs(), l.NginxPID())
		if l.NginxPID() != 0 {
			m.read(ctx, s.FromStatus, l.NginxStatus)
			s.NginxLog.Add(m.logs[l].Read(l.NginxLog()))
		}
	}
	m.readGauge(ctx, &s)
	m.mu.Lock()
	defer m.mu.Unlock()
	if elapsed := s.Unix - m.last.Unix; m.last.Unix > 0 && elapsed > 0 && s.BackendCPU >= m.last.BackendCPU {
		m.cpu = 100 * (s.BackendCPU - m.last.BackendCPU) / float64(elapsed)
	}
	m.last = s
	return s
}

// sampleListeners adds the system's counts for the processes of a target that soak did not start. hasCPU reports
// whether the target's own metrics include its CPU time. From the first such sample on, sampleListeners omits the CPU
// time that the system counts, because the two values differ.
func (m *meter) sampleListeners(s *resources.Sample, t *target.Target, hasCPU bool) {
	pids := m.listeners[t].PIDs()
	s.FromService(pids, 0)
	if hasCPU {
		m.reportsCPU[t] = true
	}
	if !m.reportsCPU[t] {
		s.FromListener(pids)
	}
}

func (m *meter) read(ctx context.Context, parse func(io.Reader) error, open func(context.Context) (io.ReadCloser, bool)) {
	page, ok := open(ctx)
	if !ok {
		return
	}
	if err := errors.Join(parse(page), page.Close()); err != nil {
		m.noteError(err)
	}
}

// readGauge adds the gauge that the run watches. A gauge that names a process is the memory of this process on this
// machine. Any other gauge comes from Prometheus if that is configured, else from the metrics page of the service.
func (m *meter) readGauge(ctx context.Context, s *resources.Sample) {
	address := os.Getenv("PROMETHEUS_URL")
	switch {
	case m.gauge == "":
	case resources.GaugePID(m.gauge) > 0:
		if err := s.FromProcess(resources.GaugePID(m.gauge)); err != nil {
			m.noteError(err)
		}
	case address != "":
		if err := s.FromQuery(ctx, address, m.gauge); err != nil {
			m.noteError(err)
		}
	default:
		for _, t := range m.gaugeTargets {
			m.read(ctx, s.FromPage(m.gauge), t.Metrics)
		}
	}
}

// noteError stores an error for warnings. Only the last one is kept.
func (m *meter) noteError(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lastError = err.Error()
}

func (m *meter) warnings() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lastError == "" {
		return nil
	}
	return []string{"some resources of the target or the host were not recorded: " + m.lastError}
}

// backend returns CPU and memory of the backend in the last sample as text; "" if they are unknown.
func (m *meter) backend() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last.BackendRSS == 0 {
		return ""
	}
	return fmt.Sprintf("backend %.0f%% %d MiB", m.cpu, m.last.BackendRSS>>20)
}

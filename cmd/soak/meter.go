package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/resources"
	"github.com/sse-soak/sse-soak/rundir"
	"github.com/sse-soak/sse-soak/target"
)

// A meter samples what the target takes, and keeps the last sample for whoever looks.
type meter struct {
	target *target.Target
	path   string
	start  time.Time // samples are timed by the monotonic clock from here: a stepped one does not tear them

	mu      sync.Mutex
	last    resources.Sample
	cpu     float64 // percent of a core between the last two samples
	trouble string
}

func newMeter(t *target.Target, d rundir.Dir) *meter {
	return &meter{target: t, path: d.Path(rundir.ResourcesFile), start: time.Now()}
}

func (m *meter) run(ctx context.Context) {
	f, err := os.Create(m.path)
	if err != nil {
		m.complain(err)
		return
	}
	defer f.Close()
	out := json.NewEncoder(f)
	tick := time.NewTicker(resources.Every)
	defer tick.Stop()
	for {
		if s, ok := m.sample(ctx); ok {
			if err := out.Encode(s); err != nil {
				m.complain(err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// sample takes one; not ok where the target shows nothing of itself.
func (m *meter) sample(ctx context.Context) (s resources.Sample, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, resources.Every)
	defer cancel()
	s.Unix = m.start.Add(time.Since(m.start)).Unix()
	page, ok := m.target.Metrics(ctx)
	if ok {
		err := s.FromMetrics(page)
		_ = page.Close()
		if err != nil {
			m.complain(err)
		}
	}
	if l := m.target.Local; l != nil && l.NginxPID() != 0 {
		s.FromNginx(l.NginxPID())
	}
	if !ok && s.NginxRSS == 0 {
		return s, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if wall := s.Unix - m.last.Unix; m.last.Unix > 0 && wall > 0 && s.BackendCPU >= m.last.BackendCPU {
		m.cpu = 100 * (s.BackendCPU - m.last.BackendCPU) / float64(wall)
	}
	m.last = s
	return s, true
}

func (m *meter) complain(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.trouble = err.Error()
}

func (m *meter) warnings() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.trouble == "" {
		return nil
	}
	return []string{"the target's resources could not all be sampled: " + m.trouble}
}

// backend is the last sample in words, "" before there is one.
func (m *meter) backend() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last.BackendRSS == 0 {
		return ""
	}
	return fmt.Sprintf("backend %.0f%% %d MiB", m.cpu, m.last.BackendRSS>>20)
}

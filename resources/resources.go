// Package resources samples what the processes of a soak take while it runs: the backend by
// its own /metrics, nginx by its processes. The runners sample themselves.
package resources

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/shirou/gopsutil/v4/process"
)

// Every is the distance of two samples.
const Every = 5 * time.Second

// A Sample is one line of resources.ndjson. A figure that could not be had is 0.
type Sample struct {
	Unix       int64   `json:"unix_s"`
	BackendRSS uint64  `json:"backend_rss_bytes"`
	BackendCPU float64 `json:"backend_cpu_seconds"` // since the backend started
	Streams    int     `json:"backend_streams_open"`
	Goroutines int     `json:"backend_goroutines"`
	Files      int     `json:"backend_open_fds"`
	NginxRSS   uint64  `json:"nginx_rss_bytes"`
	NginxCPU   float64 `json:"nginx_cpu_seconds"`
}

// FromMetrics reads the backend's figures from its metrics page, as far as it shows them.
func (s *Sample) FromMetrics(page io.Reader) error {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(page)
	if err != nil {
		return fmt.Errorf("read the backend's metrics: %w", err)
	}
	value := func(name string) float64 {
		f := families[name]
		if f == nil || len(f.GetMetric()) == 0 {
			return 0
		}
		m := f.GetMetric()[0]
		return m.GetGauge().GetValue() + m.GetCounter().GetValue() // one of them is there
	}
	s.BackendRSS = uint64(value("process_resident_memory_bytes"))
	s.BackendCPU = value("process_cpu_seconds_total")
	s.Streams = int(value("backend_streams_open"))
	s.Goroutines = int(value("go_goroutines"))
	s.Files = int(value("process_open_fds"))
	return nil
}

// FromNginx adds up the master process and its workers. Pages they share count once each, so
// the sum is somewhat above what nginx takes.
func (s *Sample) FromNginx(master int) {
	p, err := process.NewProcess(int32(master)) //nolint:gosec // a pid fits
	if err != nil {
		return
	}
	all := []*process.Process{p}
	if workers, err := p.Children(); err == nil {
		all = append(all, workers...)
	}
	for _, p := range all {
		if m, err := p.MemoryInfo(); err == nil {
			s.NginxRSS += m.RSS
		}
		if t, err := p.Times(); err == nil {
			s.NginxCPU += t.User + t.System
		}
	}
}

// Summary is the most and the average over a run.
type Summary struct {
	BackendRSSMax     uint64
	BackendCPUPercent float64 // average, of one core
	NginxRSSMax       uint64
	NginxCPUPercent   float64
}

// Summarize sums samples up. A counter that falls belongs to a new process.
func Summarize(samples []Sample) (s Summary) {
	var backend, nginx float64
	for i, now := range samples {
		s.BackendRSSMax = max(s.BackendRSSMax, now.BackendRSS)
		s.NginxRSSMax = max(s.NginxRSSMax, now.NginxRSS)
		if i > 0 {
			backend += max(now.BackendCPU-samples[i-1].BackendCPU, 0)
			nginx += max(now.NginxCPU-samples[i-1].NginxCPU, 0)
		}
	}
	if len(samples) > 1 {
		if wall := float64(samples[len(samples)-1].Unix - samples[0].Unix); wall > 0 {
			s.BackendCPUPercent, s.NginxCPUPercent = 100*backend/wall, 100*nginx/wall
		}
	}
	return s
}

// Read reads resources.ndjson; no file is no samples.
func Read(path string) (out []Sample, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read samples: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var s Sample
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			return nil, fmt.Errorf("read samples %s: %w", path, err)
		}
		out = append(out, s)
	}
	return out, lines.Err()
}

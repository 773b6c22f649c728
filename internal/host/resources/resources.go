// Package resources samples what a soak takes while it runs: the backend by its own /metrics,
// nginx by its processes and its status page, this host by /proc; or all of it from Prometheus,
// where there is one. The runners sample themselves.
package resources

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/sse-soak/sse-soak/internal/safefile"
)

// Interval is the time between two samples.
const Interval = 5 * time.Second

// A Sample is one line of resources.ndjson. What could not be read is 0. What counts
// seconds or events does so since its process or the host started; differences tell.
type Sample struct {
	Unix             int64   `json:"unix_s"`
	AtUS             int64   `json:"at_us,omitempty"` // the same to the microsecond; 0 of a Prometheus
	BackendRSS       uint64  `json:"backend_rss_bytes"`
	BackendCPU       float64 `json:"backend_cpu_seconds"`
	Streams          int     `json:"backend_streams_open"`
	Goroutines       int     `json:"backend_goroutines"`
	BackendThreads   int     `json:"backend_threads,omitempty"`
	Files            int     `json:"backend_open_fds"`
	MaxFiles         uint64  `json:"backend_max_fds,omitempty"`
	Procs            int     `json:"backend_gomaxprocs,omitempty"`       // cores that it computes on at most
	Served           uint64  `json:"backend_service_requests,omitempty"` // plain requests that came
	BackendGCs       uint64  `json:"backend_gcs,omitempty"`
	BackendGCSeconds float64 `json:"backend_gc_pause_seconds,omitempty"` // all pauses together
	NginxRSS         uint64  `json:"nginx_rss_bytes"`
	NginxCPU         float64 `json:"nginx_cpu_seconds"`
	NginxActive      int     `json:"nginx_connections_active,omitempty"` // one for each client and each upstream
	NginxFiles       int     `json:"nginx_open_fds,omitempty"`
	NginxThreads     int     `json:"nginx_threads,omitempty"`
	NginxAccepted    uint64  `json:"nginx_connections_accepted,omitempty"`
	NginxRequests    uint64  `json:"nginx_requests,omitempty"`
	// Gauge is what the run asked to be watched (GAUGE); nil where it is not known.
	Gauge *float64 `json:"gauge,omitempty"`
	// Counter reports that the value is a counter, which never falls.
	Counter bool `json:"gauge_is_counter,omitempty"`
	Service
	Host
}

// At returns when it was taken, as precisely as is known.
func (s *Sample) At() time.Time {
	if s.AtUS != 0 {
		return time.UnixMicro(s.AtUS)
	}
	return time.Unix(s.Unix, 0)
}

// ofBackend are a backend's metrics by the names on its metrics page, which a Prometheus keeps.
// Those of several backends add up.
var ofBackend = map[model.LabelValue]func(*Sample, float64){
	"process_resident_memory_bytes": func(s *Sample, v float64) { s.BackendRSS += uint64(v) },
	"process_cpu_seconds_total":     func(s *Sample, v float64) { s.BackendCPU += v },
	"process_open_fds":              func(s *Sample, v float64) { s.Files += int(v) },
	"process_max_fds":               func(s *Sample, v float64) { s.MaxFiles += uint64(v) },
	"backend_streams_open":          func(s *Sample, v float64) { s.Streams += int(v) },
	served:                          func(s *Sample, v float64) { s.Served += uint64(v) },
	"go_sched_gomaxprocs_threads":   func(s *Sample, v float64) { s.Procs += int(v) },
	"go_threads":                    func(s *Sample, v float64) { s.BackendThreads += int(v) },
	"go_goroutines":                 func(s *Sample, v float64) { s.Goroutines += int(v) },
	"go_gc_duration_seconds_count":  func(s *Sample, v float64) { s.BackendGCs += uint64(v) },
	"go_gc_duration_seconds_sum":    func(s *Sample, v float64) { s.BackendGCSeconds += v },
}

// served is compared with the runners' own count, to the request: the last scrape of a Prometheus may
// be from before the last request.
const served = "backend_service_requests_total"

// FromMetrics adds the values of a backend that its metrics page has.
func (s *Sample) FromMetrics(page io.Reader) error {
	return eachMetric(page, func(name model.LabelValue, v float64, _ dto.MetricType) {
		if put := ofBackend[name]; put != nil {
			put(s, v)
		}
	})
}

// eachMetric calls f with each sample of a metrics page.
func eachMetric(page io.Reader, f func(name model.LabelValue, value float64, kind dto.MetricType)) error {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(page)
	if err != nil {
		return fmt.Errorf("read the metrics page of the service: %w", err)
	}
	samples, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{}, slices.Collect(maps.Values(families))...)
	for _, metric := range samples {
		name := metric.Metric[model.MetricNameLabel]
		f(name, float64(metric.Value), families[string(name)].GetType())
	}
	return err
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
	var backend, nginx, last float64
	for i, now := range samples {
		if now.BackendCPU == 0 { // a process without descriptors does not tell it
			now.BackendCPU = last
		}
		s.BackendRSSMax = max(s.BackendRSSMax, now.BackendRSS)
		s.NginxRSSMax = max(s.NginxRSSMax, now.NginxRSS)
		if i > 0 {
			backend += max(now.BackendCPU-last, 0)
			nginx += max(now.NginxCPU-samples[i-1].NginxCPU, 0)
		}
		last = now.BackendCPU
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
	f, err := safefile.Open(path, safefile.Table)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read samples: %w", err)
	}
	defer f.Close()
	for lines := json.NewDecoder(f); lines.More(); {
		var s Sample
		if err := lines.Decode(&s); err != nil {
			return nil, fmt.Errorf("read samples %s: %w", path, err)
		}
		out = append(out, s)
	}
	return out, nil
}

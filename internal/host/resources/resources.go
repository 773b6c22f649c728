// Package resources samples the resources of a running soak. It reads /proc of this host, including the processes of
// the backend and nginx. It also reads the metrics page of the backend, and the status page and the error log of nginx.
// Alternatively it queries a Prometheus server that monitors the target. Runners sample themselves.
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

// Interval is the time between two samples of the suites soak and resume, between two samples from Prometheus, and
// between two DNS lookups. In other suites, and in short runs (plan.IsShort), local samples are one second apart.
const Interval = 5 * time.Second

// A Sample is one line of resources.ndjson. Unknown values are 0. Counters count from the start of the process or of
// the host.
type Sample struct {
	Unix             int64   `json:"unix_s"`
	AtUS             int64   `json:"at_us,omitempty"` // Unix time in microseconds; 0: the sample is from Prometheus
	BackendRSS       uint64  `json:"backend_rss_bytes"`
	BackendCPU       float64 `json:"backend_cpu_seconds"`
	Streams          int     `json:"backend_streams_open"`
	Goroutines       int     `json:"backend_goroutines"`
	BackendThreads   int     `json:"backend_threads,omitempty"`
	Files            int     `json:"backend_open_fds"`
	MaxFiles         uint64  `json:"backend_max_fds,omitempty"`
	Procs            int     `json:"backend_gomaxprocs,omitempty"`       // number of cores that backends may use
	Served           uint64  `json:"backend_service_requests,omitempty"` // plain requests
	BackendGCs       uint64  `json:"backend_gcs,omitempty"`
	BackendGCSeconds float64 `json:"backend_gc_pause_seconds,omitempty"` // sum of all pauses
	NginxRSS         uint64  `json:"nginx_rss_bytes"`
	NginxCPU         float64 `json:"nginx_cpu_seconds"`
	NginxActive      int     `json:"nginx_connections_active,omitempty"` // including soak's connection for the status page
	NginxFiles       int     `json:"nginx_open_fds,omitempty"`
	NginxThreads     int     `json:"nginx_threads,omitempty"`
	NginxAccepted    uint64  `json:"nginx_connections_accepted,omitempty"`
	NginxRequests    uint64  `json:"nginx_requests,omitempty"`
	// Gauge is the value of GAUGE; nil: unknown.
	Gauge *float64 `json:"gauge,omitempty"`
	// Counter reports whether Gauge is a counter, which never decreases.
	Counter bool `json:"gauge_is_counter,omitempty"`
	Service
	Host
}

// At returns the time of the sample.
func (s *Sample) At() time.Time {
	if s.AtUS != 0 {
		return time.UnixMicro(s.AtUS)
	}
	return time.Unix(s.Unix, 0)
}

// backendMetrics maps the name of a metric to a function that adds its value, so that several backends add up.
var backendMetrics = map[model.LabelValue]func(*Sample, float64){
	"process_resident_memory_bytes": func(s *Sample, v float64) { s.BackendRSS += uint64(v) },
	"process_cpu_seconds_total":     func(s *Sample, v float64) { s.BackendCPU += v },
	"process_open_fds":              func(s *Sample, v float64) { s.Files += int(v) },
	"process_max_fds":               func(s *Sample, v float64) { s.MaxFiles += uint64(v) },
	"backend_streams_open":          func(s *Sample, v float64) { s.Streams += int(v) },
	servedMetric:                    func(s *Sample, v float64) { s.Served += uint64(v) },
	"go_sched_gomaxprocs_threads":   func(s *Sample, v float64) { s.Procs += int(v) },
	"go_threads":                    func(s *Sample, v float64) { s.BackendThreads += int(v) },
	"go_goroutines":                 func(s *Sample, v float64) { s.Goroutines += int(v) },
	"go_gc_duration_seconds_count":  func(s *Sample, v float64) { s.BackendGCs += uint64(v) },
	"go_gc_duration_seconds_sum":    func(s *Sample, v float64) { s.BackendGCSeconds += v },
}

// servedMetric counts the plain requests that a backend has received. A check compares it with the count of the runners.
// The metric is not read from Prometheus, whose last scrape may precede the last request.
const servedMetric = "backend_service_requests_total"

// FromMetrics adds the values of a backend from its metrics page.
func (s *Sample) FromMetrics(page io.Reader) error {
	return eachMetric(page, func(name model.LabelValue, v float64, _ dto.MetricType) {
		if put := backendMetrics[name]; put != nil {
			put(s, v)
		}
	})
}

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

// A Summary has the maximum memory in bytes and the average CPU usage of the backend and of nginx during a run.
type Summary struct {
	BackendRSSMax     uint64
	BackendCPUPercent float64 // average, as a percentage of one core
	NginxRSSMax       uint64
	NginxCPUPercent   float64
}

// Summarize returns the summary of samples.
func Summarize(samples []Sample) (s Summary) {
	var backend, nginx cpuCounter
	for _, now := range samples {
		s.BackendRSSMax = max(s.BackendRSSMax, now.BackendRSS)
		s.NginxRSSMax = max(s.NginxRSSMax, now.NginxRSS)
		backend.add(now.BackendCPU)
		nginx.add(now.NginxCPU)
	}
	if len(samples) > 1 {
		if wall := float64(samples[len(samples)-1].Unix - samples[0].Unix); wall > 0 {
			s.BackendCPUPercent, s.NginxCPUPercent = 100*backend.sum/wall, 100*nginx.sum/wall
		}
	}
	return s
}

// A cpuCounter sums the increases of a counter of CPU seconds.
type cpuCounter struct{ last, sum float64 }

// add adds a value of the counter. 0 means that it is unknown; a backend without free descriptors does not report it. A
// value below the last one belongs to a new process.
func (c *cpuCounter) add(v float64) {
	if v > 0 {
		if c.last > 0 {
			c.sum += max(v-c.last, 0)
		}
		c.last = v
	}
}

// Read reads the samples in the file resources.ndjson at path. It returns none if the file does not exist.
func Read(path string) (out []Sample, err error) {
	f, err := safefile.Open(path, safefile.Table)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read samples: %w", err)
	}
	defer f.Close()
	for lines := json.NewDecoder(f); ; {
		var s Sample
		switch err := lines.Decode(&s); {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("read samples %s: %w", path, err)
		}
		out = append(out, s)
	}
}

package resources

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"
)

var metricName = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)

// counter is a query of a counter alone, which OpenMetrics has end in _total. The difference of two of them may be a gauge.
var counter = regexp.MustCompile(`^(?:sum\()?[a-zA-Z_:][a-zA-Z0-9_:]*_total(?:\{[^{}]*\})?\)?$`)

// ofProcess is how a gauge names the memory of a process of this machine.
const ofProcess = "pid:"

// GaugePID is the process whose memory a gauge is, 0 where it is another gauge.
func GaugePID(gauge string) int {
	text, ofOneProcess := strings.CutPrefix(gauge, ofProcess)
	pid, err := strconv.Atoi(text)
	if !ofOneProcess || err != nil {
		return 0
	}
	return pid
}

// CheckGauge says in a sentence why a gauge of the service cannot be read; a Prometheus knows more than names.
func CheckGauge(gauge, prometheus string) error {
	if strings.HasPrefix(gauge, ofProcess) {
		if pid := GaugePID(gauge); pid > 0 {
			return new(Sample).FromProcess(pid)
		}
		return fmt.Errorf("GAUGE is %q: behind pid: stands the number of a process of this machine, such as pid:1234", gauge)
	}
	if prometheus == "" && gauge != "" && !metricName.MatchString(gauge) {
		return fmt.Errorf("GAUGE is %q, which is not the name of a metric; PromQL needs PROMETHEUS_URL", gauge)
	}
	return nil
}

// FromProcess has the resident memory of a process of this machine and of those that it started, in bytes. Pages that they share
// count once each.
func (s *Sample) FromProcess(pid int) error {
	all, err := family(pid)
	for _, p := range all {
		if m, err := p.MemoryInfo(); err == nil {
			s.addGauge(float64(m.RSS))
		}
	}
	if err == nil && s.Gauge == nil {
		err = errors.New("its memory cannot be read")
	}
	if err != nil {
		return fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	return nil
}

// FromPage returns a reader of a gauge on a metrics page of the service; its series add up. A page without it changes nothing.
func (s *Sample) FromPage(gauge string) func(io.Reader) error {
	return func(page io.Reader) error {
		return eachMetric(page, func(name model.LabelValue, v float64, kind dto.MetricType) {
			if string(name) == gauge {
				s.addGauge(v)
				s.Counter = kind == dto.MetricType_COUNTER || counter.MatchString(gauge)
			}
		})
	}
}

// FromQuery asks the Prometheus at an address for a gauge now; several series add up.
func (s *Sample) FromQuery(ctx context.Context, address, query string) error {
	ask, err := prometheusAt(address)
	if err != nil {
		return err
	}
	s.Counter = counter.MatchString(query)
	answer, _, err := ask.Query(ctx, query, time.Now())
	if err != nil {
		return fmt.Errorf("query %s from Prometheus at %s: %w", query, Redacted(address), withoutURL(err))
	}
	switch answer := answer.(type) {
	case *model.Scalar:
		s.addGauge(float64(answer.Value))
	case model.Vector:
		for _, series := range answer {
			s.addGauge(float64(series.Value))
		}
	default:
		return fmt.Errorf("query %s from Prometheus at %s: expected a number, got a %s", query, Redacted(address), answer.Type())
	}
	return nil
}

func (s *Sample) addGauge(v float64) {
	if s.Gauge == nil {
		s.Gauge = new(float64)
	}
	*s.Gauge += v
}

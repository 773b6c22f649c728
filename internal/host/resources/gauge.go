package resources

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"
)

var metricName = regexp.MustCompile(`^[a-zA-Z_:][a-zA-Z0-9_:]*$`)

// counter matches a query for a single counter, whose name ends in _total in OpenMetrics. It matches no query with two
// counters, because their difference may be a gauge.
var counter = regexp.MustCompile(`^(?:sum\()?[a-zA-Z_:][a-zA-Z0-9_:]*_total(?:\{[^{}]*\})?\)?$`)

// pidPrefix is the prefix of a value of GAUGE that selects the memory of a process. The process id follows it.
const pidPrefix = "pid:"

// GaugePID returns the process id in a gauge such as pid:1234, or 0 for any other gauge.
func GaugePID(gauge string) int {
	text, isPID := strings.CutPrefix(gauge, pidPrefix)
	pid, err := strconv.Atoi(text)
	if !isPID || err != nil {
		return 0
	}
	return pid
}

// CheckGauge returns an error for an invalid value of GAUGE. The value may be a query if prometheus, the address of a
// server, is not empty.
func CheckGauge(gauge, prometheus string) error {
	if strings.HasPrefix(gauge, pidPrefix) {
		if pid := GaugePID(gauge); pid > 0 {
			return new(Sample).FromProcess(pid)
		}
		return fmt.Errorf("GAUGE must have the id of a process on this machine after pid:, such as pid:1234, got %q", gauge)
	}
	if prometheus == "" && gauge != "" && !metricName.MatchString(gauge) {
		return fmt.Errorf("without PROMETHEUS_URL, GAUGE must be the name of a metric, got %q; set PROMETHEUS_URL to use PromQL", gauge)
	}
	return nil
}

// FromProcess adds to the gauge the resident memory, in bytes, of a process on this machine and of its direct children.
// Pages that processes share count once per process.
func (s *Sample) FromProcess(pid int) error {
	all, err := family(pid)
	for _, p := range all {
		if m, err := p.MemoryInfo(); err == nil {
			s.addGauge(float64(m.RSS))
		}
	}
	if err == nil && s.Gauge == nil {
		err = errors.New("no value")
	}
	if err != nil {
		return fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	return nil
}

// FromPage returns a function that adds the gauge's series of a metrics page, if there are any, and sets Counter.
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

// FromQuery queries the Prometheus server at address for a gauge, adds up the series of the result, and sets Counter.
func (s *Sample) FromQuery(ctx context.Context, address, query string) error {
	client, err := prometheusAt(address)
	if err != nil {
		return err
	}
	s.Counter = counter.MatchString(query)
	answer, _, err := client.Query(ctx, query, time.Now())
	if err != nil {
		return fmt.Errorf("query %s from Prometheus at %s: %w", query, Redact(address), withoutURL(err))
	}
	switch answer := answer.(type) {
	case *model.Scalar:
		s.addGauge(float64(answer.Value))
	case model.Vector:
		for _, series := range answer {
			s.addGauge(float64(series.Value))
		}
	default:
		return fmt.Errorf("query %s from Prometheus at %s: expected a number, got a %s", query, Redact(address), answer.Type())
	}
	return nil
}

// addGauge adds v to the gauge, which is unknown (nil) before the first number. A query may result in NaN, such as 0/0.
func (s *Sample) addGauge(v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) { // a JSON file cannot contain it
		return
	}
	if s.Gauge == nil {
		s.Gauge = new(float64)
	}
	*s.Gauge += v
}

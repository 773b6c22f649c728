package grafana

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

// A View is the data source, time range and variables of an open dashboard.
type View struct {
	Prometheus string           // URL, such as http://127.0.0.1:9090
	Range      prometheus.Range // start, end and step
	Variables  map[string]string
}

// A Series is one line of a graph. It has at least one point.
type Series struct{ *model.SampleStream }

// Last returns the latest value.
func (s Series) Last() float64 { return float64(s.Values[len(s.Values)-1].Value) }

// Ask evaluates a query over the range. It omits NaN and infinite values, and series without other values.
func (v View) Ask(ctx context.Context, expr string) (out []Series, err error) {
	query := v.fill(expr)
	if unknown := variable.FindString(query); unknown != "" {
		return nil, fmt.Errorf("the variable %s has no value: %s", unknown, expr)
	}
	client, err := api.NewClient(api.Config{Address: v.Prometheus})
	if err != nil {
		return nil, fmt.Errorf("query Prometheus: %w", err)
	}
	answer, _, err := prometheus.NewAPI(client).QueryRange(ctx, query, v.Range)
	if err != nil {
		return nil, fmt.Errorf("query Prometheus for %s: %w", query, err)
	}
	matrix, _ := answer.(model.Matrix) // a range query always returns a matrix
	for _, s := range matrix {
		s.Values = slices.DeleteFunc(s.Values, func(p model.SamplePair) bool {
			return math.IsNaN(float64(p.Value)) || math.IsInf(float64(p.Value), 0)
		})
		if len(s.Values) > 0 {
			out = append(out, Series{s})
		}
	}
	return out, nil
}

var variable = regexp.MustCompile(`\$(\w+|\{\w+\})`)

// scrapeInterval is the scrape interval in infra/prometheus. Grafana reads it from the settings of the data source.
const scrapeInterval = 5 * time.Second

// fill replaces variables with their values, and keeps unknown variables. As in Grafana, $__rate_interval is at least
// four scrape intervals, and at least the step plus one scrape interval.
func (v View) fill(expr string) string {
	builtin := map[string]time.Duration{
		"__range": v.Range.End.Sub(v.Range.Start), "__interval": v.Range.Step, "__rate_interval": max(v.Range.Step+scrapeInterval, 4*scrapeInterval),
	}
	return variable.ReplaceAllStringFunc(expr, func(reference string) string {
		name := strings.Trim(reference, "${}")
		if d, ok := builtin[name]; ok {
			return fmt.Sprintf("%.0fs", math.Ceil(d.Seconds()))
		}
		if value, ok := v.Variables[name]; ok {
			return value
		}
		return reference
	})
}

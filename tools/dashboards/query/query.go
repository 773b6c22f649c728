// Package query asks a Prometheus what a dashboard asks, with the dashboard's variables filled in as
// Grafana fills them. The pictures and the tests of the dashboards stand on it.
package query

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

// A View is what somebody sees a dashboard with.
type View struct {
	Prometheus string           // its address, such as http://127.0.0.1:9090
	Range      prometheus.Range // of time, and the distance of the points
	Variables  map[string]string
}

// A Series is one line of a graph, with at least one point.
type Series struct{ *model.SampleStream }

// Last is the latest value.
func (s Series) Last() float64 { return float64(s.Values[len(s.Values)-1].Value) }

// Name fills the pattern of a legend, such as `{{reason}} of {{instance}}`.
func (s Series) Name(pattern string) string {
	return strings.TrimSpace(label.ReplaceAllStringFunc(pattern, func(use string) string {
		return string(s.Metric[model.LabelName(strings.Trim(use, "{} "))])
	}))
}

// Ask evaluates expr over the range. Values that are no number are left out, and series without any other.
func (v View) Ask(ctx context.Context, expr string) (out []Series, err error) {
	filled := v.fill(expr)
	if left := variable.FindString(filled); left != "" {
		return nil, fmt.Errorf("the variable %s has no value: %s", left, expr)
	}
	client, err := api.NewClient(api.Config{Address: v.Prometheus})
	if err != nil {
		return nil, fmt.Errorf("ask Prometheus: %w", err)
	}
	answer, _, err := prometheus.NewAPI(client).QueryRange(ctx, filled, v.Range)
	if err != nil {
		return nil, fmt.Errorf("ask Prometheus %s: %w", filled, err)
	}
	matrix, _ := answer.(model.Matrix) // what a range query returns
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

var (
	label    = regexp.MustCompile(`\{\{\s*\w+\s*\}\}`)
	variable = regexp.MustCompile(`\$(\w+|\{\w+\})`)
)

// scrape is the interval of our scrape configuration; Grafana takes it from the data source.
const scrape = 5 * time.Second

// fill puts values in place of variables, and of Grafana's own by its rules: $__rate_interval is four
// scrapes, or more where the step is wider.
func (v View) fill(expr string) string {
	own := map[string]time.Duration{
		"__range": v.Range.End.Sub(v.Range.Start), "__interval": v.Range.Step, "__rate_interval": max(v.Range.Step+scrape, 4*scrape),
	}
	return variable.ReplaceAllStringFunc(expr, func(use string) string {
		name := strings.Trim(use, "${}")
		if d, ok := own[name]; ok {
			return fmt.Sprintf("%.0fs", math.Ceil(d.Seconds()))
		}
		if value, ok := v.Variables[name]; ok {
			return value
		}
		return use
	})
}

// Package grafana reads the dashboards in grafana/dashboards, and evaluates their queries in the same way as Grafana.
package grafana

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
)

// A Board is one dashboard.
type Board struct {
	Name        string `json:"-"` // file name without .json
	Panels      []Panel
	Annotations struct{ List []Annotation }
	Templating  struct{ List []Variable }
}

// A Panel is a graph, a number, a table, a heat map or the heading of a row.
type Panel struct {
	Type, Title string
	Row         string `json:"-"` // title of the row of the panel
	Targets     []Query
	Panels      []Panel // panels of a collapsed row
}

// A Query is a query in PromQL and the legend of its series.
type Query struct {
	Expr   string
	Legend string `json:"legendFormat"`
}

// An Annotation marks a time range on every graph while its query returns values.
type Annotation struct {
	Name   string
	Target Query
}

// A Variable is a choice at the top of a dashboard.
type Variable struct {
	Type, Name string
	Definition string // label_values(METRIC, LABEL), if the type is "query"
}

// Boards returns all dashboards of the repository at root. Their panels do not include the headings of rows.
func Boards(t testing.TB, root string) (out []Board) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "grafana", "dashboards", "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		name := filepath.Base(file)
		out = append(out, read(t, file, name[:len(name)-len(".json")]))
	}
	return out
}

func read(t testing.TB, file, name string) Board {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	board := Board{Name: name}
	require.NoError(t, json.Unmarshal(text, &board), file)
	var panels []Panel
	row := ""
	for _, p := range board.Panels {
		if p.Type == "row" {
			row = p.Title
			for _, panel := range p.Panels {
				panel.Row = row
				panels = append(panels, panel)
			}
			continue
		}
		p.Row = row
		panels = append(panels, p)
	}
	board.Panels = panels
	return board
}

// Find returns the panel with the given title on the dashboard with the given name.
func Find(t testing.TB, root, name, title string) Panel {
	t.Helper()
	for _, p := range read(t, filepath.Join(root, "grafana", "dashboards", name+".json"), name).Panels {
		if p.Title == title {
			return p
		}
	}
	require.Failf(t, "the dashboard has no such panel", "%s in %s", title, name)
	return Panel{}
}

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

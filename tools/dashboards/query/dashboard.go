// Package query reads dashboards as Grafana does, fills in their variables, and asks a Prometheus
// what each panel asks. The tests and the renderer stand on it, so that both see the very JSON
// that Grafana reads.
package query

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

// A Dashboard is what is drawn of a file.
type Dashboard struct {
	Name        string // of the file, without .json
	Title       string
	Rows        []Row
	Panels      []Panel
	Annotations []Annotation
	Variables   map[string]string // name → query that fills it
}

// A Row is a heading.
type Row struct {
	Title string
	At    dashboard.GridPos
}

// A Panel is one picture or one number.
type Panel struct {
	Title, Unit     string
	Number, Stacked bool
	Limit           *float64
	Below           bool // what is under the limit is bad
	At              dashboard.GridPos
	Queries         []Query
}

// A Query is PromQL with variables, and the pattern for the name of its series.
type Query struct{ Expr, Legend string }

// An Annotation marks the times at which its query has values.
type Annotation struct{ Name, Colour, Expr string }

// words are the fields of an annotation of Prometheus that Grafana knows and the SDK does not.
var words = regexp.MustCompile(`,\s*"(titleFormat|textFormat)": "[^"]*"`)

// Parse reads a dashboard strictly: a field that Grafana does not have is an error.
func Parse(text []byte) (dashboard.Dashboard, error) {
	plugins.RegisterDefaultPlugins()
	var d dashboard.Dashboard
	if err := d.UnmarshalJSONStrict(words.ReplaceAll(text, nil)); err != nil {
		return d, err
	}
	return d, d.Validate()
}

// Load parses all dashboards of a folder.
func Load(folder string) ([]Dashboard, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	var out []Dashboard
	for _, file := range files {
		d, err := load(file)
		if err != nil {
			return nil, fmt.Errorf("read the dashboard %s: %w", file, err)
		}
		out = append(out, d)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("there is no dashboard in %s", folder)
	}
	return out, nil
}

func load(file string) (Dashboard, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return Dashboard{}, err
	}
	raw, err := Parse(text)
	if err != nil {
		return Dashboard{}, err
	}
	name := filepath.Base(file)
	d := Dashboard{Name: name[:len(name)-len(".json")], Title: *raw.Title, Variables: map[string]string{}}
	for _, p := range raw.Panels {
		if p.RowPanel != nil {
			d.Rows = append(d.Rows, Row{Title: *p.RowPanel.Title, At: *p.RowPanel.GridPos})
			continue
		}
		panel, err := read(p.Panel)
		if err != nil {
			return Dashboard{}, err
		}
		d.Panels = append(d.Panels, panel)
	}
	for _, a := range raw.Annotations.List {
		q, ok := dataquery(a.Target)
		if !ok {
			return Dashboard{}, fmt.Errorf("the annotation %q asks no Prometheus", a.Name)
		}
		d.Annotations = append(d.Annotations, Annotation{Name: a.Name, Colour: a.IconColor, Expr: q.Expr})
	}
	for _, v := range raw.Templating.List {
		if v.Type == dashboard.VariableTypeQuery {
			d.Variables[v.Name] = *v.Query.String
		}
	}
	return d, nil
}

func read(raw *dashboard.Panel) (Panel, error) {
	p := Panel{Title: *raw.Title, Number: raw.Type == "stat", At: *raw.GridPos}
	defaults := raw.FieldConfig.Defaults
	if defaults.Unit != nil {
		p.Unit = *defaults.Unit
	}
	if t := defaults.Thresholds; t != nil && len(t.Steps) == 2 {
		p.Limit, p.Below = t.Steps[1].Value, t.Steps[0].Color == "red"
	}
	p.Stacked = stacked(defaults.Custom)
	for _, target := range raw.Targets {
		q, ok := dataquery(target)
		if !ok {
			return Panel{}, fmt.Errorf("the panel %q asks no Prometheus", p.Title)
		}
		p.Queries = append(p.Queries, Query{Expr: q.Expr, Legend: *q.LegendFormat})
	}
	return p, nil
}

func dataquery(target any) (prometheus.Dataquery, bool) {
	switch q := target.(type) {
	case prometheus.Dataquery:
		return q, true
	case *prometheus.Dataquery:
		return *q, true
	}
	return prometheus.Dataquery{}, false
}

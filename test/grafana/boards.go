// Package grafana reads the dashboards in grafana/dashboards, and evaluates their queries in the same way as Grafana.
package grafana

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

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

// Package dashboards is the Grafana dashboards as code. One file holds one dashboard; `go generate`
// writes them to grafana/dashboards, and a test fails where the two differ.
//
// What all dashboards share is said here once: the data source, the shared crosshair, phases as
// annotations, the grid. A dashboard says what it shows and what that rests on.
package dashboards

import (
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

//go:generate go run ./generate ../../grafana/dashboards

// A Board is one dashboard.
type Board struct {
	Name      string // of the file, without .json; the uid is sse-soak-NAME
	Title     string
	About     string
	Variables []Variable
	Rows      []Row
}

// A Variable is a choice at the top of a dashboard, filled by label_values(Metric, From).
type Variable struct {
	Name, Label, About string
	Metric, From       string // label From of Metric
	All                bool   // may be all values at once, and is so at first
}

// A Row is a heading with panels below it, laid from left to right.
type Row struct {
	Title  string
	Panels []Panel
}

// A Panel is one picture or one number.
type Panel struct {
	Title string
	// About says what is seen, what it rests on, and what to think of a bad value. No panel is
	// without it.
	About   string
	Unit    string
	Number  bool // a single number, the latest, rather than a graph
	Width   uint32
	Stacked bool
	Limit   *Limit
	Queries []Query
}

// A Limit is drawn as a line, and colours what is beyond it.
type Limit struct {
	At    float64
	Below bool // values under it are bad, not those from it on
}

// A Query is PromQL and the name of its series.
type Query struct{ Expr, Legend string }

// Boards are all dashboards, in the order of the documentation.
func Boards() []Board {
	return []Board{soak(), backend(), host(), nginx(), k6()}
}

const (
	columns      = 24
	numberHeight = 4
	graphHeight  = 8
)

// JSON is the file that Grafana reads.
func (b Board) JSON() ([]byte, error) {
	d := dashboard.NewDashboardBuilder(b.Title).
		Uid("sse-soak-"+b.Name).
		Description(b.About).
		Tags([]string{tag}).
		Timezone("browser").
		Tooltip(dashboard.DashboardCursorSyncCrosshair).
		Time("now-1h", "now").
		Refresh("5s").
		Timepicker(dashboard.NewTimePickerBuilder().RefreshIntervals([]string{"5s", "10s", "30s", "1m"})).
		Link(siblings())
	d.WithVariable(sourceVariable())
	for _, v := range b.Variables {
		d.WithVariable(v.builder())
	}
	for _, a := range b.annotations() {
		d.Annotation(a)
	}
	id, y := uint32(0), uint32(0)
	for _, row := range b.Rows {
		id++
		d.WithRow(dashboard.NewRowBuilder(row.Title).Id(id).GridPos(dashboard.GridPos{W: columns, H: 1, Y: y}))
		y++
		x, tallest := uint32(0), uint32(0)
		for _, p := range row.Panels {
			if x+p.Width > columns {
				x, y, tallest = 0, y+tallest, 0
			}
			id++
			at := dashboard.GridPos{X: x, Y: y, W: p.Width, H: p.height()}
			d.WithPanel(p.builder(id, at))
			x, tallest = x+p.Width, max(tallest, at.H)
		}
		y += tallest
	}
	built, err := d.Build()
	if err != nil {
		return nil, fmt.Errorf("build the dashboard %s: %w", b.Name, err)
	}
	text, err := withWords(built, b.notes())
	if err != nil {
		return nil, fmt.Errorf("write the dashboard %s: %w", b.Name, err)
	}
	return append(text, '\n'), nil
}

// tag is on all our dashboards, so that each links to the others.
const tag = "sse-soak"

func siblings() cog.Builder[dashboard.DashboardLink] {
	return dashboard.NewDashboardLinkBuilder("sse-soak").
		Type(dashboard.DashboardLinkTypeDashboards).Tags([]string{tag}).KeepTime(true).IncludeVars(true)
}

// source is the data source that was chosen at the top.
func source() common.DataSourceRef {
	return common.DataSourceRef{Type: new("prometheus"), Uid: new("${datasource}")}
}

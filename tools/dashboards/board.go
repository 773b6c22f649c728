// Package dashboards defines the Grafana dashboards in code. `go generate` writes them to grafana/dashboards as JSON,
// and a test fails if a JSON file differs from the code.
package dashboards

import (
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

//go:generate go test -run FilesMatchTheCode . -update

// A Board is one dashboard.
type Board struct {
	Name      string // name of the file without .json; the uid is sse-soak-NAME
	Title     string
	About     string // description of the content and its sources
	Variables []Variable
	Rows      []Row
}

// A Variable is a drop-down list at the top of a dashboard. label_values(Metric, Name) fills the list.
type Variable struct {
	Name, Label, About string
	Metric             string // metric with the label Name
	All                bool   // several values can be selected; all are the default
}

// A Row is a heading with lines of panels below it.
type Row struct {
	Title     string
	Collapsed bool // hides the panels until a click
	lines     []line
}

// A line has panels of one kind and width, side by side.
type line []Panel

// Boards returns all dashboards, in the order of the documentation.
func Boards() []Board {
	return []Board{soak(), machines(), service()}
}

// A Tile is a panel in Grafana's grid or, if Panel is nil, the heading of a row.
type Tile struct {
	Heading   string
	Collapsed bool // the row of the heading is collapsed
	Panel     *Panel
	At        dashboard.GridPos
	ID        uint32
}

// Number of columns of Grafana's grid, and the heights of panels in units of the grid.
const (
	Columns       = 24
	headingHeight = 1
	numberHeight  = 4
	tableHeight   = 6
	graphHeight   = 8
)

// Tiles returns all headings and panels, from top to bottom and from left to right.
func (b Board) Tiles() (out []Tile) {
	y := uint32(0)
	defer func() {
		for i := range out {
			out[i].ID = uint32(i + 1)
		}
	}()
	for _, row := range b.Rows {
		out = append(out, Tile{Heading: row.Title, Collapsed: row.Collapsed, At: dashboard.GridPos{W: Columns, H: headingHeight, Y: y}})
		y += headingHeight
		collapsedEnd := y
		for _, line := range row.lines {
			height, width := uint32(graphHeight), uint32(Columns/len(line))
			switch {
			case line[0].Number:
				height = numberHeight
			case len(line[0].Columns) > 0:
				height = tableHeight
			}
			for i := range line {
				out = append(out, Tile{Panel: &line[i], At: dashboard.GridPos{X: uint32(i) * width, Y: y, W: width, H: height}})
			}
			y += height
		}
		if row.Collapsed {
			y = collapsedEnd
		}
	}
	return out
}

// address returns the address of the panel with the given title, on any board. Grafana prepends its own path prefix.
func address(title string) string {
	for _, b := range Boards() {
		for _, tile := range b.Tiles() {
			if tile.Panel != nil && tile.Panel.Title == title {
				return fmt.Sprintf("/d/sse-soak-%s?viewPanel=%d&${__url_time_range}&${__all_variables}", b.Name, tile.ID)
			}
		}
	}
	panic("no panel has the title " + title)
}

// tag is on all dashboards of this package, so that each links to the others.
const tag = "sse-soak"

// JSON returns the file that Grafana reads.
func (b Board) JSON() ([]byte, error) {
	d := dashboard.NewDashboardBuilder(b.Title).
		Uid("sse-soak-"+b.Name).
		Description(b.About).
		Tags([]string{tag}).
		Timezone("browser").
		Tooltip(dashboard.DashboardCursorSyncCrosshair).
		Time("now-75m", "now").
		Refresh("30s").
		Timepicker(dashboard.NewTimePickerBuilder().RefreshIntervals([]string{"5s", "10s", "30s", "1m"})).
		Link(dashboard.NewDashboardLinkBuilder("sse-soak").
			Type(dashboard.DashboardLinkTypeDashboards).Tags([]string{tag}).KeepTime(true).IncludeVars(true)).
		WithVariable(sourceVariable())
	for _, v := range b.Variables {
		d.WithVariable(v.builder())
	}
	for _, a := range b.Annotations() {
		d.Annotation(a.builder())
	}
	var collapsedRow *dashboard.RowBuilder
	flush := func() {
		if collapsedRow != nil {
			d.WithRow(collapsedRow)
		}
		collapsedRow = nil
	}
	for _, tile := range b.Tiles() {
		switch {
		case tile.Panel == nil:
			flush()
			row := dashboard.NewRowBuilder(tile.Heading).Id(tile.ID).GridPos(tile.At).Collapsed(tile.Collapsed)
			if tile.Collapsed {
				collapsedRow = row
			} else {
				d.WithRow(row)
			}
		case collapsedRow != nil:
			collapsedRow.WithPanel(tile.Panel.builder(tile.ID, tile.At))
		default:
			d.WithPanel(tile.Panel.builder(tile.ID, tile.At))
		}
	}
	flush()
	model, err := d.Build()
	if err != nil {
		return nil, fmt.Errorf("build the dashboard %s: %w", b.Name, err)
	}
	// The SDK moves links and annotations into a menu, where users do not find them.
	for i := range model.Links {
		model.Links[i].Placement = nil
	}
	for i := range model.Annotations.List {
		model.Annotations.List[i].Placement = nil
	}
	text, err := annotatedJSON(model, b.Annotations())
	if err != nil {
		return nil, fmt.Errorf("write the dashboard %s: %w", b.Name, err)
	}
	return append(text, '\n'), nil
}

// source returns the data source that the user selects at the top.
func source() common.DataSourceRef {
	return common.DataSourceRef{Type: cog.ToPtr("prometheus"), Uid: cog.ToPtr("${datasource}")}
}

// sourceVariable returns the variable that selects the data source. The provisioned data source has the uid prometheus.
func sourceVariable() cog.Builder[dashboard.VariableModel] {
	return dashboard.NewDatasourceVariableBuilder("datasource").
		Label("Data source").Type("prometheus").Current(option("Prometheus", "prometheus"))
}

func option(text, value string) dashboard.VariableOption {
	return dashboard.VariableOption{
		Text: dashboard.StringOrArrayOfString{String: &text}, Value: dashboard.StringOrArrayOfString{String: &value},
	}
}

// testID selects the run. Generated ids of runs start with the time, so the latest run is first.
var testID = Variable{Name: "testid", Label: "Run", About: "the tag testid of the k6 process", Metric: "k6_vus"}

func instanceOf(metric, about string) Variable {
	return Variable{Name: "instance", Label: "Instance", About: about, Metric: metric, All: true}
}

func (v Variable) builder() cog.Builder[dashboard.VariableModel] {
	values := fmt.Sprintf("label_values(%s, %s)", v.Metric, v.Name)
	b := dashboard.NewQueryVariableBuilder(v.Name).
		Label(v.Label).Description(v.About).Datasource(source()).
		Query(dashboard.StringOrMap{String: &values}).Definition(values).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).
		Sort(dashboard.VariableSortAlphabeticalDesc)
	if v.All {
		b.IncludeAll(true).AllValue(".*").Multi(true).Current(option("All", "$__all"))
	}
	return b
}

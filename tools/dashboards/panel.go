package dashboards

import (
	"strconv"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	tables "github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// Units of counts. Grafana's own units round: units.Short displays 1195 and 1204 as "1.20 K", and units.EventsPerSecond
// as "1.20K evt/s". TestDifferentValuesLookDifferent checks all panels with Grafana's formatters.
const (
	count             = units.NoUnit // graphs and numbers show it without decimals
	countsPerSecond   = "suffix:/s"
	messagesPerSecond = "suffix:messages/s"
	requestsPerSecond = "suffix:requests/s"
	packetsPerSecond  = "suffix:packets/s"
)

// A Panel is a graph, a number, a table or a heat map.
type Panel struct {
	Title, Unit string
	// About, which must not be empty, describes the panel, its source, and the meaning of a bad value.
	About   string
	Number  bool // the panel is a number: the latest value
	Heat    bool // the panel is a heat map of the buckets of a histogram
	Stacked bool
	Limit   *Limit   // nil: none
	Columns []column // columns of a table; empty: the panel is not a table
	// Details is the title of the panel that a click on this one opens; "": none.
	Details string
	Queries []Query
	// Names replace the values 0, 1, 2 …
	Names []string
	// Decimals is the number of decimals; nil: Grafana derives it from the size of the value.
	Decimals *float64
}

// A Limit is a value that Grafana draws as a line, and that separates good values from bad ones by color.
type Limit struct {
	At    float64
	Below bool // values below At are bad; otherwise At and higher values are bad
}

// A Query is a query in PromQL and the legend of its series.
type Query struct{ Expr, Legend string }

// limit starts the legend of a series that is the limit of another series. Grafana draws such a series dashed.
const limit = "limit "

// graph returns a graph. queries alternates between queries and their legends.
func graph(title, unit, about string, queries ...string) Panel {
	p := Panel{Title: title, Unit: unit, About: about}
	if unit == count {
		p.Decimals = cog.ToPtr(0.)
	}
	for i := 0; i < len(queries); i += 2 {
		p.Queries = append(p.Queries, Query{Expr: queries[i], Legend: queries[i+1]})
	}
	return p
}

func number(title, unit, about, query, legend string) Panel {
	p := graph(title, unit, about, query, legend)
	p.Number = true
	return p
}

// heat returns a heat map of a query for cumulative buckets with the label le.
func heat(title, unit, about, query string) Panel {
	p := graph(title, unit, about, query, "{{le}}")
	p.Heat = true
	return p
}

// A column is one query of a table, with a value for each row. Values from bad upward are red; if bad is 0, none is.
type column struct {
	title, unit, expr string
	bad               float64
}

// table returns a table with a row for each set of labels in the results of its columns.
func table(title, about string, columns ...column) Panel {
	p := Panel{Title: title, Unit: count, About: about, Columns: columns}
	for _, c := range columns {
		p.Queries = append(p.Queries, Query{Expr: c.expr, Legend: c.title})
	}
	return p
}

func (p Panel) withDetails(title string) Panel { p.Details = title; return p }

func (p Panel) withNames(names ...string) Panel { p.Names = names; return p }

// badFrom sets the lowest bad value.
func (p Panel) badFrom(at float64) Panel { p.Limit = &Limit{At: at}; return p }

// badBelow sets the lowest good value.
func (p Panel) badBelow(at float64) Panel { p.Limit = &Limit{At: at, Below: true}; return p }

func (p Panel) stack() Panel { p.Stacked = true; return p }

// asShare sets three decimals. By default, Grafana rounds the share of 99,999 of 100,000 streams to 100.0 %.
func (p Panel) asShare() Panel { p.Decimals = cog.ToPtr(3.); return p }

func (p Panel) builder(id uint32, at dashboard.GridPos) cog.Builder[dashboard.Panel] {
	if p.Number {
		return p.stat(id, at)
	}
	if len(p.Columns) > 0 {
		return p.table(id, at)
	}
	if p.Heat {
		return p.heatmap(id, at)
	}
	return p.timeseries(id, at)
}

func (p Panel) timeseries(id uint32, at dashboard.GridPos) cog.Builder[dashboard.Panel] {
	b := timeseries.NewPanelBuilder().
		Id(id).GridPos(at).Title(p.Title).Description(p.About).Datasource(source()).
		Unit(p.Unit).Targets(p.targets()).Thresholds(p.Limit.steps()).
		LineWidth(1).ShowPoints(common.VisibilityModeNever).
		Legend(common.NewVizLegendOptionsBuilder().
			DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom).ShowLegend(true).
			Calcs([]string{"max", "lastNotNull"})).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending))
	if p.Limit == nil {
		b.AxisSoftMin(0) // the axis starts at zero, unless values are negative
	} else {
		b.ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed)).
			AxisSoftMin(min(0, p.Limit.At)).AxisSoftMax(p.Limit.At)
	}
	if p.Decimals != nil {
		b.Decimals(*p.Decimals)
	}
	for _, q := range p.Queries {
		if strings.HasPrefix(q.Legend, limit) {
			b.OverrideByRegexp("/^"+limit+"/", []dashboard.DynamicConfigValue{
				{Id: "custom.lineStyle", Value: map[string]any{"fill": "dash", "dash": []int{10, 10}}},
			})
		}
	}
	if p.Stacked {
		b.Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal).Group("A")).FillOpacity(30)
	}
	return b
}

func (p Panel) stat(id uint32, at dashboard.GridPos) cog.Builder[dashboard.Panel] {
	color := common.BigValueColorModeNone
	if p.Limit != nil {
		color = common.BigValueColorModeBackground
	}
	b := stat.NewPanelBuilder().
		Id(id).GridPos(at).Title(p.Title).Description(p.About).Datasource(source()).
		Unit(p.Unit).Targets(p.targets()).Thresholds(p.Limit.numberSteps()).
		ColorMode(color).GraphMode(common.BigValueGraphModeArea).Orientation(common.VizOrientationAuto).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"}))
	if p.Details != "" {
		b.DataLinks([]cog.Builder[dashboard.DashboardLink]{dashboard.NewDashboardLinkBuilder(p.Details).Type(dashboard.DashboardLinkTypeLink).Url(address(p.Details))})
	}
	if p.Decimals != nil {
		b.Decimals(*p.Decimals)
	}
	if p.Names != nil {
		names := map[string]dashboard.ValueMappingResult{}
		for i, name := range p.Names {
			names[strconv.Itoa(i)] = dashboard.ValueMappingResult{Text: cog.ToPtr(name), Index: cog.ToPtr(int32(i))}
		}
		b.Mappings([]dashboard.ValueMapping{{ValueMap: &dashboard.ValueMap{Type: dashboard.MappingTypeValueToText, Options: names}}})
	}
	return b
}

// table returns a table that joins the queries of the columns by their labels.
func (p Panel) table(id uint32, at dashboard.GridPos) cog.Builder[dashboard.Panel] {
	b := tables.NewPanelBuilder().
		Id(id).GridPos(at).Title(p.Title).Description(p.About).Datasource(source()).Unit(p.Unit).Targets(p.targets()).MinWidth(60).
		WithTransformation(dashboard.DataTransformerConfig{Id: "merge", Options: map[string]any{}})
	names, exclusions := map[string]any{}, map[string]any{"Time": true}
	for i, c := range p.Columns {
		value := "Value #" + string(rune('A'+i))
		if len(p.Columns) == 1 { // the labels of the rows contain all the information
			exclusions["Value"] = true
		}
		names[value] = c.title
		properties := []dashboard.DynamicConfigValue{{Id: "unit", Value: c.unit}}
		if c.bad != 0 {
			steps := []map[string]any{{"color": "green", "value": nil}, {"color": "red", "value": c.bad}}
			properties = append(properties, dashboard.DynamicConfigValue{Id: "thresholds", Value: map[string]any{"mode": "absolute", "steps": steps}},
				dashboard.DynamicConfigValue{Id: "custom.cellOptions", Value: map[string]any{"type": "color-background"}})
		}
		b.OverrideByName(c.title, properties)
	}
	return b.WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{"excludeByName": exclusions, "renameByName": names}})
}

// heatmap returns a heat map with a row for each bucket. The bounds of buckets are in seconds. Grafana computes the
// count of a bucket as the difference between its value and the value of the next lower bucket.
func (p Panel) heatmap(id uint32, at dashboard.GridPos) cog.Builder[dashboard.Panel] {
	return heatmap.NewPanelBuilder().
		Id(id).GridPos(at).Title(p.Title).Description(p.About).Datasource(source()).
		Unit(p.Unit).Targets(p.targets()).
		YAxis(heatmap.NewYAxisConfigBuilder().Unit(units.Seconds)).
		ShowValue(common.VisibilityModeNever).CellValues(heatmap.NewCellValuesBuilder().Unit(p.Unit)).
		Color(heatmap.NewHeatmapColorOptionsBuilder().Mode(heatmap.HeatmapColorModeScheme).Scheme("Oranges").Fill("dark-orange").Exponent(.3).Steps(64)).
		Tooltip(heatmap.NewHeatmapTooltipBuilder().Mode(common.TooltipDisplayModeSingle).YHistogram(true))
}

// targets returns the queries of the panel. Numbers have range queries, so that their last value remains after the run.
func (p Panel) targets() []cog.Builder[variants.Dataquery] {
	var out []cog.Builder[variants.Dataquery]
	for i, q := range p.Queries {
		target := prometheus.NewDataqueryBuilder().
			Expr(q.Expr).LegendFormat(q.Legend).RefId(string(rune('A' + i))).
			EditorMode(prometheus.QueryEditorModeCode).Datasource(source())
		switch {
		case p.Heat:
			target.Range().Format(prometheus.PromQueryFormatHeatmap)
		case len(p.Columns) > 0:
			target.Instant().Format(prometheus.PromQueryFormatTable)
		default:
			target.Range()
		}
		out = append(out, target)
	}
	return out
}

// steps returns the colors below and above the limit of a graph. Without a limit, all values are green.
func (l *Limit) steps() cog.Builder[dashboard.ThresholdsConfig] {
	if l == nil {
		return thresholds(dashboard.Threshold{Color: "green"})
	}
	base, from := l.colors()
	return thresholds(dashboard.Threshold{Color: base}, dashboard.Threshold{Value: &l.At, Color: from})
}

// numberSteps returns the colors below and above the limit of a number. Negative numbers have no color.
func (l *Limit) numberSteps() cog.Builder[dashboard.ThresholdsConfig] {
	if l == nil {
		return l.steps()
	}
	base, from := l.colors()
	return thresholds(dashboard.Threshold{Color: "transparent"}, dashboard.Threshold{Value: cog.ToPtr(0.), Color: base}, dashboard.Threshold{Value: &l.At, Color: from})
}

func (l *Limit) colors() (base, from string) {
	if l.Below {
		return "red", "green"
	}
	return "green", "red"
}

func thresholds(steps ...dashboard.Threshold) cog.Builder[dashboard.ThresholdsConfig] {
	return dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(steps)
}

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

// Units of counts. Grafana's own units shorten: with units.Short 1195 and 1204 both read "1.20 K", and with
// units.EventsPerSecond "1.20K evt/s". A test reads values of every panel with Grafana's formatters.
const (
	count             = units.NoUnit // whole, unless its panel sets another number of decimals
	countsPerSecond   = "suffix:/s"
	eventsPerSecond   = "suffix:events/s"
	timesPerSecond    = "suffix:times/s"
	requestsPerSecond = "suffix:requests/s"
	packetsPerSecond  = "suffix:packets/s"
)

// A Panel is one graph or one number.
type Panel struct {
	Title, Unit string
	// About describes the panel, its source, and the meaning of a bad value. Every panel has one.
	About   string
	Number  bool // a single number, the latest, rather than a graph
	Heat    bool // a heat map of a histogram's buckets, rather than a graph
	Stacked bool
	Limit   *Limit
	Columns []column // of a table, rather than a graph
	// Details is the title of the panel that a click on this one opens.
	Details string
	Queries []Query
	// Names are shown in place of the values 0, 1, 2 …
	Names []string
	// Decimals is the number of decimals in Grafana, if it is not derived from the size of the value.
	Decimals *float64
}

// A Limit is drawn as a line, and colours values beyond it.
type Limit struct {
	At    float64
	Below bool // values below it are bad; otherwise values from it on
}

// A Query is PromQL and the name of its series.
type Query struct{ Expr, Legend string }

// limit is the prefix of the legend of a series that is a limit of others, which is dashed.
const limit = "limit "

// graph returns a panel of pairs of a query and its legend.
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

// heat returns a panel of a query of cumulative buckets by their label le.
func heat(title, unit, about, query string) Panel {
	p := graph(title, unit, about, query, "{{le}}")
	p.Heat = true
	return p
}

// A column is one query of a table, with a value for each row; from bad on it is coloured (0: never).
type column struct {
	title, unit, expr string
	bad               float64
}

// table returns a panel with a row for each series of its columns.
func table(title, about string, columns ...column) Panel {
	p := Panel{Title: title, Unit: count, About: about, Columns: columns}
	for _, c := range columns {
		p.Queries = append(p.Queries, Query{Expr: c.expr, Legend: c.title})
	}
	return p
}

// withDetails links a panel to the one that explains it.
func (p Panel) withDetails(title string) Panel { p.Details = title; return p }

// withNames shows names in place of the values 0, 1, 2 …
func (p Panel) withNames(names ...string) Panel { p.Names = names; return p }

// badFrom sets the lowest bad value, badBelow the lowest good one.
func (p Panel) badFrom(at float64) Panel  { p.Limit = &Limit{At: at}; return p }
func (p Panel) badBelow(at float64) Panel { p.Limit = &Limit{At: at, Below: true}; return p }
func (p Panel) stack() Panel              { p.Stacked = true; return p }

// asShare sets the decimals of a share, so that one stream of 100,000 is visible, which Grafana would round to 100.0
// %.
func (p Panel) asShare() Panel { p.Decimals = cog.ToPtr(3.); return p }

func (p Panel) builder(id uint32, at dashboard.GridPos) cog.Builder[dashboard.Panel] {
	if p.Number {
		return p.stat(id, at)
	}
	if len(p.Columns) > 0 {
		return p.rows(id, at)
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
		b.AxisSoftMin(0) // a limit below zero, and rates of change, keep their own scale
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
	colour := common.BigValueColorModeNone
	if p.Limit != nil {
		colour = common.BigValueColorModeBackground
	}
	b := stat.NewPanelBuilder().
		Id(id).GridPos(at).Title(p.Title).Description(p.About).Datasource(source()).
		Unit(p.Unit).Targets(p.targets()).Thresholds(p.Limit.numberSteps()).
		ColorMode(colour).GraphMode(common.BigValueGraphModeArea).Orientation(common.VizOrientationAuto).
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

// rows returns a table: one row per machine or runner, worst values coloured.
func (p Panel) rows(id uint32, at dashboard.GridPos) cog.Builder[dashboard.Panel] {
	b := tables.NewPanelBuilder().
		Id(id).GridPos(at).Title(p.Title).Description(p.About).Datasource(source()).Unit(p.Unit).Targets(p.targets()).MinWidth(60).
		WithTransformation(dashboard.DataTransformerConfig{Id: "merge", Options: map[string]any{}})
	names, hidden := map[string]any{}, map[string]any{"Time": true}
	for i, c := range p.Columns {
		value := "Value #" + string(rune('A'+i))
		if len(p.Columns) == 1 { // only its rows have information
			hidden["Value"] = true
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
	return b.WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{"excludeByName": hidden, "renameByName": names}})
}

// heatmap returns a heatmap with a row for each bucket, whose bounds are seconds; Grafana subtracts the lower buckets
// from each.
func (p Panel) heatmap(id uint32, at dashboard.GridPos) cog.Builder[dashboard.Panel] {
	return heatmap.NewPanelBuilder().
		Id(id).GridPos(at).Title(p.Title).Description(p.About).Datasource(source()).
		Unit(p.Unit).Targets(p.targets()).
		YAxis(heatmap.NewYAxisConfigBuilder().Unit(units.Seconds)).
		ShowValue(common.VisibilityModeNever).CellValues(heatmap.NewCellValuesBuilder().Unit(p.Unit)).
		Color(heatmap.NewHeatmapColorOptionsBuilder().Mode(heatmap.HeatmapColorModeScheme).Scheme("Oranges").Fill("dark-orange").Exponent(.3).Steps(64)).
		Tooltip(heatmap.NewHeatmapTooltipBuilder().Mode(common.TooltipDisplayModeSingle).YHistogram(true))
}

// targets returns range queries, also for numbers, so that their last value remains after the run.
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

// steps returns the colours of a limit, which are neutral without a limit.
func (l *Limit) steps() cog.Builder[dashboard.ThresholdsConfig] {
	if l == nil {
		return thresholds(dashboard.Threshold{Color: "green"})
	}
	base, from := l.colours()
	return thresholds(dashboard.Threshold{Color: base}, dashboard.Threshold{Value: &l.At, Color: from})
}

// numberSteps returns steps, which are neutral if there is no number or it is below zero.
func (l *Limit) numberSteps() cog.Builder[dashboard.ThresholdsConfig] {
	if l == nil {
		return l.steps()
	}
	base, from := l.colours()
	return thresholds(dashboard.Threshold{Color: "transparent"}, dashboard.Threshold{Value: cog.ToPtr(0.), Color: base}, dashboard.Threshold{Value: &l.At, Color: from})
}

// colours returns the colours below the limit and from it on.
func (l *Limit) colours() (base, from string) {
	if l.Below {
		return "red", "green"
	}
	return "green", "red"
}

func thresholds(steps ...dashboard.Threshold) cog.Builder[dashboard.ThresholdsConfig] {
	return dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(steps)
}

package dashboards

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

func (p Panel) height() uint32 {
	if p.Number {
		return numberHeight
	}
	return graphHeight
}

func (p Panel) builder(id uint32, at dashboard.GridPos) cog.Builder[dashboard.Panel] {
	if p.Number {
		return p.number(id, at)
	}
	return p.graph(id, at)
}

func (p Panel) graph(id uint32, at dashboard.GridPos) cog.Builder[dashboard.Panel] {
	b := timeseries.NewPanelBuilder().
		Id(id).GridPos(at).Title(p.Title).Description(p.About).Datasource(source()).
		Unit(p.Unit).Targets(p.targets()).Thresholds(p.Limit.steps()).
		LineWidth(1).ShowPoints(common.VisibilityModeNever).
		Legend(common.NewVizLegendOptionsBuilder().
			DisplayMode(common.LegendDisplayModeTable).Placement(common.LegendPlacementBottom).ShowLegend(true).
			Calcs([]string{"min", "max", "lastNotNull"})).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending))
	if p.Limit == nil {
		b.AxisSoftMin(0) // a limit below zero, and rates of change, keep their own scale
	} else {
		b.ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed)).
			AxisSoftMin(min(0, p.Limit.At)).AxisSoftMax(p.Limit.At)
	}
	if p.Stacked {
		b.Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal).Group("A")).FillOpacity(30)
	}
	return b
}

func (p Panel) number(id uint32, at dashboard.GridPos) cog.Builder[dashboard.Panel] {
	colour := common.BigValueColorModeNone
	if p.Limit != nil {
		colour = common.BigValueColorModeBackground
	}
	return stat.NewPanelBuilder().
		Id(id).GridPos(at).Title(p.Title).Description(p.About).Datasource(source()).
		Unit(p.Unit).Targets(p.targets()).Thresholds(p.Limit.steps()).
		ColorMode(colour).GraphMode(common.BigValueGraphModeArea).Orientation(common.VizOrientationAuto).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"}))
}

// targets are range queries for numbers as well: their latest value outlives the run.
func (p Panel) targets() []cog.Builder[variants.Dataquery] {
	var out []cog.Builder[variants.Dataquery]
	for i, q := range p.Queries {
		out = append(out, prometheus.NewDataqueryBuilder().
			Expr(q.Expr).LegendFormat(q.Legend).RefId(string(rune('A'+i))).
			Range().EditorMode(prometheus.QueryEditorModeCode).Datasource(source()))
	}
	return out
}

// steps are the colours of a limit; without one all is neutral.
func (l *Limit) steps() cog.Builder[dashboard.ThresholdsConfig] {
	base, from := "green", "red"
	steps := []dashboard.Threshold{{Value: nil, Color: base}}
	if l != nil {
		if l.Below {
			base, from = from, base
		}
		steps = []dashboard.Threshold{{Value: nil, Color: base}, {Value: &l.At, Color: from}}
	}
	return dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(steps)
}

// atMost draws the first value that is bad.
func atMost(firstBad float64) *Limit { return &Limit{At: firstBad} }

// atLeast draws the lowest value that is good.
func atLeast(leastGood float64) *Limit { return &Limit{At: leastGood, Below: true} }

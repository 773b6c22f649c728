package dashboards

import (
	"encoding/json"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

// An Annotation is a band on every graph for the time in which the query Expr has values. Grafana inserts labels of the
// series into title and text.
type Annotation struct{ Name, Color, Expr, title, text string }

// Annotations returns bands for the phases of a run and for events that affect it.
func (b Board) Annotations() []Annotation {
	run := `{testid!=""}`
	for _, v := range b.Variables {
		if v.Name == testID.Name {
			run = `{testid="$testid"}`
		}
	}
	return []Annotation{
		{
			"Streams open", "blue", whileRising("sum by (testid)", "k6_sse_connection_opened_total"+run),
			"Streams open", "run {{testid}}",
		},
		{
			"Streams close", "purple", whileRising("sum by (testid)", "k6_sse_connection_closed_total"+run),
			"Streams close", "run {{testid}}; streams that close before the end of the run are lost",
		},
		{
			"Action started", "yellow", whileRising("max by (action, testid)", "k6_soak_action"+run),
			"Action {{action}} started", "planned by --at of run {{testid}}; the report lists its effect",
		},
		{
			"Backend restarted", "orange", `changes(process_start_time_seconds{job="backend"}[1m]) > 0`,
			"Backend restarted", "{{instance}}: all its streams were disconnected",
		},
		{
			// The query excludes TargetDown, because a missing exporter does not affect the run.
			"Alert", "red", `ALERTS{alertstate="firing",alertname!="TargetDown"}`,
			"{{alertname}}", "{{severity}} {{testid}}{{instance}}; /prometheus/alerts has the remedy",
		},
	}
}

// whileRising returns a query that has values only while the sum or the maximum of a metric grows. rate() would have no
// values if all streams opened before the first remote write of k6: the counter then starts at its final value.
func whileRising(aggregate, metric string) string {
	query := aggregate + " (" + metric
	return query + ") - (" + query + " offset 15s) or " + query + ") * 0) > 0"
}

func (a Annotation) builder() cog.Builder[dashboard.AnnotationQuery] {
	return dashboard.NewAnnotationQueryBuilder().
		Name(a.Name).Datasource(source()).Enable(true).IconColor(a.Color).
		Target(prometheus.NewDataqueryBuilder().Expr(a.Expr).RefId("Anno").Interval("5s").Range().Datasource(source()))
}

// An annotatedDashboard is a dashboard with the titles and texts of its annotations, which the SDK lacks.
type annotatedDashboard struct {
	dashboard.Dashboard
	Annotations struct {
		List []annotationText `json:"list"`
	} `json:"annotations"`
}

type annotationText struct {
	dashboard.AnnotationQuery
	TitleFormat string `json:"titleFormat"`
	TextFormat  string `json:"textFormat"`
}

func annotatedJSON(d dashboard.Dashboard, annotations []Annotation) ([]byte, error) {
	out := annotatedDashboard{Dashboard: d}
	for i, a := range d.Annotations.List {
		out.Annotations.List = append(out.Annotations.List, annotationText{a, annotations[i].title, annotations[i].text})
	}
	return json.MarshalIndent(out, "", "  ")
}

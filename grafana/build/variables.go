package build

import (
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

// sourceVariable chooses the Prometheus; the provisioned one has the uid prometheus.
func sourceVariable() cog.Builder[dashboard.VariableModel] {
	return dashboard.NewDatasourceVariableBuilder("datasource").
		Label("Data source").Type("prometheus").
		Current(dashboard.VariableOption{Text: text("Prometheus"), Value: text("prometheus")})
}

func text(s string) dashboard.StringOrArrayOfString {
	return dashboard.StringOrArrayOfString{String: &s}
}

// testID chooses the run. Names of runs begin with the time, so the latest comes first.
var testID = Variable{
	Name: "testid", Label: "Run", About: "the tag testid that k6 was given",
	Metric: "k6_vus", From: "testid",
}

// planned is how many streams the run is to hold. k6 writes no such figure, and virtual users
// hold several streams each, so whoever looks says it; a link may carry var-planned=100.
var planned = Variable{
	Name: "planned", Label: "Planned streams", About: "CONNECTIONS of the run", Typed: "1200",
}

// instanceOf chooses among the targets of a scrape job, all of them at first.
func instanceOf(metric, about string) Variable {
	return Variable{Name: "instance", Label: "Instance", About: about, Metric: metric, From: "instance", All: true}
}

func (v Variable) builder() cog.Builder[dashboard.VariableModel] {
	if v.Typed != "" {
		return dashboard.NewTextBoxVariableBuilder(v.Name).
			Label(v.Label).Description(v.About).DefaultValue(dashboard.StringOrMap{String: &v.Typed}).
			Current(dashboard.VariableOption{Text: text(v.Typed), Value: text(v.Typed)})
	}
	values := fmt.Sprintf("label_values(%s, %s)", v.Metric, v.From)
	b := dashboard.NewQueryVariableBuilder(v.Name).
		Label(v.Label).Description(v.About).Datasource(source()).
		Query(dashboard.StringOrMap{String: &values}).Definition(values).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).
		Sort(dashboard.VariableSortAlphabeticalDesc)
	if v.All {
		b.IncludeAll(true).AllValue(".*").Multi(true).
			Current(dashboard.VariableOption{Text: text("All"), Value: text("$__all")})
	}
	return b
}

// annotations mark the phases of a run on every graph, and what disturbed it. Grafana draws a
// region where a query has values other than 0.
func (b Board) annotations() []cog.Builder[dashboard.AnnotationQuery] {
	run := `{testid!=""}`
	for _, v := range b.Variables {
		if v.Name == testID.Name {
			run = `{testid="$testid"}`
		}
	}
	var out []cog.Builder[dashboard.AnnotationQuery]
	for _, a := range []struct{ name, colour, expr string }{
		{"Streams are being opened", "blue", rises("k6_sse_connection_opened_total" + run)},
		{"Streams are being ended", "purple", rises("k6_sse_connection_closed_total" + run)},
		{"Backend restarted", "orange", `changes(process_start_time_seconds{job="backend"}[1m]) > 0`},
		{"Alert", "red", `ALERTS{alertstate="firing"}`},
	} {
		out = append(out, dashboard.NewAnnotationQueryBuilder().
			Name(a.name).Datasource(source()).Enable(true).IconColor(a.colour).
			Target(prometheus.NewDataqueryBuilder().Expr(a.expr).RefId("Anno").Interval("5s").Range().Datasource(source())))
	}
	return out
}

// rises has values while a counter of a run grows. rate() has none where all streams opened
// before k6 first wrote: a counter begins at what it then is, and grows no more.
func rises(counter string) string {
	now := "sum by (testid) (" + counter
	return now + ") - (" + now + " offset 15s) or " + now + ") * 0) > 0"
}

package dashboards

import (
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
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

// instanceOf chooses among the targets of a scrape job, all of them at first.
func instanceOf(metric, about string) Variable {
	return Variable{Name: "instance", Label: "Instance", About: about, Metric: metric, From: "instance", All: true}
}

func (v Variable) builder() cog.Builder[dashboard.VariableModel] {
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

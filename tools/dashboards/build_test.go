package dashboards

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const folder = "../../grafana/dashboards"

var update = flag.Bool("update", false, "update the JSON files")

// extraFields matches the fields of a Prometheus annotation that the SDK does not have.
var extraFields = regexp.MustCompile(`,\s*"(titleFormat|textFormat)": "[^"]*"`)

// parse reads a dashboard. An unknown field or a wrong type is an error.
func parse(text []byte) (dashboard.Dashboard, error) {
	plugins.RegisterDefaultPlugins()
	var d dashboard.Dashboard
	if err := d.UnmarshalJSONStrict(extraFields.ReplaceAll(text, nil)); err != nil {
		return d, err
	}
	return d, d.Validate()
}

func readDashboard(t *testing.T, name string) dashboard.Dashboard {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, name+".json"))
	require.NoError(t, err)
	d, err := parse(text)
	require.NoError(t, err)
	return d
}

func eachDashboard(t *testing.T, check func(t *testing.T, d dashboard.Dashboard)) {
	for _, b := range Boards() {
		t.Run(b.Name, func(t *testing.T) { check(t, readDashboard(t, b.Name)) })
	}
}

func TestFilesMatchTheCode(t *testing.T) {
	for _, b := range Boards() {
		want, err := b.JSON()
		require.NoError(t, err)
		if *update {
			require.NoError(t, os.WriteFile(filepath.Join(folder, b.Name+".json"), want, 0o644))
		}
		got, err := os.ReadFile(filepath.Join(folder, b.Name+".json"))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), "run `go generate -C tools ./...`")
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	require.NoError(t, err)
	require.Len(t, files, len(Boards()), "each file must have its code")
}

// A run counts either noops or the messages of a described service, so each query of a count must include both.
func TestCountsCoverDescribedServices(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(folder, "soak.json"))
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		for _, name := range regexp.MustCompile(`k6_soak_noops_(\w+)`).FindAllStringSubmatch(line, -1) {
			require.Contains(t, line, "k6_soak_messages_"+name[1], line)
		}
	}
}

// Grafana moves links and annotations with a placement into a menu.
func TestCrosshairLinksAndAnnotations(t *testing.T) {
	eachDashboard(t, func(t *testing.T, d dashboard.Dashboard) {
		require.Equal(t, dashboard.DashboardCursorSyncCrosshair, *d.GraphTooltip)
		require.NotEmpty(t, d.Annotations.List)
		for _, link := range d.Links {
			require.Nil(t, link.Placement, link.Title)
		}
		for _, a := range d.Annotations.List {
			require.Nil(t, a.Placement, a.Name)
		}
	})
}

func TestAnnotationText(t *testing.T) {
	for _, b := range Boards() {
		text, err := os.ReadFile(filepath.Join(folder, b.Name+".json"))
		require.NoError(t, err)
		var d struct {
			Annotations struct {
				List []struct{ Name, TitleFormat, TextFormat string }
			}
		}
		require.NoError(t, json.Unmarshal(text, &d))
		require.Len(t, d.Annotations.List, 5)
		for _, a := range d.Annotations.List {
			assert.NotEmpty(t, a.TitleFormat, a.Name)
			assert.Contains(t, a.TextFormat, "{{", a.Name)
		}
	}
}

func TestEveryPanelIsDescribed(t *testing.T) {
	eachDashboard(t, func(t *testing.T, d dashboard.Dashboard) {
		titles := map[string]bool{}
		for _, p := range panels(d) {
			require.NotNil(t, p.Title)
			assert.Contains(t, []string{"timeseries", "stat", "heatmap", "table"}, p.Type, *p.Title)
			assert.False(t, titles[*p.Title], "two panels have the title %q", *p.Title)
			titles[*p.Title] = true
			if assert.NotNil(t, p.Description, *p.Title) {
				assert.Regexp(t, `^[A-Z0-9].{20,}[.]$`, *p.Description, "the description of %s must be a sentence", *p.Title)
			}
		}
	})
}

func TestGridHasNoOverlapAndNoHole(t *testing.T) {
	eachDashboard(t, func(t *testing.T, d dashboard.Dashboard) {
		cells := map[[2]uint32]string{}
		bottom := uint32(0)
		for _, p := range d.Panels {
			at, name := (*dashboard.GridPos)(nil), ""
			if p.RowPanel != nil {
				at, name = p.RowPanel.GridPos, *p.RowPanel.Title
			} else {
				at, name = p.Panel.GridPos, *p.Panel.Title
			}
			require.NotNil(t, at, name)
			assert.LessOrEqual(t, at.X+at.W, uint32(Columns), name)
			assert.Positive(t, at.W*at.H, name)
			for x := at.X; x < at.X+at.W; x++ {
				for y := at.Y; y < at.Y+at.H; y++ {
					cell := [2]uint32{x, y}
					assert.Empty(t, cells[cell], "%q overlaps %q", name, cells[cell])
					cells[cell] = name
				}
			}
			bottom = max(bottom, at.Y+at.H)
		}
		assert.Len(t, cells, int(Columns*bottom), "the panels must fill the grid")
	})
}

// builtInVariables lists the variables that Grafana defines.
var builtInVariables = map[string]bool{"__range": true, "__rate_interval": true, "__interval": true}

var variableUse = regexp.MustCompile(`\$\{?(\w+)`)

func TestVariablesAreDefinedAndUsed(t *testing.T) {
	eachDashboard(t, func(t *testing.T, d dashboard.Dashboard) {
		definitions, uses := map[string]bool{}, map[string]bool{"datasource": true}
		for _, v := range d.Templating.List {
			assert.False(t, definitions[v.Name], "%s is defined twice", v.Name)
			definitions[v.Name] = true
		}
		for _, expr := range expressions(t, d) {
			for _, use := range variableUse.FindAllStringSubmatch(expr, -1) {
				if !builtInVariables[use[1]] {
					assert.True(t, definitions[use[1]], "$%s is not defined: %s", use[1], expr)
				}
				uses[use[1]] = true
			}
		}
		for name := range definitions {
			assert.True(t, uses[name], "$%s is not used", name)
		}
	})
}

func TestQueriesUseTheChosenSource(t *testing.T) {
	eachDashboard(t, func(t *testing.T, d dashboard.Dashboard) {
		for _, p := range panels(d) {
			assert.Equal(t, "${datasource}", *p.Datasource.Uid, *p.Title)
			require.NotEmpty(t, p.Targets, *p.Title)
			refs := map[string]bool{}
			for _, target := range p.Targets {
				q := query(t, target)
				assert.Equal(t, "${datasource}", *q.Datasource.Uid, *p.Title)
				assert.NotEmpty(t, *q.LegendFormat, *p.Title)
				assert.False(t, refs[*q.RefId], "%s: two queries have the ref %s", *p.Title, *q.RefId)
				refs[*q.RefId] = true
			}
		}
	})
}

var recordingRule = regexp.MustCompile(`\b[a-z]+:\w+:\w+`)

// A rule records each name with colons. No query uses a label of a client, which would need a series per client.
func TestQueriesUseRecordedNamesAndNoClientLabels(t *testing.T) {
	files, err := filepath.Glob("../../infra/prometheus/rules/*.yml")
	require.NoError(t, err)
	rules := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, line := range strings.Split(string(text), "\n") {
			if _, name, ok := strings.Cut(line, "record: "); ok {
				rules[strings.TrimSpace(name)] = true
			}
		}
	}
	eachDashboard(t, func(t *testing.T, d dashboard.Dashboard) {
		for _, expr := range expressions(t, d) {
			for _, name := range recordingRule.FindAllString(expr, -1) {
				assert.True(t, rules[name], "no rule records %s", name)
			}
			assert.NotRegexp(t, `[{,( ](id|device|vu|iter)\s*(=|,|\))`, expr)
		}
	})
}

func panels(d dashboard.Dashboard) (out []dashboard.Panel) {
	for _, p := range d.Panels {
		if p.Panel != nil {
			out = append(out, *p.Panel)
		} else {
			out = append(out, p.RowPanel.Panels...)
		}
	}
	return out
}

func query(t *testing.T, target any) prometheus.Dataquery {
	t.Helper()
	switch q := target.(type) {
	case prometheus.Dataquery:
		return q
	case *prometheus.Dataquery:
		return *q
	}
	require.Failf(t, "the target must be a query of Prometheus", "%T", target)
	return prometheus.Dataquery{}
}

func expressions(t *testing.T, d dashboard.Dashboard) (out []string) {
	for _, p := range panels(d) {
		for _, target := range p.Targets {
			out = append(out, query(t, target).Expr)
		}
	}
	for _, a := range d.Annotations.List {
		out = append(out, query(t, a.Target).Expr)
	}
	return out
}

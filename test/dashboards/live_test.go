//go:build dashboards

// Package dashboards evaluates every query of every dashboard on a Prometheus server that has recorded a soak.
package dashboards

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/grafana"
	"github.com/sse-soak/sse-soak/test/untested"
)

func TestEveryQueryReturnsData(t *testing.T) {
	t.Parallel()
	addKernelGaps()
	s := startStack(t)
	a := s.watch(func() { s.soak(length(t))(0) })
	for _, board := range grafana.Boards(t, root) {
		if board.Name == "service" && !s.hasExporter {
			untested.Note(t, "the panels of nginx, because neither nginx-prometheus-exporter nor prometheus-nginx-exporter is installed")
			board.Panels = slices.DeleteFunc(board.Panels, func(p grafana.Panel) bool { return strings.Contains(p.Targets[0].Expr, "nginx_") })
		}
		t.Run(board.Name, func(t *testing.T) { a.board(t, board) })
	}
	t.Run("figures", a.figures)
}

// Refused and lost streams and a killed backend appear in the panels, the annotations and an alert.
func TestDashboardsShowFaults(t *testing.T) {
	t.Parallel()
	const refused = 10
	s := startStack(t, "MAX_CONNECTIONS="+strconv.Itoa(streams-refused))
	a := s.watch(func() {
		wait := s.soak(30)
		s.await(fmt.Sprintf(`sum(testid:k6_streams:open) == %d and on () sum(backend_noops_sent_total) > 0`, streams-refused))
		s.restartBackend()
		wait(99) // k6's exit code for failed thresholds
		// The alert depends on a recording rule, which on busy cores needs more evaluations than watch waits for.
		s.await(`ALERTS{alertstate="firing",alertname="StreamLost"}`)
	})
	a.requireValues(t, map[string]float64{
		"Refused": refused, "Lost": streams - refused, "Ended on request": 0, "Backend restarts": 1, "Checks passed": 0, "Open streams": 0,
		"Opened, of planned": float64(streams-refused) / streams,
	})
	for _, board := range grafana.Boards(t, root) {
		if board.Name == "soak" {
			for _, note := range board.Annotations.List {
				assert.NotEmpty(t, a.series(t, note.Target.Expr), note.Name)
			}
		}
	}
}

// Faults of single noops appear in the panels, and the lost noop causes an alert.
func TestDashboardsShowFaultsOfNoops(t *testing.T) {
	t.Parallel()
	s := startStack(t, "BACKEND_FAULT=drop:id=live-7,noop=2;duplicate:id=live-8,noop=2;reorder:id=live-9,noop=2;corrupt:id=live-60,noop=2")
	a := s.watch(func() { s.soak(30)(99) })
	for _, q := range find(t, "Missed and faulty messages").Targets {
		got := a.series(t, q.Expr)
		if assert.Len(t, got, 1, q.Legend) {
			assert.InDelta(t, 1, got[0].Last(), 0, q.Legend)
		}
	}
	a.requireValues(t, map[string]float64{"Missed": 1, "Faulty": 3, "Lost": 0})
	assert.NotEmpty(t, a.series(t, `ALERTS{alertname="NoopMissed",alertstate="firing",testid="`+testID+`"}`))
}

// watch runs a soak, and returns a querier for a time range that contains the soak.
func (s *stack) watch(soak func()) querier {
	s.await(`min(count_over_time(up[1m])) >= 2`) // the counters must have a value before the run
	a := s.querier(2 * time.Second)
	soak()
	// Two scrape intervals after the end of k6, Prometheus has its last writes, and the rules have recorded them.
	s.await(fmt.Sprintf(`min(timestamp(up)) > %d`, time.Now().Add(2*scrapeInterval).Unix()))
	a.Range.End = time.Now()
	return a
}

// A querier evaluates queries of dashboards on the Prometheus of the stack.
type querier grafana.View

func (a querier) series(t *testing.T, expr string) []grafana.Series {
	t.Helper()
	got, err := grafana.View(a).Ask(context.Background(), expr)
	require.NoError(t, err)
	return got
}

// requireValues asserts the last values of panels of the dashboard soak, by title.
func (a querier) requireValues(t *testing.T, want map[string]float64) {
	t.Helper()
	for title, value := range want {
		got := a.series(t, find(t, title).Targets[0].Expr)
		if assert.Len(t, got, 1, title) {
			assert.InDelta(t, value, got[0].Last(), 0, title)
		}
	}
}

// board calls query for each query of a dashboard, and asserts that each label_values variable of the dashboard has
// values.
func (a querier) board(t *testing.T, b grafana.Board) {
	for _, p := range b.Panels {
		for _, q := range p.Targets {
			a.query(t, b.Name+"/"+p.Title, q.Expr)
		}
	}
	for _, note := range b.Annotations.List {
		a.query(t, "annotation/"+note.Name, note.Target.Expr)
	}
	for _, v := range b.Templating.List {
		if values := labelValues.FindStringSubmatch(v.Definition); values != nil {
			expr := fmt.Sprintf(`group by (%s) (%s{%[1]s!=""})`, values[2], values[1])
			assert.NotEmpty(t, a.series(t, expr), "the variable %s has no values", v.Name)
		}
	}
}

// query asserts that a query returns data. If the query may be empty, its metrics must exist. A query whose metrics
// have no source in this test must only be valid.
func (a querier) query(t *testing.T, name, expr string) {
	t.Helper()
	found := a.series(t, expr)
	if reason, ok := absentSources[name]; ok {
		if reason != noCAdvisor {
			untested.Note(t, "the panel "+name+" on live data: "+reason)
		}
		return
	}
	if len(found) > 0 {
		return
	}
	var absent []string
	for _, metric := range metrics(expr) {
		if len(a.series(t, `count(`+metric+`)`)) == 0 {
			absent = append(absent, metric)
		}
	}
	assert.Empty(t, absent, "%s must query existing metrics", name)
	reason, ok := mayBeEmpty[name]
	if assert.True(t, ok, "%s has no data: %s", name, expr) {
		t.Logf("empty: %s: %s", name, reason)
	}
}

// figures asserts that the panels show the values of a clean soak.
func (a querier) figures(t *testing.T) {
	a.requireValues(t, map[string]float64{
		"Open streams": 0, "Opened, of planned": 1, "Refused": 0, "Lost": 0, "Ended on request": 1, "Sent, not received": 0,
		"Checks passed": 1, "Backend restarts": 0, "Missed": 0, "Faulty": 0, "Runners missing": 0,
	})
	planned := a.series(t, find(t, "Planned and open streams").Targets[0].Expr)
	assert.InDelta(t, streams, planned[0].Last(), 0, "each runner must report the plan of the whole run")
	openStreams := a.series(t, find(t, "Open streams").Targets[0].Expr)
	assert.InDelta(t, streams, highest(openStreams[0]), 0, "maximum of open streams")

	// Streams are open for the length of the run minus 5 s; two intervals allow for their opening and closing.
	minReceived := float64(streams * ((length(t)-5)/interval - 2))
	received := a.series(t, `sum(k6_soak_noops_total{testid="`+testID+`"})`)
	buckets := a.series(t, `sum(k6_soak_lateness_bucket_total{testid="`+testID+`",le="+Inf"})`)
	if assert.Len(t, received, 1) && assert.Len(t, buckets, 1) {
		assert.GreaterOrEqual(t, received[0].Last(), minReceived, "noops received")
		assert.InDelta(t, received[0].Last(), buckets[0].Last(), 0, "the histogram of all runners must contain each noop")
	}
	clientCauses := a.series(t, find(t, "Ended by cause, client").Targets[0].Expr)
	if assert.Len(t, clientCauses, 1) {
		assert.EqualValues(t, "server", clientCauses[0].Metric["reason"])
		assert.InDelta(t, streams, clientCauses[0].Last(), 0)
	}
	serverCauses := a.series(t, find(t, "Ended by cause, server").Targets[0].Expr)
	for _, s := range serverCauses {
		want := 0.0
		if strings.Contains(string(s.Metric["reason"]), "forcedisconnect") {
			want = streams
		}
		assert.InDelta(t, want, s.Last(), 0, s.Metric["reason"])
	}
}

var labelValues = regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`)

func find(t *testing.T, title string) grafana.Panel {
	t.Helper()
	return grafana.Find(t, root, "soak", title)
}

func highest(s grafana.Series) (value float64) {
	for _, p := range s.Values {
		value = max(value, float64(p.Value))
	}
	return value
}

var (
	// labelSets matches the parts of a query whose words are not metrics.
	labelSets = regexp.MustCompile(`\{[^}]*\}`)
	word      = regexp.MustCompile(`[A-Za-z_:][\w:]*`)
	metric    = regexp.MustCompile(`^(?:k6|backend|process|go|node|nginx|container)_`)
)

// metrics returns the names of the metrics in a query, except the names of recording rules.
func metrics(expr string) []string {
	names := word.FindAllString(labelSets.ReplaceAllString(expr, ""), -1)
	return slices.DeleteFunc(names, func(name string) bool { return !metric.MatchString(name) })
}

func TestMetricsSkipsLabelsAndRecordingRules(t *testing.T) {
	assert.Equal(t, []string{"node_load1", "k6_vus"}, metrics(`sum(node_load1{x="go_home"}) / k6_vus + a:node_x:b`))
	assert.Empty(t, metrics(`vector(1)`))
}

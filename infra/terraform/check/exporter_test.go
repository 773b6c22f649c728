//go:build aws

package check

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/sse-soak/sse-soak/test/grafana"
	"github.com/sse-soak/sse-soak/test/promserver"
)

// checkExporter checks that the exporter of the host has the metrics that a run needs, and no ethtool metrics except
// AWS's counters.
func (m *machine) checkExporter() {
	t := m.t
	t.Helper()
	m.sh("printf 'soak_test 7\\n' >/var/lib/prometheus/node-exporter/test.prom")
	resp, err := http.Get("http://" + m.ip + ":9100/metrics")
	require.NoError(t, err)
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	all, err := parser.TextToMetricFamilies(resp.Body)
	require.NoError(t, err)
	succeeded := map[string]bool{}
	for _, metric := range all["node_scrape_collector_success"].GetMetric() {
		succeeded[metric.GetLabel()[0].GetValue()] = metric.GetGauge().GetValue() == 1
	}
	for _, collector := range []string{"tcpstat", "ethtool", "conntrack", "softnet", "textfile", "netstat", "cpu", "pressure"} {
		assert.True(t, succeeded[collector], "%s: %v", collector, succeeded)
	}
	for _, name := range []string{"node_tcp_connection_states", "node_softnet_dropped_total", "node_nf_conntrack_entries", "node_netstat_TcpExt_ListenOverflows", "soak_test"} {
		assert.Contains(t, all, name)
	}
	for name := range all {
		assert.NotRegexp(t, `^node_ethtool_(rx|tx|peer)_`, name, "ethtool must export only AWS's counters of drops, not the driver's counters")
	}
	assert.NotContains(t, m.sh("systemctl list-timers --all"), "prometheus-node-exporter", "no timer may check for updates")
}

// checkDiscovery checks that the stack's Prometheus discovers the hosts with their names, and that the dashboard of the
// machines shows them.
func checkDiscovery(t *testing.T, hosts map[string]string) {
	t.Helper()
	ec2 := httptest.NewServer(describe(t, hosts))
	t.Cleanup(ec2.Close)
	address := "http://" + promserver.Run(t, "127.0.0.1", prometheusConfig(t, ec2.URL))
	instances := func() (names []string) {
		view := grafana.View{Prometheus: address, Range: v1.Range{Start: time.Now().Add(-time.Minute), End: time.Now(), Step: time.Second}}
		result, err := view.Ask(t.Context(), `up{job="node"}`)
		require.NoError(t, err)
		for _, series := range result {
			names = append(names, string(series.Metric["instance"]))
		}
		slices.Sort(names)
		return names
	}
	want := []string{"runner-1", "runner-3"}
	require.Eventually(t, func() bool { return slices.Equal(want, instances()) }, time.Minute, 500*time.Millisecond, "Prometheus must discover the hosts %v", want)

	queries := 0
	for _, board := range grafana.Boards(t, root) {
		for _, panel := range board.Panels {
			if panel.Title != "Machines" {
				continue
			}
			for _, q := range panel.Targets {
				if strings.Contains(q.Expr, "instance:node_") { // a recording rule; this Prometheus has no rules
					continue
				}
				queries++
				require.Eventually(t, func() bool {
					view := grafana.View{Prometheus: address, Range: v1.Range{Start: time.Now().Add(-5 * time.Second), End: time.Now(), Step: time.Second}, Variables: map[string]string{"instance": ".*"}}
					result, err := view.Ask(t.Context(), q.Expr)
					require.NoError(t, err)
					names := map[string]bool{}
					for _, series := range result {
						names[string(series.Metric["instance"])] = true
					}
					return names[want[0]] && names[want[1]]
				}, time.Minute, 500*time.Millisecond, "the panel %s must show the hosts %v: %s", panel.Title, want, q.Expr)
			}
		}
	}
	assert.Positive(t, queries)
}

// prometheusConfig returns the configuration of Prometheus as setup.sh writes it on the stack's host, with EC2 at
// another address. It omits the targets on that host itself.
func prometheusConfig(t *testing.T, ec2 string) string {
	t.Helper()
	setup, err := os.ReadFile(filepath.Join(source, "modules/stack/setup.sh"))
	require.NoError(t, err)
	line := regexp.MustCompile(`(?m)^.*runners-aws\.yml.*$`).Find(setup)
	require.NotEmpty(t, line)
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(dir, "infra/prometheus"), os.DirFS(filepath.Join(root, "infra/prometheus"))))
	run(t, dir, "env", "REGION="+region, "RUN=sse-soak", "bash", "-c", string(line))
	file := filepath.Join(dir, "infra/prometheus/prometheus.yml")
	run(t, dir, "promtool", "check", "config", file)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var config map[string]any
	require.NoError(t, yaml.Unmarshal(text, &config))
	delete(config, "rule_files")
	config["scrape_configs"] = slices.DeleteFunc(config["scrape_configs"].([]any), func(job any) bool {
		discovery, ok := job.(map[string]any)["ec2_sd_configs"].([]any)
		if ok {
			for name, value := range map[string]string{"endpoint": ec2, "access_key": "test", "secret_key": "test"} {
				discovery[0].(map[string]any)[name] = value
			}
		}
		return !ok
	})
	text, err = yaml.Marshal(config)
	require.NoError(t, err)
	return string(text)
}

// describe returns a handler for the action of EC2 that the role of the stack's host allows: DescribeInstances. Its
// responses also contain the stack's host, and a runners' host of another deployment.
func describe(t *testing.T, hosts map[string]string) http.Handler {
	type tag struct {
		Key   string `xml:"key"`
		Value string `xml:"value"`
	}
	type instance struct {
		ID      string `xml:"instanceId"`
		State   string `xml:"instanceState>name"`
		Address string `xml:"privateIpAddress"`
		Image   string `xml:"imageId"`
		Type    string `xml:"instanceType"`
		Zone    string `xml:"placement>availabilityZone"`
		Tags    []tag  `xml:"tagSet>item"`
	}
	all := []instance{
		{ID: "i-stack", State: "running", Address: "127.0.0.9", Tags: []tag{{"Run", "sse-soak"}, {"Host", "stack"}}},
		{ID: "i-other", State: "running", Address: "127.0.0.9", Tags: []tag{{"Run", "second"}, {"Host", "runner-2"}}},
	}
	for name, address := range hosts {
		all = append(all, instance{ID: "i-" + name, State: "running", Address: address, Tags: []tag{{"Run", "sse-soak"}, {"Host", name}}})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("Action") != "DescribeInstances" {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>no</Message></Error></Errors></Response>`)
			return
		}
		selected := slices.Clone(all)
		for n := 1; r.FormValue(fmt.Sprintf("Filter.%d.Name", n)) != ""; n++ {
			key, isTag := strings.CutPrefix(r.FormValue(fmt.Sprintf("Filter.%d.Name", n)), "tag:")
			pattern := r.FormValue(fmt.Sprintf("Filter.%d.Value.1", n))
			selected = slices.DeleteFunc(selected, func(i instance) bool {
				value := i.State
				if isTag {
					value = i.Tags[slices.IndexFunc(i.Tags, func(t tag) bool { return t.Key == key })].Value
				}
				matches, err := path.Match(pattern, value)
				return err != nil || !matches
			})
		}
		response := struct {
			XMLName   xml.Name   `xml:"DescribeInstancesResponse"`
			Instances []instance `xml:"reservationSet>item>instancesSet>item"`
		}{Instances: selected}
		assert.NoError(t, xml.NewEncoder(w).Encode(response))
	})
}

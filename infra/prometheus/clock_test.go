package prometheus

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	prompb "buf.build/gen/go/prometheus/prometheus/protocolbuffers/go"
	"github.com/prometheus/client_golang/api"
	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/results/archive"
	"github.com/sse-soak/sse-soak/test/promserver"
)

// The alert must not depend on the clock of the runner. promtool has only one clock, so this test runs a Prometheus
// server.
func TestRunnerSilentFiresForAnyClock(t *testing.T) {
	t.Parallel()
	rules, err := filepath.Abs("rules")
	require.NoError(t, err)
	address := "http://" + promserver.Run(t, "127.0.0.1", fmt.Sprintf("global: {evaluation_interval: 1s}\nrule_files: ['%s/*.yml']\n", rules))
	to, err := archive.NewRemote(address)
	require.NoError(t, err)
	client, err := api.NewClient(api.Config{Address: address})
	require.NoError(t, err)
	query := func(expr string) model.Vector {
		value, _, err := prometheus.NewAPI(client).Query(t.Context(), expr, time.Now())
		require.NoError(t, err)
		return value.(model.Vector)
	}
	started := time.Now()
	report := func(runner string, clock time.Duration, open float64) {
		var all []*archive.Series
		for name, value := range map[string]float64{"k6_soak_reports_total": time.Since(started).Seconds(), "k6_soak_streams_open": open} {
			all = append(all, &archive.Series{
				Labels:  []*prompb.Label{{Name: "__name__", Value: name}, {Name: "runner", Value: runner}, {Name: "testid", Value: "t"}},
				Samples: []*prompb.Sample{{Value: value, Timestamp: time.Now().Add(clock).UnixMilli()}},
			})
		}
		require.NoError(t, to.Write(t.Context(), all))
	}
	clocks := map[string]time.Duration{"ahead": 4 * time.Minute, "right": 0, "behind": -4 * time.Minute, "ended": 4 * time.Minute}
	require.Eventually(t, func() bool {
		for runner, clock := range clocks {
			report(runner, clock, 600)
		}
		return len(query(`runner:soak_streams:open == 600 and runner:soak_reports:newest`)) == len(clocks)
	}, time.Minute, time.Second, "Prometheus must record the reports of all runners")
	silenceStart := time.Now()
	report("ended", clocks["ended"]+time.Millisecond, 0) // the extra millisecond makes this report later than the previous one
	const alerts = `ALERTS{alertname="RunnerSilent",alertstate="firing"}`
	require.Eventually(t, func() bool { return len(query(alerts)) == 3 }, time.Minute, time.Second, "the alert must fire for three runners")
	require.Less(t, time.Since(silenceStart), 45*time.Second)
	for _, alert := range query(alerts) {
		require.NotEqual(t, model.LabelValue("ended"), alert.Metric["runner"])
	}
}

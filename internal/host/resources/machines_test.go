package resources

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/machine"
	"github.com/sse-soak/sse-soak/test/address"
	"github.com/sse-soak/sse-soak/test/promserver"
	"github.com/sse-soak/sse-soak/test/untested"
)

// nodePage is a page of node_exporter on an AWS host whose driver reports dropped packets of two network cards.
const nodePage = `# TYPE node_ethtool_conntrack_allowance_exceeded untyped
node_ethtool_conntrack_allowance_exceeded{device="ens5"} %d
node_ethtool_conntrack_allowance_exceeded{device="ens6"} 5
# TYPE node_cpu_seconds_total counter
node_cpu_seconds_total{cpu="0",mode="steal"} 1.5
node_cpu_seconds_total{cpu="1",mode="steal"} 2
node_cpu_seconds_total{cpu="0",mode="idle"} 900
node_cpu_seconds_total{cpu="1",mode="idle"} 900
# TYPE node_nf_conntrack_entries gauge
node_nf_conntrack_entries 90
node_nf_conntrack_entries_limit 100
node_boot_time_seconds 1.7e+09
node_uname_info{nodename="ip-10-0-0-7",sysname="Linux"} 1
soak_host_info{boot_id="b-1"} 1
soak_host_notice_timestamp_seconds{what="system-reboot"} 1.7000036e+09
`

func TestMachinesFromPrometheus(t *testing.T) {
	t.Parallel()
	var dropped atomic.Int64
	dropped.Store(100)
	url := watch(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, page) }, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, nodePage, dropped.Load()) })
	started := time.Now()
	var all []*machine.Record
	query := func() *machine.Series {
		var err error
		all, err = MachinesFromPrometheus(t.Context(), url, started, time.Now().Add(Interval), time.Second)
		require.NoError(t, err)
		if len(all) > 0 && all[0].Series("conntrack_allowance_exceeded") != nil {
			return all[0].Series("conntrack_allowance_exceeded")
		}
		return &machine.Series{}
	}
	hasPastSample := func() bool { return query().End == 105 && all[0].FromUS < time.Now().UnixMicro() }
	require.Eventually(t, hasPastSample, time.Minute, 200*time.Millisecond)
	dropped.Add(14)
	require.Eventually(t, func() bool { return query().End == 119 }, time.Minute, 200*time.Millisecond)
	require.Len(t, all, 1, "the backend must not be a machine of its own")
	r := all[0]
	require.Equal(t, []any{"runner-1", "b-1", "ip-10-0-0-7", int64(1_700_000_000), 2}, []any{r.Name, r.Boot, r.Node, r.BootedUnix, r.Cores})
	s := query()
	require.InDelta(t, 14, s.Increase, 0)
	require.Len(t, s.Stretches, 1)
	require.WithinDuration(t, started, s.Stretches[0].From(), time.Minute)
	require.InDelta(t, 3.5, r.Series(machine.Steal).End, 1e-9, "the steal time must be the sum over all cores")
	require.InDelta(t, .9, r.Series(machine.ConntrackEntries).MaxShare, 1e-9)
	require.Equal(t, []machine.Notice{{Name: "system-reboot", AtUS: 1_700_003_600_000_000}}, r.Notices)
	require.NoError(t, r.Check())

	all, err := MachinesFromPrometheus(t.Context(), url, started.Add(-2*time.Hour), started.Add(-time.Hour), time.Second)
	require.NoError(t, err)
	require.Empty(t, all)
	_, err = MachinesFromPrometheus(t.Context(), "http://127.0.0.1:1", started, time.Now(), time.Second)
	require.ErrorContains(t, err, "query the machines")
}

// An invalid record is an error, because a reader would reject its file.
func TestMachinesFromPrometheusRejectsInvalidRecords(t *testing.T) {
	t.Parallel()
	for name, series := range map[string]string{
		"no number": `{"metric":{"instance":"a"},"values":[[%d,"NaN"]]}`,
		"negative":  `{"metric":{"instance":"a"},"values":[[%d,"-1"]]}`,
		"infinite":  `{"metric":{"instance":"a"},"values":[[%d,"+Inf"]]}`,
		"long name": `{"metric":{"instance":"` + strings.Repeat("a", 300) + `"},"values":[[%d,"1"]]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Now()
			address := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if strings.HasSuffix(r.URL.Path, "query_range") {
					fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[`+series+`]}}`, now.Unix())
					return
				}
				fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[]}}`)
			})
			_, err := MachinesFromPrometheus(t.Context(), address, now.Add(-time.Minute), now, time.Second)
			require.ErrorContains(t, err, "invalid record of")
			require.Less(t, len(err.Error()), 400)
		})
	}
}

// A node_exporter with the collectors of the stack reports each counter of this machine under its name in the table,
// and identifies this machine.
func TestNodeExporterHasEachCounter(t *testing.T) {
	t.Parallel()
	binary, err := exec.LookPath("prometheus-node-exporter")
	if err != nil {
		untested.SkipMissing(t, "prometheus-node-exporter is not installed: apt-get install prometheus-node-exporter")
	}
	listen := address.Reserve(t)
	texts := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(texts, "soak.prom"), []byte("soak_host_info{boot_id=\"b-1\"} 1\n"), 0o644))
	ctx, stop := context.WithCancel(context.Background())
	exporter := exec.CommandContext(ctx, binary, "--web.listen-address="+listen, "--collector.ethtool", "--collector.textfile.directory="+texts)
	require.NoError(t, exporter.Start())
	t.Cleanup(func() {
		stop()
		_ = exporter.Wait() // killed
	})
	url := "http://" + promserver.Start(t, strings.TrimPrefix(serve(t, http.NotFound), "http://"), "stack="+listen)
	started := time.Now().Add(-Interval)
	self := machine.New(time.Second)
	self.Sample(time.Now())
	want := self.Record()
	var all []*machine.Record
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		all, err = MachinesFromPrometheus(ctx, url, started, time.Now().Add(Interval), time.Second)
		require.NoError(t, err)
		require.Len(t, all, 1)
		for _, s := range want.Counters {
			if c, _ := machine.CounterOf(s.Name); c.Metric != "" {
				require.NotNil(t, all[0].Series(s.Name), s.Name)
			}
		}
	}, time.Minute, 200*time.Millisecond)
	require.Equal(t, want.Cores, all[0].Cores)
	require.InDelta(t, want.BootedUnix, all[0].BootedUnix, 2)
	name, err := os.Hostname()
	require.NoError(t, err)
	require.Equal(t, []string{"b-1", name}, []string{all[0].Boot, all[0].Node})
}

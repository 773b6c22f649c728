package resources

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/machine"
	"github.com/sse-soak/sse-soak/test/watcher"
)

// nodePage is a page of node_exporter on an AWS host whose driver dropped packets of two network cards.
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
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, nodePage, dropped.Load()) }))
	t.Cleanup(node.Close)
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, page) }))
	t.Cleanup(backend.Close)
	url := "http://" + watcher.Start(t, backend.Listener.Addr().String(), "runner-1="+node.Listener.Addr().String())
	started := time.Now()
	var all []*machine.Record
	query := func() *machine.Series {
		var err error
		all, err = MachinesFromPrometheus(t.Context(), url, started, time.Now().Add(Interval), time.Second)
		require.NoError(t, err)
		if len(all) == 0 {
			return &machine.Series{}
		}
		if s := all[0].Series("conntrack_allowance_exceeded"); s != nil {
			return s
		}
		return &machine.Series{}
	}
	past := func() bool { return query().End == 105 && all[0].FromUS < time.Now().UnixMicro() } // past samples remain
	require.Eventually(t, past, time.Minute, 200*time.Millisecond)
	dropped.Add(14)
	require.Eventually(t, func() bool { return query().End == 119 }, time.Minute, 200*time.Millisecond)
	require.Len(t, all, 1, "the backend is not a machine")
	r := all[0]
	require.Equal(t, []any{"runner-1", "b-1", "ip-10-0-0-7", int64(1_700_000_000), 2}, []any{r.Name, r.Boot, r.Node, r.BootedUnix, r.Cores})
	s := query()
	require.InDelta(t, 14, s.Increase, 0)
	require.Len(t, s.Stretches, 1)
	require.WithinDuration(t, started, s.Stretches[0].From(), time.Minute)
	require.InDelta(t, 3.5, r.Series(machine.Steal).End, 1e-9, "of all cores")
	require.InDelta(t, .9, r.Series(machine.ConntrackEntries).MaxShare, 1e-9)
	require.Equal(t, []machine.Notice{{Name: "system-reboot", AtUS: 1_700_003_600_000_000}}, r.Notices)
	require.NoError(t, r.Check())

	all, err := MachinesFromPrometheus(t.Context(), url, started.Add(-2*time.Hour), started.Add(-time.Hour), time.Second)
	require.NoError(t, err)
	require.Empty(t, all)
	node.Close()
	_, err = MachinesFromPrometheus(t.Context(), node.URL, started, time.Now(), time.Second)
	require.ErrorContains(t, err, "query the machines")
}

// Impossible counters are an error, because a reader would reject their file.
func TestMachinesFromPrometheusRejectsImpossibleCounters(t *testing.T) {
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
			p := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if strings.HasSuffix(r.URL.Path, "query_range") {
					fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[`+series+`]}}`, now.Unix())
					return
				}
				fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[]}}`)
			}))
			t.Cleanup(p.Close)
			_, err := MachinesFromPrometheus(t.Context(), p.URL, now.Add(-time.Minute), now, time.Second)
			require.ErrorContains(t, err, "impossible counters")
			require.Less(t, len(err.Error()), 400)
		})
	}
}

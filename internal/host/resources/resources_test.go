package resources

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/promserver"
)

const page = `# TYPE process_resident_memory_bytes gauge
process_resident_memory_bytes 2.1e+07
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total 12.5
# TYPE backend_streams_open gauge
backend_streams_open 1200
# TYPE go_goroutines gauge
go_goroutines 14
# TYPE process_open_fds gauge
process_open_fds 1215
# TYPE process_max_fds gauge
process_max_fds 20000
# TYPE go_gc_duration_seconds summary
go_gc_duration_seconds{quantile="1"} 0.002
go_gc_duration_seconds_sum 0.5
go_gc_duration_seconds_count 40
`

func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// watch starts a Prometheus server that scrapes a backend and a machine with the name runner-1, and returns its URL.
func watch(t *testing.T, backend, machine http.HandlerFunc) string {
	t.Helper()
	return "http://" + promserver.Start(t, strings.TrimPrefix(serve(t, backend), "http://"), "runner-1="+strings.TrimPrefix(serve(t, machine), "http://"))
}

func TestFromMetricsAddsUpBackends(t *testing.T) {
	t.Parallel()
	s := Sample{Unix: 7, NginxRSS: 3}
	require.NoError(t, s.FromMetrics(strings.NewReader(page)))
	require.Equal(t, uint64(21_000_000), s.BackendRSS)
	require.InDelta(t, 12.5, s.BackendCPU, 1e-9)
	require.Equal(t, []int{1200, 14, 1215}, []int{s.Streams, s.Goroutines, s.Files})
	require.Equal(t, []uint64{20_000, 40}, []uint64{s.MaxFiles, s.BackendGCs})
	require.InDelta(t, .5, s.BackendGCSeconds, 1e-9)
	require.Equal(t, uint64(3), s.NginxRSS, "FromMetrics must not change the values of nginx")
	require.NoError(t, s.FromMetrics(strings.NewReader("")), "a page without these metrics must not be an error")
	require.Equal(t, uint64(21_000_000), s.BackendRSS)
	require.NoError(t, s.FromMetrics(strings.NewReader(page)))
	require.Equal(t, []uint64{42_000_000, 2400, 80}, []uint64{s.BackendRSS, uint64(s.Streams), s.BackendGCs},
		"a second page must be added to the first")
	require.ErrorContains(t, s.FromMetrics(strings.NewReader("<html>")), "read the metrics page of the service")
}

func TestFromStatusReadsNginxCounts(t *testing.T) {
	t.Parallel()
	var s Sample
	const status = "Active connections: 2401 \nserver accepts handled requests\n 12 12 345 \nReading: 0 Writing: 1 Waiting: 0 \n"
	require.NoError(t, s.FromStatus(strings.NewReader(status)))
	require.Equal(t, []uint64{2401, 12, 345}, []uint64{uint64(s.NginxActive), s.NginxAccepted, s.NginxRequests})
	require.ErrorContains(t, s.FromStatus(strings.NewReader("<html>")), "nginx's status page")
}

func TestFromHostReadsThisHost(t *testing.T) {
	t.Parallel()
	var before, after Sample
	before.FromHost()
	after.FromHost()
	require.True(t, before.NetworkKnown)
	require.NotZero(t, before.Available)
	require.Greater(t, before.Memory, before.Available)
	require.NotZero(t, before.BusySeconds)
	require.GreaterOrEqual(t, after.BusySeconds, before.BusySeconds)
	require.GreaterOrEqual(t, after.Retransmits, before.Retransmits)
	require.LessOrEqual(t, before.Overflows, before.Drops, "drops must include overflows")
	require.Positive(t, before.Received, "the bytes and the TCP counters must both be readable")
	m := ThisMachine()
	require.NotZero(t, m.Cores)
	require.NotZero(t, m.Memory)
	require.NotEmpty(t, m.Kernel)
}

func TestSummarizeOmitsRestartsAndGaps(t *testing.T) {
	t.Parallel()
	require.Zero(t, Summarize(nil))
	require.Equal(t, Summary{BackendRSSMax: 5}, Summarize([]Sample{{Unix: 1, BackendRSS: 5, BackendCPU: 9}}))
	require.Zero(t, Summarize([]Sample{{Unix: 1}, {Unix: 1, BackendCPU: 4}}).BackendCPUPercent,
		"samples at the same time must have no average CPU usage")
	got := Summarize([]Sample{
		{Unix: 100}, // unknown
		{Unix: 100, BackendRSS: 5, BackendCPU: 10, NginxRSS: 1, NginxCPU: 1},
		{Unix: 105, BackendRSS: 9, BackendCPU: 11, NginxRSS: 3, NginxCPU: 2},
		{Unix: 110, BackendRSS: 7, BackendCPU: .5, NginxRSS: 2, NginxCPU: 3}, // the backend was restarted
		{Unix: 115, BackendRSS: 7, NginxRSS: 2},                              // no free file descriptor
		{Unix: 120, BackendRSS: 7, BackendCPU: 1.5, NginxRSS: 2, NginxCPU: 3},
	})
	require.Equal(t, Summary{BackendRSSMax: 9, BackendCPUPercent: 10, NginxRSSMax: 3, NginxCPUPercent: 10}, got)
}

func TestReadRejectsIncompleteLines(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "resources.ndjson")
	samples, err := Read(path)
	require.NoError(t, err)
	require.Nil(t, samples)
	require.NoError(t, os.WriteFile(path, []byte(`{"unix_s":5,"backend_rss_bytes":9}`+"\n"+`{"unix_s":10}`+"\n"), 0o600))
	samples, err = Read(path)
	require.NoError(t, err)
	require.Equal(t, []Sample{{Unix: 5, BackendRSS: 9}, {Unix: 10}}, samples)
	for _, damaged := range []string{`{"unix_`, `"unix_s":10}`, "}\n", "]\n"} {
		require.NoError(t, os.WriteFile(path, []byte(`{"unix_s":5}`+"\n"+damaged), 0o600))
		_, err = Read(path)
		require.ErrorContains(t, err, path, damaged)
	}
	_, err = Read(filepath.Dir(path))
	require.Error(t, err)
}

func TestSummarizeSystemOmitsGaps(t *testing.T) {
	t.Parallel()
	sample := func(received, sent uint64, threads int, lookup float64) Sample {
		return Sample{BackendThreads: threads, NginxThreads: 2, Host: Host{System: System{Received: received, Transmitted: sent, LookupMS: lookup}}}
	}
	got := SummarizeSystem([]Sample{
		sample(1000, 500, 7, 3), sample(1500, 700, 9, 0), {}, sample(9000, 9000, 8, 40), sample(9100, 9001, 8, 5),
	})
	require.Equal(t, SystemSummary{
		BackendThreads: 9, NginxThreads: 2, Received: 600, Transmitted: 201, Lookups: 3, LookupP50: 5, LookupMax: 40,
	}, got, "the bytes during a gap must not count")
	require.Zero(t, SummarizeSystem(nil))
}

func TestLookupsResolveNamesOnly(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"http://127.0.0.1:80", "http://[::1]:80/x", "http:///", ""} {
		require.Nil(t, LookupsOf(address), address)
	}
	l := LookupsOf("https://localhost:8443/event")
	require.NotNil(t, l)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { l.Run(ctx); close(done) }()
	var s Sample
	require.Eventually(t, func() bool { s.FromLookups(l); return s.LookupMS > 0 }, time.Minute, time.Millisecond)
	s.FromLookups(l)
	require.Zero(t, s.LookupMS, "only the first sample after a lookup must have its time")
	s.FromLookups(nil)
	cancel()
	<-done
}

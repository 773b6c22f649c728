package resources

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const page = `# TYPE process_resident_memory_bytes gauge
process_resident_memory_bytes 2.1e+07
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total 12.5
# TYPE backend_streams_open gauge
backend_streams_open 1200
# TYPE go_goroutines gauge
go_goroutines 14
process_open_fds 1215
`

func TestFromMetrics(t *testing.T) {
	t.Parallel()
	s := Sample{Unix: 7, NginxRSS: 3}
	require.NoError(t, s.FromMetrics(strings.NewReader(page)))
	require.Equal(t, uint64(21_000_000), s.BackendRSS)
	require.InDelta(t, 12.5, s.BackendCPU, 1e-9)
	require.Equal(t, []int{1200, 14}, []int{s.Streams, s.Goroutines})
	require.Equal(t, uint64(3), s.NginxRSS, "what is not on the page stays")
	require.NoError(t, s.FromMetrics(strings.NewReader("")), "a foreign service need not show anything")
	require.Zero(t, s.BackendRSS)
	require.ErrorContains(t, s.FromMetrics(strings.NewReader("<html>")), "read the backend's metrics")
}

func TestFromNginxAddsUpProcesses(t *testing.T) {
	t.Parallel()
	var s Sample
	s.FromNginx(os.Getpid())
	require.NotZero(t, s.NginxRSS)
	before := s
	s.FromNginx(1 << 30) // there is no such process
	require.Equal(t, before, s)
}

func TestSummarize(t *testing.T) {
	t.Parallel()
	require.Zero(t, Summarize(nil))
	require.Equal(t, Summary{BackendRSSMax: 5}, Summarize([]Sample{{Unix: 1, BackendRSS: 5, BackendCPU: 9}}))
	require.Zero(t, Summarize([]Sample{{Unix: 1}, {Unix: 1, BackendCPU: 4}}).BackendCPUPercent, "no time passed")
	got := Summarize([]Sample{
		{Unix: 100, BackendRSS: 5, BackendCPU: 10, NginxRSS: 1, NginxCPU: 1},
		{Unix: 105, BackendRSS: 9, BackendCPU: 11, NginxRSS: 3, NginxCPU: 2},
		{Unix: 110, BackendRSS: 7, BackendCPU: .5, NginxRSS: 2, NginxCPU: 3}, // the backend was restarted
		{Unix: 120, BackendRSS: 7, BackendCPU: 1.5, NginxRSS: 2, NginxCPU: 3},
	})
	require.Equal(t, Summary{BackendRSSMax: 9, BackendCPUPercent: 10, NginxRSSMax: 3, NginxCPUPercent: 10}, got)
}

func TestRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "resources.ndjson")
	samples, err := Read(path)
	require.NoError(t, err)
	require.Nil(t, samples)
	require.NoError(t, os.WriteFile(path, []byte(`{"unix_s":5,"backend_rss_bytes":9}`+"\n"+`{"unix_s":10}`+"\n"), 0o600))
	samples, err = Read(path)
	require.NoError(t, err)
	require.Equal(t, []Sample{{Unix: 5, BackendRSS: 9}, {Unix: 10}}, samples)
	require.NoError(t, os.WriteFile(path, []byte(`{"unix_s":5}`+"\n"+`{"unix_`), 0o600))
	_, err = Read(path)
	require.ErrorContains(t, err, path)
	_, err = Read(filepath.Dir(path))
	require.Error(t, err)
}

package resources

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFromServiceReadsThisProcess(t *testing.T) {
	t.Parallel()
	var s Sample
	s.FromService([]int{os.Getpid()}, os.Getpid())
	require.NotZero(t, s.BackendRuns)
	require.NotZero(t, s.NginxRuns)
	require.NotZero(t, s.RunSeconds)
	require.NotZero(t, s.NginxRSS)
	require.NotZero(t, s.NginxFiles)
	_, part := math.Modf(100 * s.NginxCPU)
	require.InDelta(t, .5, part, .5-1e-6, "the CPU time must be finer than ticks of 10 ms")
	require.Greater(t, s.NginxFull, 0.)
	require.Less(t, s.NginxFull, 1.)
	s = Sample{}
	s.FromService([]int{1 << 30}, 1<<30) // there is no such process
	require.Equal(t, Sample{}, s)
}

func TestReadThrottledAddsUpCgroups(t *testing.T) {
	t.Parallel()
	var s Sample
	cgroup := t.TempDir()
	s.readThrottled(cgroup)
	require.Equal(t, Sample{}, s, "a cgroup without cpu.stat must add nothing")
	const stat = "usage_usec 77\nnr_periods 50\nnr_throttled 40\nthrottled_usec 9\n"
	require.NoError(t, os.WriteFile(filepath.Join(cgroup, "cpu.stat"), []byte(stat), 0o600))
	s.readThrottled(cgroup)
	s.readThrottled(cgroup)
	require.Equal(t, []uint64{100, 80}, []uint64{s.Periods, s.Throttled}, "the second reading must be added to the first")
}

// The log lines have the format of nginx 1.22.
func TestLogReaderCountsEachLineOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "nginx.log")
	var log LogReader
	require.Zero(t, log.Read(path), "a missing log must have no entries")
	const (
		queue       = `2026/11/22 19:00:00 [error] 7#7: *1 connect() to unix:/run/backend-1.sock failed (11: Resource temporarily unavailable) while connecting to upstream, client: 127.0.0.1` + "\n"
		connections = `2026/11/22 19:00:00 [alert] 7#7: 512 worker_connections are not enough` + "\n"
		files       = `2026/11/22 19:00:00 [crit] 7#7: accept4() failed (24: Too many open files)` + "\n"
		other       = `2026/11/22 19:00:00 [error] 7#7: *1 upstream prematurely closed connection` + "\n"
	)
	f, err := os.Create(path)
	require.NoError(t, err)
	defer f.Close()
	write := func(text string) {
		_, err := f.WriteString(text)
		require.NoError(t, err)
	}
	write(queue + connections + connections + other + queue[:100])
	require.Equal(t, NginxLog{QueueFull: 1, NoConnections: 2}, log.Read(path), "an incomplete line must not be counted")
	write(queue[100:] + files)
	require.Equal(t, NginxLog{QueueFull: 2, NoConnections: 2, NoFiles: 1}, log.Read(path))
	require.Equal(t, NginxLog{QueueFull: 2, NoConnections: 2, NoFiles: 1}, log.Read(path))
	var sum NginxLog
	sum.Add(log.Read(path))
	sum.Add(log.Read(path))
	require.Equal(t, NginxLog{QueueFull: 4, NoConnections: 4, NoFiles: 2}, sum)
}

package resources

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestFromPrometheusReadsBackendAndItsHost(t *testing.T) {
	t.Parallel()
	const retransmits = "# TYPE node_netstat_Tcp_RetransSegs counter\nnode_netstat_Tcp_RetransSegs "
	started := time.Now()
	url := watch(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, page, retransmits, "17\n") },
		func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, retransmits, "1000\n") })
	require.Eventually(t, func() bool {
		response, err := http.Get(url + "/api/v1/query?query=node_netstat_Tcp_RetransSegs")
		if err != nil {
			return false
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		return err == nil && strings.Contains(string(text), `"1000"`) && strings.Contains(string(text), `"17"`)
	}, time.Minute, 100*time.Millisecond, "Prometheus must scrape the target and runner 1, whose host must not count")
	var samples []Sample
	var last Sample
	require.Eventually(t, func() bool {
		var err error
		if samples, err = FromPrometheus(t.Context(), url, started.Add(-time.Minute), time.Now().Add(Interval)); err != nil {
			return false
		}
		last = samples[len(samples)-1]
		return last.BackendRSS != 0
	}, time.Minute, 200*time.Millisecond)
	require.Equal(t, uint64(21_000_000), last.BackendRSS)
	require.InDelta(t, 12.5, last.BackendCPU, 1e-9)
	require.Equal(t, []int{1200, 14, 1215}, []int{last.Streams, last.Goroutines, last.Files})
	require.Equal(t, []uint64{20_000, 40, 17}, []uint64{last.MaxFiles, last.BackendGCs, last.Retransmits})
	require.True(t, last.NetworkKnown)
	require.Zero(t, samples[0].BackendRSS, "a sample from before the first scrape must have no values")
	require.Equal(t, samples[0].Unix+int64(len(samples)-1)*5, last.Unix)

	_, err := FromPrometheus(t.Context(), url, started.Add(-2*time.Hour), started.Add(-time.Hour))
	require.ErrorContains(t, err, `no data from a job "backend"`)
}

func TestErrorsOfPrometheusHideTokens(t *testing.T) {
	t.Parallel()
	const host = "127.0.0.1:1"
	for _, address := range []string{
		"http://me:secret@" + host, "http://secret@" + host, "http://" + host + "/?token=secret",
		"http://me:secret@%zz", "me:secret",
	} {
		_, err := FromPrometheus(t.Context(), address, time.Now().Add(-time.Minute), time.Now())
		require.Error(t, err)
		require.NotContains(t, err.Error(), "secret", address)
	}
}

func TestCopyHostFillsOnlyUnmonitoredHosts(t *testing.T) {
	t.Parallel()
	hostSamples := []Sample{{Unix: 11, Host: Host{BusySeconds: 1}}, {Unix: 16, Host: Host{BusySeconds: 2, NetworkKnown: true}}}
	samples := []Sample{{Unix: 10, BackendRSS: 5}, {Unix: 15, BackendRSS: 6}, {Unix: 20}, {Unix: 25}}
	require.True(t, CopyHost(samples, hostSamples))
	require.Equal(t, []Sample{
		{Unix: 10, BackendRSS: 5}, {Unix: 15, BackendRSS: 6, Host: hostSamples[0].Host},
		{Unix: 20, Host: hostSamples[1].Host}, {Unix: 25, Host: hostSamples[1].Host},
	}, samples)
	monitored := []Sample{{Unix: 15}, {Unix: 20, Host: Host{BusySeconds: 9}}}
	require.False(t, CopyHost(monitored, hostSamples), "gaps must not be filled if Prometheus monitors the host")
	require.Zero(t, monitored[0].Host)
	require.False(t, CopyHost(samples[:1], nil))
}

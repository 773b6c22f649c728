package resources

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/machine"
	"github.com/sse-soak/sse-soak/test/address"
	"github.com/sse-soak/sse-soak/test/untested"
	"github.com/sse-soak/sse-soak/test/watcher"
)

// A node_exporter with the collectors of the stack reports each counter of this machine under its name in the table, and identifies
// this machine.
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
	backend := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(backend.Close)
	url := "http://" + watcher.Start(t, backend.Listener.Addr().String(), "stack="+listen)
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

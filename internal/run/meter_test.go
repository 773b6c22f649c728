package run

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/run/target"
)

// A suite compares later samples with the first one, which must not include streams of the run.
func TestFirstSampleIsTakenBeforeTheLoad(t *testing.T) {
	t.Setenv("PROMETHEUS_URL", "")
	var loaded atomic.Bool
	address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(300 * time.Millisecond)
		fmt.Fprintf(w, "streams %d\n", map[bool]int{true: 60}[loaded.Load()])
	})
	path := filepath.Join(t.TempDir(), "resources.ndjson")
	m := &meter{gaugeTargets: []*target.Target{target.Remote(address, "")}, path: path, interval: time.Second, gauge: "streams", firstSample: make(chan struct{}), start: time.Now()}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); m.run(ctx) }()

	<-m.firstSample
	loaded.Store(true)
	cancel()
	<-done
	samples, err := resources.Read(path)
	require.NoError(t, err)
	require.NotEmpty(t, samples)
	require.NotNil(t, samples[0].Gauge)
	assert.Zero(t, *samples[0].Gauge)
}

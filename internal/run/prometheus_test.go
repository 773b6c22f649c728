package run

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/run/cluster"
	"github.com/sse-soak/sse-soak/internal/run/target"
	"github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// Samples of a Prometheus server that monitors another backend must not replace the samples that show a leak. After an
// attach, the counters of the time before it may explain faults of that time.
func TestPrometheusDoesNotReplaceSamplesOfChecks(t *testing.T) {
	queried := false
	runStart := time.Now().Add(-time.Hour).Truncate(time.Second)
	t.Setenv("PROMETHEUS_URL", serve(t, func(w http.ResponseWriter, r *http.Request) {
		queried = queried || strings.Contains(r.FormValue("query"), `job="backend"`)
		start, err := strconv.ParseFloat(r.FormValue("start"), 64)
		assert.NoError(t, err)
		assert.LessOrEqual(t, start, float64(runStart.Unix()))
		http.Error(w, "no", http.StatusInternalServerError)
	}))
	for _, kind := range append(suite.All(), suite.Default()) {
		queried = false
		s := &session{Config: Config{Suite: kind}, dir: results.Dir(t.TempDir()), runStart: runStart}
		const sample = `{"unix":1,"backend_rss_bytes":1}`
		require.NoError(t, os.WriteFile(s.dir.Path(results.ResourcesFile), []byte(sample+"\n"), 0o600))
		s.queryPrometheus(t.Context(), t.Context(), time.Now().Add(-time.Minute))
		require.Equal(t, kind.Sampling.Optional, queried, kind.Name)
	}
}

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

func TestFailedWritesAreReported(t *testing.T) {
	t.Parallel()
	dir := results.Dir(t.TempDir())
	assert.Empty(t, failedWrites(dir))
	line := `time=x level=error msg="Failed to send the time series data to the endpoint" error="got status code: 401" output="Prometheus remote write"` + "\n"
	for name, text := range map[string]string{"1": line, "2": "", "3": line + line} {
		require.NoError(t, os.WriteFile(dir.Path("k6-runner-"+name+".log"), []byte(text), 0o600))
	}
	assert.Equal(t, "3 remote writes of 2 runners to Prometheus failed (the last: got status code: 401): the dashboards of this run have gaps; the verdict does not depend on them",
		failedWrites(dir))
}

func TestPrometheusPasswordIsOnlyInTheSecret(t *testing.T) {
	for name, value := range map[string]string{"SERVER_URL": "http://p.example/api/v1/write", "USERNAME": "soak", "PASSWORD": "hush-hush"} {
		t.Setenv("K6_PROMETHEUS_RW_"+name, value)
	}
	r := newRig(t, ends)
	d, operator := r.inCluster(t)
	outcome, err := d.session.run(r.graceful, r.force)
	require.NoError(t, err)
	assert.Equal(t, verdict.Pass, outcome)

	objects, err := json.Marshal(operator.objects)
	require.NoError(t, err)
	assert.Contains(t, string(objects), `"--out","experimental-prometheus-rw","--tag","testid=t"`)
	assert.NotContains(t, string(objects), "hush-hush")
	secret, err := operator.typed.CoreV1().Secrets(namespace).Get(t.Context(), cluster.Name("t")+"-token", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "hush-hush", secret.StringData["K6_PROMETHEUS_RW_PASSWORD"])
	r.requireAbsent(t, "hush-hush")
}

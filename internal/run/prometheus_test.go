package run

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/suite"
)

// Samples of a Prometheus that watches another backend must not replace the samples that show a leak.
func TestPrometheusDoesNotReplaceSamplesOfChecks(t *testing.T) {
	queried := false
	t.Setenv("PROMETHEUS_URL", serve(t, func(w http.ResponseWriter, r *http.Request) {
		queried = queried || strings.Contains(r.FormValue("query"), `job="backend"`)
		http.Error(w, "no", http.StatusInternalServerError)
	}))
	for _, kind := range append(suite.All(), suite.Default()) {
		queried = false
		s := newSession(Config{Suite: kind})
		s.dir = results.Dir(t.TempDir())
		const sample = `{"unix":1,"backend_rss_bytes":1}`
		require.NoError(t, os.WriteFile(s.dir.Path(results.ResourcesFile), []byte(sample+"\n"), 0o600))
		s.queryPrometheus(t.Context(), t.Context(), time.Now().Add(-time.Minute))
		require.Equal(t, kind.Sampling.Optional, queried, kind.Name)
	}
}

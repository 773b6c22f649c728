//go:build e2e

package e2e

import (
	"io"
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
	"github.com/sse-soak/sse-soak/test/suspension"
)

// A suspended machine receives nothing, which is not a fault of the service. So a run whose machine was suspended is
// invalid.
func TestSuspendedMachineIsNotAFaultOfTheService(t *testing.T) {
	t.Parallel()
	type load func(t *testing.T) (args []string, isOpen func() bool)
	hasMetric := func(t *testing.T, url, metric string) func() bool {
		return func() bool {
			resp, err := http.Get(url + "/metrics")
			require.NoError(t, err)
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			return err == nil && regexp.MustCompile(metric).Match(text)
		}
	}
	noops := func(args ...string) load {
		return func(t *testing.T) ([]string, func() bool) {
			url := backend(t, "NOOP_INTERVAL=1s")
			return append(args, "--backend-url", url), hasMetric(t, url, "backend_streams_open [1-9][0-9]")
		}
	}
	published := func(args ...string) load {
		return func(t *testing.T) ([]string, func() bool) {
			h := &fakeservice.Hub{ID: fakeservice.DecimalID, History: true, HeartbeatInterval: time.Second, Heartbeat: ":\n\n"}
			args := append(args, publishFlags(describeHub(t, ""), h.Start(t).URL)...)
			return append(args, "--connections", "16", "--seconds", "20"), func() bool {
				_, peak := h.StreamCounts()
				return peak == 16
			}
		}
	}
	finite := func(t *testing.T) ([]string, func() bool) {
		_, url := startModel(t)
		return []string{"finite", "--profile", "smoke", "--seconds", "15", "--backend-url", url}, hasMetric(t, url, `model_requests_total.* [1-9][0-9]`)
	}
	for name, load := range map[string]load{
		"soak":   noops("--connections", "20", "--seconds", "20", "--noop-interval", "1"),
		"resume": published("resume", "--cuts-per-second", "2"),
		"churn":  noops("churn", "--profile", "smoke"),
		"finite": finite,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args, isOpen := load(t)
			m := mark(t)
			r := prepare(t, t.TempDir(), nil, []string{m}, args...)
			clock, err := suspension.Start(r.cmd)
			require.NoError(t, err)
			await(t, "streams must be open", isOpen)
			clock.Suspend(t.Context(), processes(m), 5*time.Second)
			v := r.verdict()
			require.Equal(t, verdict.Invalid, v.Verdict, r.out.String())
			require.Contains(t, v.Sentence, "its machine was suspended for 5", r.out.String())
			t.Log(v.Sentence)
		})
	}
}

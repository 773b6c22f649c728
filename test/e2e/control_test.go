//go:build e2e

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/suspension"
)

// A stopped runner also reads its control group late, so the run is inconclusive. A stopped service does not delay the
// control group, so the lateness is a fault of the service.
func TestControlGroupAttributesLateness(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stop     string // path of the program that is stopped
		want     verdict.Outcome
		wantText string
	}{
		"runner":  {"bin/k6", verdict.Invalid, "while the control group was late too"},
		"backend": {"bin/backend", verdict.Fail, "the load generator did not delay them"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := mark(t)
			r := begin(t, []string{m}, "--connections", "20", "--seconds", "16", "--noop-interval", "2", "--max-late", "0")
			r.awaitStreams("20")
			suspension.Stop(t.Context(), []int{find(t, m, c.stop)}, 3*time.Second, func() {}) // the fault: longer than LATE_MS, shorter than the idle timeout
			v := r.verdict()
			require.Equal(t, c.want, v.Verdict, r.out.String())
			require.Contains(t, v.Reasons[0], c.wantText)
			require.True(t, v.Control.Decides)
			require.Zero(t, v.Control.Lost)
			require.Equal(t, 20, v.Connections.Opened, "streams of the control group must not be counted")
			require.Zero(t, v.Messages.Missed)
			require.Equal(t, c.want == verdict.Invalid, v.Control.LateWithoutGroup == 0, "%+v", v.Control)
		})
	}
}

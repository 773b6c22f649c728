//go:build e2e

package e2e

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/untested"
)

// The test steps the wall clock of the machine by an hour during a soak. That affects all other programs, so the test
// runs only with CALIBRATE=1, and is not part of `make test`.
func TestSteppedClock(t *testing.T) {
	if os.Getenv("CALIBRATE") == "" || os.Geteuid() != 0 {
		untested.Skip(t, "a clock that is stepped during a run, because the test needs root and CALIBRATE=1")
	}
	r := begin(t, nil, "--connections", "50", "--seconds", "25", "--noop-interval", "1", "--max-late", "0")
	r.awaitStreams("50")
	start := time.Now()
	step := func(d time.Duration) {
		now := time.Now().Round(0).Add(d)
		tv := unix.NsecToTimeval(now.UnixNano())
		require.NoError(t, unix.Settimeofday(&tv))
	}
	step(time.Hour)
	offset := time.Now().Round(0).Sub(start.Round(0))
	time.Sleep(4 * time.Second) // the fault
	step(-time.Hour)
	require.Greater(t, offset, 59*time.Minute, "the clock must be stepped")
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.Zero(t, v.Messages.Missed)
	require.Zero(t, v.Messages.Late)
	require.Less(t, v.LatencyMS.Max, 5000.0, "latency must not depend on the wall clock")
	require.InDelta(t, 20, v.EndedUnix-v.StartedUnix, 10)
}

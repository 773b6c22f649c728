//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/reverse"
)

// runVanish runs a soak in which 20 of 100 clients vanish.
func runVanish(t *testing.T, env []string, args ...string) *verdict.Verdict {
	t.Helper()
	return begin(t, env, append([]string{"vanish", "--profile", "smoke", "--late-ms", "20000"}, args...)...).verdict()
}

// The backend of this repository disconnects a client that acknowledges nothing for USER_TIMEOUT.
func TestVanish(t *testing.T) {
	t.Parallel()
	v := runVanish(t, []string{"USER_TIMEOUT=3"}, "--seconds", "26")
	require.Equal(t, verdict.Pass, v.Verdict, reasons(v))
	require.Equal(t, "20 of 100 clients, at once", factOf(v, "vanished"))
	require.Equal(t, 80, v.Connections.Completed)
	require.Equal(t, v.Messages.Received, v.Server.Sent)
	rows := section(v, "The gauge after clients vanished").Rows
	require.Equal(t, []string{"before", "100"}, rows[0])
	require.Equal(t, "80", rows[len(rows)-1][1])
}

// A described service needs the name of its gauge.
func TestVanishOfADescribedService(t *testing.T) {
	t.Parallel()
	service := append(publishFlags(describeBackend(t), backend(t, "NOOP_INTERVAL=1", "USER_TIMEOUT=3")), "--topics", "1", "--seconds", "26", "--max-open-late", "-1")
	v := runVanish(t, nil, append(service, "--gauge", "backend_streams_open")...)
	require.Equal(t, verdict.Pass, v.Verdict, reasons(v))
	require.Contains(t, reasons(v), "20 clients had vanished")
	require.Equal(t, 80, v.Connections.Completed)

	r := begin(t, nil, append([]string{"vanish", "--profile", "smoke"}, service...)...)
	require.Equal(t, 64, r.end(), r.out.String())
	require.Contains(t, r.out.String(), "needs a gauge of its open streams, which shows when it notices a loss; set GAUGE")
}

// nginx keeps streams of vanished clients until TCP times out.
func TestVanishBehindNginx(t *testing.T) {
	t.Parallel()
	reverse.Program(t)
	v := runVanish(t, []string{"USER_TIMEOUT=3"}, "--no-nginx=false", "--seconds", "21", "--gauge", "backend_streams_open")
	require.Equal(t, verdict.Fail, v.Verdict, reasons(v))
	require.Contains(t, reasons(v), "10 s after 20 clients had vanished, the service still counted 20 of them as open (backend_streams_open)")
	require.Equal(t, 80, v.Connections.Completed, "other clients must not be affected")
}

func TestUnrelatedGauge(t *testing.T) {
	t.Parallel()
	v := runVanish(t, nil, "--seconds", "14", "--connections", "40", "--gauge", "process_start_time_seconds")
	require.Equal(t, verdict.Invalid, v.Verdict)
	require.Contains(t, reasons(v), "the gauge process_start_time_seconds does not count the streams")

	r := begin(t, []string{"PROMETHEUS_URL="}, "vanish", "--gauge", "sum(open)")
	require.Equal(t, 64, r.end(), r.out.String())
	require.Contains(t, r.out.String(), "PromQL needs PROMETHEUS_URL")
}

func TestSuitesOfAShareRejectSettings(t *testing.T) {
	t.Parallel()
	target := backend(t, "NOOP_INTERVAL=1") // tried before the script is loaded
	for message, args := range map[string][]string{
		"CUT_SLOW must be 1 if the service has to disconnect slow streams, 0 if it must not, or -1 (either), got 2": {"slow", "--cut-slow", "2"},
		`MAX_OPEN_LATE must be a whole number, got "0.5"`:                                                           {"storm", "--max-open-late", "0.5"},
		fmt.Sprintf("GAUGE must count the open streams, got pid:%d, which is memory", os.Getpid()):                  {"vanish", "--gauge", fmt.Sprintf("pid:%d", os.Getpid())},
	} {
		r := begin(t, nil, append(args, "--profile", "smoke", "--backend-url", target)...)
		require.Equal(t, 64, r.end(), r.out.String())
		require.Contains(t, r.out.String(), message)
	}
}

//go:build e2e

package e2e

import (
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

// nginx keeps streams of vanished clients until TCP times out.
func TestVanishBehindNginx(t *testing.T) {
	t.Parallel()
	reverse.Program(t)
	v := runVanish(t, []string{"USER_TIMEOUT=3"}, "--no-nginx=false", "--seconds", "21", "--gauge", "backend_streams_open")
	require.Equal(t, verdict.Fail, v.Verdict, reasons(v))
	require.Contains(t, reasons(v), "10 s after 20 clients had vanished, the service still counted 20 of them as open (backend_streams_open)")
	require.Equal(t, 80, v.Connections.Completed, "other clients must not be affected")
}

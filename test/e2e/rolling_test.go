//go:build e2e

package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/run/target"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/reverse"
)

// Three backends run behind one nginx, which selects a backend by the client id. An action restarts the backends one
// after the other.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	reverse.Program(t)
	backend, err := filepath.Abs(filepath.Join(root, "bin", "backend"))
	require.NoError(t, err)
	cluster, err := target.StartLocal(t.Context(), target.LocalConfig{Backend: backend, Connections: 60, NoopInterval: time.Second, LogDir: t.TempDir(), Backends: 3})
	require.NoError(t, err)
	t.Cleanup(func() { cluster.Local.Stop(t.Context()) })
	var kills []string
	for _, pid := range cluster.Local.BackendPIDs() {
		kills = append(kills, fmt.Sprintf("kill %d", pid))
	}
	r := begin(t, []string{"BACKEND_TOKEN=" + cluster.Token}, "--backend-url", cluster.URL, "--connections", "60", "--seconds", "30", "--noop-interval", "1", "--reconnect",
		"--at", "6s deploy: "+strings.Join(kills, "; sleep 4; "))
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	e := v.Actions[0].Effect
	require.Equal(t, [2]int{60, 0}, [2]int{e.Lost, e.NotReconnected})
	require.Zero(t, e.Missed+e.Duplicated)
	require.Less(t, e.Peak, 60, "no more than one backend may be down at a time")
	require.Equal(t, verdict.ByNumbers, v.Evidence.Kind, "the ledger of one backend must not be used for all")
}

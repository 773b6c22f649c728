//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
	"github.com/sse-soak/sse-soak/test/services"
	"github.com/sse-soak/sse-soak/test/services/faulty"
)

// changeModule writes a module of load-tests/services with replaced texts, and returns its path.
func changeModule(t *testing.T, name string, oldNew ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "load-tests", "services", name+".js"))
	require.NoError(t, err)
	for i := 0; i < len(oldNew); i += 2 {
		require.Contains(t, string(text), oldNew[i])
	}
	path := filepath.Join(t.TempDir(), name+".js")
	require.NoError(t, os.WriteFile(path, []byte(strings.NewReplacer(oldNew...).Replace(string(text))), 0o600))
	return path
}

// longRun has settings for services that do not resume. With these settings, most messages can be checked.
var longRun = []string{"--seconds", "22", "--publish-rate", fmt.Sprint(2 * serviceTopics)}

// sentToStreams returns the number of messages that the streams receive in total if no message is lost.
func sentToStreams(v *verdict.Verdict) uint64 {
	return v.Messages.Published.Confirmed / serviceTopics * serviceStreams
}

// A service may end its streams after their lifetime. Messages between two streams are expected only if the second one
// resumes the first.
func TestClosedStreamsReconnect(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		options  services.Options
		lifetime [2]string // text in the module, and its replacement
		resumes  bool
		args     []string
	}{
		// Mercure ends a stream after 80 to 100 % of the lifetime, minus 5 s.
		{"mercure", services.Options{Lifetime: 10 * time.Second}, [2]string{"[475, 600]", "[2.5, 6]"}, true, nil},
		// The lifetime is ten times the delay of a reconnect, so that most messages are checked.
		{"pocketbase", services.Options{Lifetime: 7 * time.Second}, [2]string{"[300, 1800]", "[6.5, 8]"}, false, longRun},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := startService(t, c.name, c.options)
			r.Service = changeModule(t, c.name, c.lifetime[0], c.lifetime[1])
			s := soakService(t, r, "lifetime-", faulty.Options{}, c.args...)
			v := s.verdict()
			require.Equal(t, verdict.Pass, v.Verdict, s.out.String())
			require.GreaterOrEqual(t, v.Connections.Reconnected, serviceStreams)
			require.Equal(t, serviceStreams, v.Connections.Completed)
			m, all := v.Messages, sentToStreams(v)
			require.Zero(t, m.Duplicated+m.Reordered+m.Corrupted)
			require.Zero(t, m.Missed)
			require.Zero(t, v.Evidence.Undetectable)
			if c.resumes {
				require.Equal(t, all, m.Received)
			} else {
				require.Greater(t, m.Received, all/2)
			}
		})
	}
}

// The service must end each stream within the lifetime that the description states.
func TestPlannedEndsWithinTheLifetime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hub    *fakeservice.Hub
		reason string
	}{
		"too early": {&fakeservice.Hub{Lifetime: time.Second, History: true}, "before the end of its lifetime (end.lifetime)"},
		"never":     {&fakeservice.Hub{History: true}, "s, longer than its lifetime (end.lifetime)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.hub.ID = fakeservice.DecimalID
			server := c.hub.Start(t)
			r := begin(t, nil, append(publishFlags(describeHub(t, "end: { by: 'server', lifetime: [2.5, 3.5] },"), server.URL),
				"--prefix", "ends-", "--connections", "16", "--seconds", "14")...)
			v := r.verdict()
			require.Equal(t, verdict.Fail, v.Verdict, r.out.String())
			require.Contains(t, reasons(v), c.reason)
		})
	}
}

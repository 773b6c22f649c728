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

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/hub"
	"github.com/sse-soak/sse-soak/test/services"
	"github.com/sse-soak/sse-soak/test/services/faulty"
)

// changed writes a module of load-tests/services with other text in it, and answers its path.
func changed(t *testing.T, name string, oldNew ...string) string {
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

// A service that ends its streams after their lifetime is as described. What was published in between is owed to a
// stream that goes on behind the last message, and to no other.
func TestStreamsThatAServiceEndsComeBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		options  services.Options
		lifetime [2]string
		resumes  bool
		want     verdict.Outcome
	}{
		// Mercure ends a stream after 80 to 100 % of this, less 5 s.
		{"mercure", services.Options{Lifetime: 10 * time.Second}, [2]string{"[475, 600]", "[2.5, 6]"}, true, verdict.Pass},
		{"mercure", services.Options{Lifetime: 10 * time.Second, History: -1}, [2]string{"[475, 600]", "[2.5, 6]"}, false, verdict.Fail},
		{"pocketbase", services.Options{Lifetime: 4 * time.Second}, [2]string{"[300, 1800]", "[3.5, 5]"}, false, verdict.Pass},
	} {
		t.Run(fmt.Sprint(c.name, " ", c.want), func(t *testing.T) {
			t.Parallel()
			r := startService(t, c.name, c.options)
			r.Service = changed(t, c.name, c.lifetime[0], c.lifetime[1])
			s := soakService(t, r, "lifetime-", faulty.Options{})
			v := s.judged()
			require.Equal(t, c.want, v.Verdict, s.out.String())
			require.GreaterOrEqual(t, v.Connections.Reconnected, serviceStreams)
			require.Equal(t, serviceStreams, v.Connections.Completed)
			m := v.Messages
			require.Zero(t, m.Duplicated+m.Reordered+m.Corrupted)
			if c.want == verdict.Fail { // without a history the hub says that messages are missing, and they are
				require.Positive(t, m.Missed)
				require.Positive(t, m.Announced)
				require.Contains(t, reasons(v), "was told at ")
				require.Contains(t, reasons(v), "missed message ")
				return
			}
			require.Zero(t, m.Missed)
			require.Zero(t, v.Evidence.CouldHide)
			if c.resumes {
				require.EqualValues(t, serviceStreams*perTopic, m.Received)
			} else {
				require.Greater(t, m.Received, uint64(serviceStreams*perTopic/2))
			}
		})
	}
}

// With RECONNECT a stream that is cut may come back. Then the service has to send what it missed, if it resumes streams.
func TestACutStreamIsOwedWhatItMissedWhereTheServiceResumes(t *testing.T) {
	t.Parallel()
	const all = serviceStreams * perTopic
	for _, c := range []struct {
		name        string
		options     services.Options
		want        verdict.Outcome
		least, most uint64 // received
	}{
		{"nchan", services.Options{}, verdict.Pass, all, all},
		{"nchan", services.Options{History: -1}, verdict.Fail, all - 3*serviceStreams, all - serviceStreams}, // and it says nothing
		{"sse-starlette", services.Options{}, verdict.Pass, all - 3*serviceStreams, all - serviceStreams},    // it does not resume
	} {
		t.Run(fmt.Sprint(c.name, " ", c.want), func(t *testing.T) {
			t.Parallel()
			r := startService(t, c.name, c.options)
			o := faulty.Options{}
			for n := range serviceStreams { // 1 is that of the trial
				o.Faults = append(o.Faults, faulty.Fault{Kind: faulty.Reset, Stream: n + 2, Message: 3})
			}
			s := soakService(t, r, "cut-", o, "--reconnect")
			v := s.judged()
			require.Equal(t, c.want, v.Verdict, s.out.String())
			require.Len(t, s.proxy.Deeds(), serviceStreams)
			require.Equal(t, serviceStreams, v.Connections.Reconnected)
			require.Equal(t, serviceStreams, v.Connections.Completed)
			m := v.Messages
			require.GreaterOrEqual(t, m.Received, c.least, s.out.String())
			require.LessOrEqual(t, m.Received, c.most, s.out.String())
			require.Zero(t, m.Duplicated+m.Reordered+m.Corrupted)
			require.Zero(t, v.Evidence.CouldHide)
			if c.want == verdict.Fail {
				require.Equal(t, all-m.Received, m.Missed)
				require.Regexp(t, `^cut-[0-9]+ missed messages? 3 .*of topic cut-topic-[0-9]+: `, findings(v, ledger.KindLost)[0])
			}
		})
	}
}

// Each planned end has to come within the lifetime that the description gives a stream, and to cost no message.
func TestPlannedEndsComeWithinTheLifetime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hub    *hub.Hub
		want   verdict.Outcome
		reason string
	}{
		"in time":                    {&hub.Hub{Lifetime: 3 * time.Second, History: true}, verdict.Pass, " reconnects, "},
		"too early":                  {&hub.Hub{Lifetime: time.Second, History: true}, verdict.Fail, "before the lifetime that the service gives a stream (end.lifetime)"},
		"never":                      {&hub.Hub{History: true}, verdict.Fail, "s, over the lifetime that the service gives a stream (end.lifetime)"},
		"in time, and for a message": {&hub.Hub{Lifetime: 3 * time.Second}, verdict.Fail, " missed message"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.hub.ID = hub.Counting
			server := c.hub.Start(t)
			r := begin(t, nil, append(published(describeHub(t, "end: { by: 'server', lifetime: [2.5, 3.5] },"), server.URL),
				"--prefix", "ends-", "--connections", "16", "--seconds", "16", "--runners", "1")...)
			v := r.judged()
			require.Equal(t, c.want, v.Verdict, r.out.String())
			require.Contains(t, reasons(v), c.reason)
		})
	}
}

//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
)

// runSlow runs the suite slow: 4 of 20 clients read nothing for at least 8 s, while the service sends about 10 MB to
// each of them.
func runSlow(t *testing.T, args ...string) *verdict.Verdict {
	t.Helper()
	return begin(t, nil, append([]string{
		"slow", "--profile", "smoke", "--connections", "20", "--seconds", "23", "--after-seconds", "4", "--message-rate", "20", "--late-ms", "20000",
	}, args...)...).verdict()
}

// The backend disconnects a client with over 1 MiB of unread data. A client with full buffers detects the end of its
// stream only when it reads again.
func TestSlow(t *testing.T) {
	t.Parallel()
	v := runSlow(t, "--no-nginx", "--cut-slow", "1")
	require.Equal(t, verdict.Pass, v.Verdict, reasons(v))
	require.Equal(t, "4 of 20, whose clients read nothing for 8 s", factOf(v, "slow streams"))
	require.Contains(t, factOf(v, "outcome"), "4 disconnected")
	require.Equal(t, 16, v.Connections.Completed)
	require.Equal(t, v.Messages.Received+16*160, v.Server.Sent, "the server must count the large messages, too")
	require.NotContains(t, factOf(v, "memory"), "not known")
}

// describeBackend writes a description of the backend in which broadcasts are messages and noops are heartbeats, and
// returns its path.
func describeBackend(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "broadcasts.js")
	require.NoError(t, os.WriteFile(path, []byte(`export default {
		name: 'broadcasts',
		connect: { url: '{base}/event/connect?id={id}' },
		heartbeat: { data: '0', every: 1 },
		message: { event: 'news', seq: 'json:$.seq', run: 'json:$.run', sentAt: 'json:$.t', sum: 'json:$.sum' },
		end: { by: 'request', url: '{base}/event/forcedisconnect?id={id}' },
		resume: { by: 'none' },
		publish: { url: '{base}/event/broadcast?event=news', body: '{"run":"{run}","seq":{seq},"t":{sentAt},"sum":"{sum}","pad":"{padding}"}' },
	};`), 0o600))
	return path
}

// The suite slow fills the buffers of a described service with large published messages. The memory of the service is
// known only from its gauge.
func TestSlowOfADescribedService(t *testing.T) {
	t.Parallel()
	v := runSlow(t, append(publishFlags(describeBackend(t), backend(t, "NOOP_INTERVAL=1")),
		"--topics", "1", "--publish-rate", "20", "--gauge", "process_resident_memory_bytes", "--cut-slow", "1", "--max-open-late", "-1")...)
	require.Equal(t, verdict.Pass, v.Verdict, reasons(v))
	require.Equal(t, "4 of 20, whose clients read nothing for 10 s", factOf(v, "slow streams"))
	require.Contains(t, factOf(v, "outcome"), "4 disconnected")
	require.Equal(t, 16, v.Connections.Completed)
	require.Zero(t, v.Messages.Missed)
	require.Greater(t, v.Messages.Received, uint64(16*160))
	require.NotContains(t, factOf(v, "memory"), "not known")
}

// A service that waits for slow clients delays the broadcasts to other clients.
func TestSlowReadersDelayOthers(t *testing.T) {
	t.Parallel()
	spec := bareService(time.Second)
	spec.Slow = fakeservice.SlowWait
	_, url := startFake(t, spec, fakeservice.Strike{})
	v := runSlow(t, "--backend-url", url, "--max-growth", "-1")
	require.Equal(t, verdict.Fail, v.Verdict, reasons(v))
	require.Regexp(t, "the service did not accept [0-9]+ of [0-9]+ messages while some clients did not read", reasons(v))
}

// A service keeps all data that a slow client does not read. Another client receives a large message twice.
func TestServiceBuffersUnreadDataAndRepeatsAMessage(t *testing.T) {
	t.Parallel()
	spec := bareService(time.Second)
	spec.Slow = fakeservice.SlowKeep
	spec.Copies = func(id string, n int) int {
		if strings.HasSuffix(id, "-7") && n == 5 {
			return 2
		}
		return 1
	}
	_, url := startFake(t, spec, fakeservice.Strike{})
	v := runSlow(t, "--backend-url", url, "--max-growth", "2", "--gauge", "campaign_kept_bytes", "--cut-slow", "0")
	require.Equal(t, verdict.Fail, v.Verdict, reasons(v))
	require.Regexp(t, `the service's memory grew by [0-9.]+ MiB while clients did not read \(limit: 2 MiB, MAX_GROWTH\); at the end the growth was \+0.0 MiB`, reasons(v))
	require.Contains(t, reasons(v), "1 large message arrived twice, or after a later one, on the other streams")
	require.Equal(t, "4 still open, with all messages at the end", factOf(v, "outcome"))
}

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
	"github.com/sse-soak/sse-soak/test/reverse"
)

// runSlow runs the suite slow: 4 of 20 clients read nothing for 8 s, while the service sends about 10 MB to each.
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

// nginx buffers data for slow clients, and keeps their streams. The test copies about 100 MB/s and does not run in
// parallel, so that its publisher has enough CPU.
func TestSlowBehindNginx(t *testing.T) {
	reverse.Program(t)
	v := runSlow(t, "--slow-kb", "16")
	require.Equal(t, verdict.Pass, v.Verdict, reasons(v))
	require.Equal(t, "4 of 20, whose clients read 16 KB/s for 8 s", factOf(v, "slow streams"))
	require.Equal(t, 16, v.Connections.Completed)
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

// The suite slow fills the buffers of a described service by large published messages. The memory of the service is
// known only by its gauge.
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

func TestSlowNeedsFullBuffers(t *testing.T) {
	t.Parallel()
	for message, service := range map[string][]string{
		"publish.body of the description of mine has no {padding}": {describeHub(t, ""), "--topics", "1", "--publish-rate", "10"},
		"the description of sse must have publish":                 {"sse"},
	} {
		r := begin(t, nil, append([]string{"slow", "--profile", "smoke", "--backend-url", "http://127.0.0.1:1", "--service"}, service...)...)
		require.Equal(t, 64, r.end(), r.out.String())
		require.Contains(t, r.out.String(), message)
	}
}

// The suite rejects a service whose streams may end before the slow clients read again.
func TestSlowNeedsLongStreams(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "short.js")
	require.NoError(t, os.WriteFile(path, []byte(`export default {
		name: 'short',
		connect: { url: '{base}/{topic}' },
		message: { seq: 'json:$.seq', run: 'json:$.run' },
		end: { by: 'server', lifetime: 14 },
		publish: { url: '{base}/{topic}', body: '{"run":"{run}","seq":{seq},"pad":"{padding}"}' },
	};`), 0o600))
	r := begin(t, nil, "slow", "--profile", "smoke", "--backend-url", "http://127.0.0.1:1", "--service", path, "--topics", "1", "--publish-rate", "10", "--seconds", "30")
	require.Equal(t, 64, r.end(), r.out.String())
	require.Contains(t, r.out.String(), "short may end its streams after 14 seconds (end.lifetime, TOKEN_TTL)")
	require.Contains(t, r.out.String(), "SECONDS must be at most 19")
}

// broadcaster starts a service without ids. slow is its behavior for clients that do not read.
func broadcaster(t *testing.T, slow string) (url string) {
	t.Helper()
	spec := bareService(time.Second)
	spec.Slow = slow
	_, url = startFake(t, spec, fakeservice.Strike{})
	return url
}

// A service that waits for slow clients delays the broadcasts to other clients.
func TestSlowReadersDelayOthers(t *testing.T) {
	t.Parallel()
	v := runSlow(t, "--backend-url", broadcaster(t, fakeservice.SlowWait), "--max-growth", "-1")
	require.Equal(t, verdict.Fail, v.Verdict, reasons(v))
	require.Regexp(t, "the service did not accept [0-9]+ of [0-9]+ messages while some clients did not read", reasons(v))
}

// The run is longer, because the publisher waits up to 10 s for a response.
func TestSlowReadersDelayADescribedService(t *testing.T) {
	t.Parallel()
	v := runSlow(t, append(publishFlags(describeBackend(t), broadcaster(t, fakeservice.SlowWait)), "--topics", "1", "--publish-rate", "20", "--max-growth", "-1", "--seconds", "32")...)
	require.Equal(t, verdict.Fail, v.Verdict, reasons(v))
	require.Regexp(t, "the service did not accept [0-9]+ of [0-9]+ messages while some clients did not read", reasons(v))
}

func TestServiceBuffersUnreadData(t *testing.T) {
	t.Parallel()
	v := runSlow(t, "--backend-url", broadcaster(t, fakeservice.SlowKeep), "--max-growth", "2", "--gauge", "campaign_kept_bytes", "--cut-slow", "0")
	require.Equal(t, verdict.Fail, v.Verdict, reasons(v))
	require.Regexp(t, `the service's memory grew by [0-9.]+ MiB while clients did not read \(limit: 2 MiB, MAX_GROWTH\); at the end the growth was \+0.0 MiB`, reasons(v))
	require.Equal(t, "4 still open, with all messages at the end", factOf(v, "outcome"))
}

// A large message that a client receives twice fails the run.
func TestSlowCountsDuplicates(t *testing.T) {
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
	v := runSlow(t, "--backend-url", url, "--max-growth", "-1")
	require.Equal(t, verdict.Fail, v.Verdict, reasons(v))
	require.Contains(t, reasons(v), "1 large message arrived twice, or after a later one, on the other streams")
}

func TestSlowWithoutBroadcasts(t *testing.T) {
	t.Parallel()
	v := runSlow(t, "--backend-url", broadcaster(t, ""), "--max-growth", "-1")
	require.Equal(t, verdict.Invalid, v.Verdict, reasons(v))
	require.Contains(t, reasons(v), "the service accepted none of the messages that fill its buffers")

	r := begin(t, nil, "slow", "--profile", "smoke", "--message-rate", "1")
	require.Equal(t, 64, r.end(), r.out.String())
	require.Contains(t, r.out.String(), "a slow client would fall behind by less than 4096 KB (FILL_KB)")
}

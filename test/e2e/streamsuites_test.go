//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
	"github.com/sse-soak/sse-soak/test/reverse"
)

func TestChurn(t *testing.T) {
	t.Parallel()
	r := smoke(t, "churn", "--seed", "7")
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.Regexp(t, `(?m)^00:\d\d/00:09 `, r.out.String(), "the progress line must have the planned length")
	require.Greater(t, v.Connections.Planned, 100)
	require.Equal(t, v.Connections.Planned, v.Connections.Completed)
	require.Positive(t, v.Messages.Received)
	require.Equal(t, v.Messages.Received, v.Server.Sent)
	require.Len(t, section(v, "Streams by lifetime").Rows, 4)
	require.Len(t, section(v, "The backend, early and late").Rows, 4)
}

func TestChurnNamesTheClientWithALoss(t *testing.T) {
	t.Parallel()
	r := begin(t, []string{"BACKEND_FAULT=drop:noop=2"}, "churn", "--profile", "smoke", "--mean-hold", "5", "--runners", "1")
	v := r.verdict()
	require.Equal(t, verdict.Fail, v.Verdict, r.out.String())
	require.EqualValues(t, 1, v.Messages.Missed, reasons(v))
	require.Regexp(t, `churn-\d+ missed noop 2`, reasons(v))
}

// A service acknowledges the request to end a stream, but does not end the stream.
func TestChurnFailsIfStreamsNeverEnd(t *testing.T) {
	t.Parallel()
	service, url := startFake(t, bareService(time.Second), fakeservice.Strike{Fault: fakeservice.Fault{NeverEnds: true}})
	v := smoke(t, "churn", "--end-timeout", "1", "--late-ms", "20000", "--backend-url", url).verdict()
	require.Equal(t, verdict.Fail, v.Verdict, reasons(v))
	opened, _ := service.ClientCounts()
	require.Equal(t, v.Connections.Planned, opened, "each planned stream must be opened")
	require.Equal(t, v.Connections.Planned, v.Connections.Unfinished)
	require.Contains(t, reasons(v), "the server did not end 220 streams within")
}

// tolerantFlags prevent failures that a busy machine would cause while many tests run.
var tolerantFlags = []string{"--late-ms", "20000"}

func TestCapacity(t *testing.T) {
	t.Parallel()
	r := smoke(t, "capacity", tolerantFlags...)
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.Len(t, section(v, "Steps").Rows, 3)
	require.Contains(t, factOf(v, "breaking point"), "not reached: 150 streams")
}

func TestCapacityFindsTheLimit(t *testing.T) {
	t.Parallel()
	r := begin(t, []string{"MAX_CONNECTIONS=120"}, append([]string{"capacity", "--profile", "smoke"}, tolerantFlags...)...)
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.Contains(t, factOf(v, "breaking point"), "between 100 and 150 streams (30 connects failed")
	require.Equal(t, []string{"conservative", "2.5×", "40"}, section(v, "Recommended maximum loads").Rows[0][:3])
}

func TestFanout(t *testing.T) {
	t.Parallel()
	r := smoke(t, "fanout")
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.Regexp(t, `(?m)^00:\d\d/00:47 `, r.out.String(), "the progress line must have the planned length")
	require.Equal(t, "400", factOf(v, "deliveries"), "there must be 5 broadcasts to 20 streams and 5 to 60 streams")
	require.Equal(t, v.Messages.Received+400, v.Server.Sent, "service and clients must count the same messages")
}

// One subscriber receives the second broadcast twice, another one never; the sum of all deliveries is correct. The
// service sets the timestamp of a broadcast 300 ms after the request. The delivery is therefore fast when measured from
// the timestamp, but slow when measured from the request.
func TestFanoutCountsSubscribersAndMeasuresSinceTheRequest(t *testing.T) {
	t.Parallel()
	const delay = 300 * time.Millisecond
	spec := bareService(time.Second)
	spec.Slow, spec.Stamp = fakeservice.SlowKeep, delay
	spec.Copies = func(id string, broadcast int) int {
		switch {
		case broadcast == 2 && id == "fanout-3":
			return 2
		case broadcast == 2 && id == "fanout-4":
			return 0
		}
		return 1
	}
	_, url := startFake(t, spec, fakeservice.Strike{})
	v := smoke(t, "fanout", "--levels", "20", "--late-ms", "20000", "--delivery-seconds", "2", "--backend-url", url).verdict()
	require.Equal(t, verdict.Fail, v.Verdict, reasons(v))
	require.Contains(t, reasons(v), "99 of 100 deliveries arrived in time")
	require.Contains(t, reasons(v), "1 delivery repeated a broadcast that the subscriber had already received")
	require.Equal(t, []uint64{0, 0}, []uint64{v.Messages.Missed, v.Messages.Duplicated}, reasons(v))
	require.Len(t, v.Metrics, 2)
	byStamp, sinceRequest := v.Metrics[0].Value, v.Metrics[1].Value
	require.GreaterOrEqual(t, sinceRequest, float64(delay.Milliseconds()))
	require.GreaterOrEqual(t, sinceRequest-byStamp, 0.9*float64(delay.Milliseconds()), "the timestamp must hide the delay")
}

// goodNoop is a noop as text on the wire.
const goodNoop = "data: 0\n\n"

// faultAboveFifty returns the noops of a service with a fault on the streams beyond the 50th.
func faultAboveFifty(bad func(n int) string) func(string, int) string {
	return func(id string, n int) string {
		var number int
		if _, err := fmt.Sscanf(id, "capacity-%d", &number); err == nil && number >= 50 {
			return bad(n)
		}
		return goodNoop
	}
}

// faultOnAllStreams returns the noops of a service with a fault on all streams.
func faultOnAllStreams(bad func(n int) string) func(string, int) string {
	return func(_ string, n int) string { return bad(n) }
}

func TestCapacityOfBadServices(t *testing.T) {
	t.Parallel()
	silence := func(int) string { return "" }
	everyOtherNoop := func(n int) string { return strings.Repeat(goodNoop, n%2) }
	for _, c := range []struct {
		name     string
		text     func(id string, n int) string
		want     verdict.Outcome
		breaks   string // breaking point
		wantText string
	}{
		{"silent beyond 50", faultAboveFifty(silence), verdict.Pass, "between 50 and 100 streams", ""},
		{"every other noop lost", faultOnAllStreams(everyOtherNoop), verdict.Fail, "below 50 streams", "missed 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			spec := bareService(time.Second)
			spec.Text = c.text
			_, url := startFake(t, spec, fakeservice.Strike{})
			v := begin(t, nil, "capacity", "--profile", "smoke", "--backend-url", url, "--late-ms", "2000").verdict()
			require.Equal(t, c.want, v.Verdict, reasons(v))
			require.Contains(t, factOf(v, "breaking point"), c.breaks)
			require.Contains(t, reasons(v), c.wantText)
		})
	}
}

// Each broadcast arrives, but no noop.
func TestFanoutOfAServiceWithoutNoops(t *testing.T) {
	t.Parallel()
	spec := bareService(time.Second)
	spec.Text, spec.Slow = faultOnAllStreams(func(int) string { return "" }), fakeservice.SlowKeep
	_, url := startFake(t, spec, fakeservice.Strike{})
	v := smoke(t, "fanout", "--levels", "20", "--backend-url", url).verdict()
	require.Equal(t, verdict.Fail, v.Verdict, reasons(v))
	require.Contains(t, reasons(v), "nothing more arrived")
}

// runSlow runs the suite slow. Of 20 clients, 4 read nothing for at least 8 s, while the service sends about 10 MB to
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
	return writeFile(t, "broadcasts.js", `export default {
		name: 'broadcasts',
		connect: { url: '{base}/event/connect?id={id}' },
		heartbeat: { data: '0', every: 1 },
		message: { event: 'news', seq: 'json:$.seq', run: 'json:$.run', sentAt: 'json:$.t', sum: 'json:$.sum' },
		end: { by: 'request', url: '{base}/event/forcedisconnect?id={id}' },
		resume: { by: 'none' },
		publish: { url: '{base}/event/broadcast?event=news', body: '{"run":"{run}","seq":{seq},"t":{sentAt},"sum":"{sum}","pad":"{padding}"}' },
	};`)
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
	require.Regexp(t, "the service did not accept [0-9]+ of [0-9]+ messages while some clients were slow", reasons(v))
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
	require.Regexp(t, `the service's memory grew by [0-9.]+ MiB while clients were slow \(limit: 2 MiB, MAX_GROWTH\); at the end the growth was \+0.0 MiB`, reasons(v))
	require.Contains(t, reasons(v), "1 large message arrived twice, or after a later one, on the other streams")
	require.Equal(t, "4 still open, with all messages at the end", factOf(v, "outcome"))
}

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

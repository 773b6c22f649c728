package soak

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// A process has thousands of holdStreams.
func TestHoldStreamSize(t *testing.T) {
	t.Parallel()
	if unsafe.Sizeof(uintptr(0)) == 8 {
		require.LessOrEqual(t, unsafe.Sizeof(holdStream{}), uintptr(80))
		require.LessOrEqual(t, unsafe.Sizeof(jsLedger{}), uintptr(128))
	}
}

func TestHoldLifecycle(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := &noopService{}
		h := holderOf(t, s.serve(t), "")
		start := time.Now()
		require.True(t, h.run(t, holdTen))
		require.Equal(t, 2*time.Second, time.Since(start))
		require.Equal(t, map[ledger.State]int{ledger.Completed: 10}, h.states())
		require.Equal(t, map[string][2]float64{"Get status was 200": {10, 10}, "Delete status was 200": {10, 10}, "Received all messages": {10, 10}}, h.metricSums("checks", "check"))
		require.Equal(t, map[string][2]float64{"DELETE /event/forcedisconnect": {10, 10}}, h.metricSums("http_reqs", "name"))
		require.Equal(t, map[string][2]float64{"DELETE": {10, 10}}, h.metricSums("http_reqs", "method"))
		require.Equal(t, map[string][2]float64{"true": {0, 10}}, h.metricSums("http_req_failed", "expected_response"))
		require.Equal(t, map[string][2]float64{"GET /event/connect": {10, 10}}, h.metricSums("sse_connection_opened", "name"))
		require.Equal(t, map[string][2]float64{"server": {10, 10}}, h.metricSums("sse_connection_closed", "reason"))
		require.Equal(t, strings.Repeat("Bearer x ", 10), strings.Join(s.connects, " ")+" ")
		ends := shardOf(h.r).EndRequests
		require.Len(t, ends.Outcomes, 1)
		require.Equal(t, "backend-1", ends.Outcomes[0].Server)
		require.Equal(t, shard.CodeOK, ends.Outcomes[0].Code)
		require.EqualValues(t, 10, ends.Outcomes[0].Duration.Count())
	})
}

// k6 accepts no samples after the end of an iteration, so the iteration waits for its last check, even if k6 is slow.
func TestHoldEndsWithItsLastCheck(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := &noopService{}
		h := holderOf(t, s.serve(t), "")
		slow := make(chan metrics.SampleContainer)
		t.Cleanup(func() { close(slow) })
		var count atomic.Int32
		h.VU.StateField.Samples = slow
		go func() {
			for container := range slow {
				if container.GetSamples()[0].Metric.Name == metrics.ChecksName {
					time.Sleep(5 * time.Millisecond)
					count.Add(1)
				}
				h.samples <- container
			}
		}()
		require.NoError(t, h.VU.Runtime().Set("checkCount", count.Load))
		require.True(t, h.run(t, holdTen+".then(() => { if (checkCount() < 29) throw checkCount(); })")) // the reader may not have counted the last check
		h.CancelContext()
	})
}

func TestConcurrentEndRequestsAreLimited(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := &noopService{slow: 20 * time.Millisecond}
		h := holderOf(t, s.serve(t), "")
		require.True(t, h.run(t, strings.Replace(holdTen, "to: 10", `acceptEncoding: "gzip", to: 100`, 1)))
		require.Equal(t, "Bearer xgzip", s.connects[0])
		require.Equal(t, 100, s.deletes)
		require.GreaterOrEqual(t, shardOf(h.r).EndRequests.Outcomes[0].MinUS, s.slow.Microseconds())
		require.LessOrEqual(t, s.maxDeletes, maxEndsPerVU)
		require.Equal(t, [2]float64{100, 100}, h.metricSums("checks", "check")["Received all messages"])
	})
}

// A stream that never opened is closed without a request, because its id may belong to another client.
func TestHoldGivesUpUnopenedStreams(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := holderOf(t, "http://none.test", "")
		start := time.Now()
		require.True(t, h.run(t, strings.Replace(holdTen, "2000", "60000", 1)))
		require.Zero(t, time.Since(start), "hold must not wait for streams that have ended")
		require.Equal(t, map[ledger.State]int{ledger.Refused: 10}, h.states())
		require.Equal(t, map[string][2]float64{"Get status was 200": {0, 10}, "Delete status was 200": {0, 10}, "Received all messages": {0, 10}}, h.metricSums("checks", "check"))
		require.Empty(t, h.metricSums("http_reqs", "name"))
		require.Nil(t, shardOf(h.r).EndRequests)
	})
}

func TestEndRequestsWithoutResponseAreCounted(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := &noopService{hangUp: true}
		url := s.serve(t)
		h := holderOf(t, url, "")
		require.True(t, h.run(t, strings.Replace(holdTen, "endTimeout: 5", "endTimeout: 0.2", 1)))
		ends := shardOf(h.r).EndRequests
		require.Equal(t, []string{strings.TrimPrefix(url, "http://")}, ends.Servers(), "end requests without a response must count for the server of their URL")
		require.EqualValues(t, 10, ends.Sum(func(o *shard.EndOutcome) bool { return strings.HasPrefix(o.Code, shard.CodeNet) }).Duration.Count())
	})
}

// The client closes the stream if the runner has no port left for the end request. The service did not fail.
func TestHoldClosesStreamsWithoutPortForTheEndRequest(t *testing.T) {
	t.Parallel()
	s := &noopService{}
	h := holderOf(t, serveTCP(t, s.handler()), "")
	noSuchAddress := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}} // fails with EADDRNOTAVAIL, as if no port were free
	h.VU.State().Transport = &http.Transport{DialContext: noSuchAddress.DialContext}
	require.True(t, h.run(t, holdTen))
	require.Equal(t, map[ledger.State]int{ledger.Completed: 10}, h.states())
	require.Equal(t, map[string][2]float64{"Get status was 200": {10, 10}, "Delete status was 200": {10, 10}, "Received all messages": {10, 10}}, h.metricSums("checks", "check"))
	require.Equal(t, map[string]int64{shard.CodeNoPort: 10}, shardOf(h.r).EndRequests.Codes())
	require.Zero(t, s.deletes)
}

// A redirect to another origin would send the load and the tokens to that origin.
func TestHoldFollowsNoRedirectToAnotherOrigin(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		other := &noopService{}
		origin := other.serve(t)
		var endRequests atomic.Int32
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodDelete {
				endRequests.Add(1)
			}
			http.Redirect(w, r, origin+r.URL.String(), http.StatusTemporaryRedirect)
		})
		declaration := strings.Replace(noopJS, "END", `end: { by: "request", method: "DELETE", url: "{base}/event/forcedisconnect?id={id}", headers: { A: "{token}" } }`, 1)
		h := holderOf(t, url, declaration)
		require.True(t, h.run(t, strings.Replace(holdDescribed, "reconnect: true", "reconnect: false", 1)))
		require.Equal(t, map[ledger.State]int{ledger.Refused: 3}, h.states())
		require.Empty(t, other.connects)
		require.Empty(t, shardOf(h.r).Redirects)

		h = holderOf(t, url, declaration)
		require.True(t, h.run(t, strings.NewReplacer("endTimeout: 5", "endTimeout: 2, followRedirects: true", "reconnect: true", "reconnect: false").Replace(holdDescribed)))
		require.Equal(t, []shard.Redirect{{Origin: origin, Streams: 3}}, shardOf(h.r).Redirects)
		require.Equal(t, []string{"", "", ""}, other.connects, "the other origin must get no token")
		require.EqualValues(t, 3, endRequests.Load())
		require.Zero(t, other.deletes, "the other origin must get no end request")
		require.Equal(t, map[string]int64{"status-307": 3}, shardOf(h.r).EndRequests.Codes())
	})
}

// If the service refuses an end request, the client closes the stream after EndTimeout.
func TestHoldClosesStreamsThatDoNotEnd(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := &noopService{refuse: http.StatusNotFound}
		h := holderOf(t, s.serve(t), "")
		require.True(t, h.run(t, strings.Replace(holdTen, "endTimeout: 5", "endTimeout: 2", 1)))
		require.Equal(t, map[ledger.State]int{ledger.Unfinished: 10}, h.states())
		require.Equal(t, map[string][2]float64{"Get status was 200": {10, 10}, "Delete status was 200": {0, 10}, "Received all messages": {0, 10}}, h.metricSums("checks", "check"))
		require.Equal(t, map[string][2]float64{"false": {10, 10}}, h.metricSums("http_req_failed", "expected_response"))
		require.Equal(t, map[string]int64{"status-404": 10}, shardOf(h.r).EndRequests.Codes())
	})
}

const noopJS = `var tokens = 0, described = service({
	name: "mine", token: () => "t" + tokens++, connect: { url: "{base}/event/connect?id={id}", headers: { Authorization: "Bearer {token}" } },
	message: { every: 60, seq: "id" }, END
});`

const holdDescribed = `hold(described, {from: 0, to: 3, openFor: 2000, idleTimeout: 5000, endTimeout: 5, reconnect: true, prefix: "d-"})`

// Requests follow the description. token() is called for each attempt and for the end request.
func TestHoldOfADescribedService(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := &noopService{}
		h := holderOf(t, s.serve(t), strings.Replace(noopJS, "END", `end: { by: "request", method: "DELETE", url: "{base}/event/forcedisconnect?id={id}", headers: { A: "{token}" }, ok: [200] }`, 1))
		require.True(t, h.run(t, holdDescribed))
		require.Equal(t, map[string][2]float64{"Get status was 200": {3, 3}, "Delete status was 200": {3, 3}, "Received all messages": {3, 3}}, h.metricSums("checks", "check"))
		require.ElementsMatch(t, []string{"Bearer t0", "Bearer t1", "Bearer t2"}, s.connects)
		require.Equal(t, "6", js(t, h.Runtime, "String(tokens)"))
		require.Equal(t, map[string][2]float64{"DELETE /event/forcedisconnect": {3, 3}}, h.metricSums("http_reqs", "name"))
		require.EqualValues(t, 3, shardOf(h.r).EndRequests.Outcomes[0].Duration.Count())
		require.Equal(t, map[string][2]float64{"GET /event/connect": {3, 3}}, h.metricSums("sse_connection_opened", "name"))

		s = &noopService{}
		h = holderOf(t, s.serve(t), strings.NewReplacer("END", `end: { by: "client" }`, "connect: {", "connect: { maxEventSize: 3,").Replace(noopJS))
		h.run(t, strings.Replace(holdDescribed, "reconnect: true", "reconnect: false", 1))
		require.Equal(t, "too_long", shardOf(h.r).Connections[0].Reason, "data: 0 must exceed maxEventSize")

		s = &noopService{}
		h = holderOf(t, s.serve(t), strings.Replace(noopJS, "END", `end: { by: "client" }`, 1))
		require.True(t, h.run(t, holdDescribed))
		require.Equal(t, map[string][2]float64{"Get status was 200": {3, 3}, "Received all messages": {3, 3}}, h.metricSums("checks", "check"))
		require.Zero(t, s.deletes)
		require.Nil(t, shardOf(h.r).EndRequests)
	})
}

// Each attempt after the first calls token() on the event loop.
func TestHoldReconnectsWithNewToken(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var mu sync.Mutex
		var tokens []string
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			tokens = append(tokens, r.Header.Get("Authorization"))
			first := len(tokens) == 1
			mu.Unlock()
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "retry: 50\nid: 1\ndata: 0\n\n")
			w.(http.Flusher).Flush() //nolint:forcetypeassert // a ResponseWriter of net/http is a Flusher
			if !first {
				<-r.Context().Done()
			}
		})
		h := holderOf(t, url, strings.Replace(noopJS, "END", `end: { by: "client" }`, 1))
		require.True(t, h.run(t, strings.Replace(holdDescribed, "to: 3", "to: 1", 1)))
		require.Equal(t, []string{"Bearer t0", "Bearer t1"}, tokens)
		record := shardOf(h.r).Connections[0]
		require.Equal(t, 2, record.Streams)
		require.Equal(t, 50*time.Millisecond, record.Outages[0].Requested)
	})
}

// Invalid arguments throw before any stream opens.
func TestHoldRejectsInvalidArguments(t *testing.T) {
	t.Parallel()
	const invalidPhase = "soak.hold: a phase must have a name"
	throwing := strings.Replace(strings.Replace(noopJS, `"t" + tokens++`, `{ throw new Error("no login") }`, 1), "END", `end: { by: "client" }`, 1)
	for _, c := range []struct{ init, script, want string }{
		{"", `hold(null)`, "options are missing"},
		{"", `hold({}, {from: 0, to: 1, openFor: 1, idleTimeout: 1, endTimeout: 1})`, "service must be a result of soak.service"},
		{"", `hold(null, {from: 2, to: 1, openFor: 1, idleTimeout: 1, endTimeout: 1})`, "got from 2, to 1"},
		{`var described = service({name: "any", url: (n) => "ftp://x/" + n, connect: {}, message: "unchecked"})`, holdDescribed, `request stream d-0: invalid URL "ftp://x/0"`},
		{"", strings.Replace(holdTen, "from", `acceptEncoding: "zip", from`, 1), `option acceptEncoding: must be none, gzip or browser, got "zip"`},
		{"", strings.Replace(holdTen, "from", `phases: [{name: "x", at: 0, action: "explode"}], from`, 1), invalidPhase},
		{"", strings.Replace(holdTen, "from", `phases: [{name: "", at: 0, action: "drop"}], from`, 1), invalidPhase},
		{"", strings.Replace(holdTen, "from", `phases: [{name: "x", at: -1, action: "drop"}], from`, 1), invalidPhase},
		{"", strings.Replace(holdTen, "from", `httpVersion: "3", from`, 1), `option httpVersion: must be auto, 1.1 or 2, got "3"`},
		{`__ENV.BACKEND_TOKEN = "a\r\nb: c"`, holdTen, "BACKEND_TOKEN must not contain line breaks"},
		{throwing, holdDescribed, "token() of the service mine: Error: no login"},
	} {
		h := holderOf(t, "http://h", c.init)
		err := h.EventLoop.Start(func() error {
			_, err := h.VU.Runtime().RunString(c.script)
			return err
		})
		require.ErrorContains(t, err, c.want)
		h.CancelContext()
		h.EventLoop.WaitOnRegistered()
	}
	rt, _ := newVU(t)
	_, err := rt.VU.Runtime().RunString(`hold(null, {})`)
	require.ErrorContains(t, err, "call it in the default function")
}

// interruptAt interrupts the iteration when n streams are open. The returned function waits for that.
func (h *holder) interruptAt(t *testing.T, n int) (wait func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		for h.r.openStreamCount() < n && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		h.CancelContext()
	}()
	return func() { <-ctx.Done() }
}

// An iteration whose streams open one after the other can be interrupted before all of them have opened.
func TestInterruptedLifetimesEnd(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := holderOf(t, (&noopService{}).serve(t), "")
		wait := h.interruptAt(t, 1)
		require.False(t, h.run(t, `hold(null, {idleTimeout: 5000, endTimeout: 5, reconnect: false, prefix: "d-", streams: [4, 5, 6], delay: 1, lifetimes: [60000, 10, 100]})`))
		wait()
		require.Equal(t, map[ledger.State]int{ledger.Unfinished: 1, ledger.Planned: 2}, h.states())
	})
}

// An interrupted iteration closes its streams and records no checks.
func TestInterruptedHoldRecordsNoCheck(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := &noopService{}
		h := holderOf(t, s.serve(t), "")
		wait := h.interruptAt(t, 10)
		require.False(t, h.run(t, strings.Replace(holdTen, "2000", "60000", 1)))
		wait()
		require.Equal(t, map[ledger.State]int{ledger.Unfinished: 10}, h.states())
		require.Empty(t, h.metricSums("checks", "check"))
		require.Zero(t, s.deletes)
	})
}

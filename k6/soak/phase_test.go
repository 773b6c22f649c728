package soak

import (
	"compress/gzip"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/test/fakeservice"
)

func TestDroppedStreamsReconnectAndAreMeasured(t *testing.T) {
	t.Parallel()
	s := &noopService{}
	h := holderOf(t, serveTCP(t, s.handler()), "")
	require.True(t, h.run(t, strings.NewReplacer("openFor: 2000", "openFor: 4500", "reconnect: false", `reconnect: false, phases: [
		{name: "spread", at: 500, action: "drop"}, {name: "at-once", at: 3500, action: "dropAtOnce"}]`).Replace(holdTen)))
	require.Len(t, s.connects, 30)
	all := map[string]float64{"spread": 10, "at-once": 10}
	for _, metric := range []string{"storm_dropped", stormConnect, stormDialDelay} {
		samples := map[string]float64{}
		for phase, sum := range h.metricSums(metric, "scenario") {
			samples[phase] = sum[1]
		}
		require.Equal(t, all, samples, metric)
	}
	require.Less(t, h.metricSums(stormDialDelay, "scenario")["spread"][0]/10, 900., "the delay in ms must exclude the reconnection time")
	require.Equal(t, [2]float64{10, 10}, h.metricSums("checks", "check")["Received all messages"], "the shard must contain the missed messages")
	require.Equal(t, 10, s.deletes)
}

func TestVanishedStreamsAreNeitherEndedNorChecked(t *testing.T) {
	t.Parallel()
	s := &noopService{}
	h := holderOf(t, serveTCP(t, s.handler()), "")
	start := time.Now()
	require.True(t, h.run(t, strings.NewReplacer("openFor: 2000", "openFor: 60000", "reconnect: false",
		`reconnect: false, phases: [{name: "gone", at: 1000, action: "vanish"}]`).Replace(holdTen)))
	require.Less(t, time.Since(start), 30*time.Second, "the iteration must not wait for vanished streams")
	require.Equal(t, map[string][2]float64{"gone": {10, 10}}, h.metricSums("vanish_vanished", "scenario"))
	require.Equal(t, map[ledger.State]int{ledger.Dropped: 10}, h.states())
	require.Zero(t, s.deletes)
	require.Empty(t, h.metricSums("checks", "check"))
}

func TestStreamsOpenEvenlyOverTheRamp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := &noopService{}
		h := holderOf(t, s.serve(t), "")
		start := time.Now()
		var opened []time.Duration
		s.onConnect = func() { opened = append(opened, time.Since(start)) }
		require.True(t, h.run(t, strings.NewReplacer("from: 0, to: 10", "streams: [2, 3, 5, 7], ramp: 4000", "openFor: 2000", "openFor: 5000", "idleTimeout: 5000", "idleTimeout: 60000").Replace(holdTen)))
		require.Equal(t, []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second}, opened)
		require.Equal(t, map[ledger.State]int{ledger.Completed: 4}, h.states())
	})
}

// startBroadcasts starts a service that broadcasts, and that sends one noop on each stream.
func startBroadcasts(t *testing.T, spec fakeservice.ServiceSpec, l net.Listener) {
	t.Helper()
	spec.Schedule = fakeservice.Schedule{Interval: time.Hour, Phase: fakeservice.PhaseImmediate}
	spec.IDs, spec.Lines, spec.Slow = fakeservice.IDsNumbers, "\n", fakeservice.SlowKeep
	t.Cleanup(fakeservice.StartService(spec, fakeservice.Strike{}, l).Stop)
}

// startBroadcastsOnTCP is startBroadcasts on a port, for clients that read slowly. It returns the URL of the service.
func startBroadcastsOnTCP(t *testing.T, spec fakeservice.ServiceSpec) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	startBroadcasts(t, spec, l)
	return "http://" + l.Addr().String()
}

func holdBroadcasts(t *testing.T, spec fakeservice.ServiceSpec, options string) holder {
	t.Helper()
	l := listen(t)
	startBroadcasts(t, spec, l)
	return holdAt(t, l.url(), options)
}

func holdAt(t *testing.T, url, options string) holder {
	t.Helper()
	h := holderOf(t, url, "")
	require.True(t, h.run(t, `hold(null, {idleTimeout: 5000, endTimeout: 5, reconnect: false, prefix: "d-", `+options+`})`))
	return h
}

// sums returns the sums of a metric by the name of its phase or step.
func (h *holder) sums(metric string) map[string]float64 {
	out := map[string]float64{}
	for name, sum := range h.metricSums(metric, "scenario") {
		out[name] = sum[0]
	}
	return out
}

func TestLifetimesOpenInTurn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var opened []string
		start := time.Now()
		h := holdBroadcasts(t, fakeservice.ServiceSpec{Admit: func(id string, _ int) int {
			opened = append(opened, id)
			return 0
		}}, `streams: [4, 5, 6], delay: 100, lifetimes: [200, 10, 100]`)
		require.Equal(t, 410*time.Millisecond, time.Since(start))
		require.Equal(t, []string{"d-4", "d-5", "d-6"}, opened)
		require.Equal(t, map[ledger.State]int{ledger.Completed: 3}, h.states())
		require.Equal(t, map[string][2]float64{"Get status was 200": {3, 3}, "Delete status was 200": {3, 3}, "Received all messages": {3, 3}}, h.metricSums("checks", "check"))
	})
}

// The service numbers the noops of all clients in one sequence. Only the later streams show that.
func TestMessagesOfStreamsWithLifetimesAreLeftToTheVerdict(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := &noopService{numbers: map[string][]int{"d-0": {1, 2, 3, 4, 5, 7}, "d-1": {8, 9}, "d-2": {10, 11}}}
		h := holderOf(t, s.serve(t), `__ENV.NOOP_INTERVAL = "1"; `+moduleOf(t, "noop"))
		require.True(t, h.run(t, `hold(answers, {idleTimeout: 5000, endTimeout: 5, reconnect: false, prefix: "d-", streams: [0, 1, 2], delay: 1, lifetimes: [5500, 1500, 1500]})`))
		for _, c := range shardOf(h.r).Connections {
			require.True(t, c.HasNoFault(), c.ID)
		}
		require.Equal(t, map[string][2]float64{"Get status was 200": {3, 3}, "Delete status was 200": {3, 3}, "Received all messages": {3, 3}}, h.metricSums("checks", "check"))
	})
}

func TestStepsStopAtFault(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := holdBroadcasts(t, fakeservice.ServiceSpec{Admit: func(id string, _ int) int {
			if id == "d-3" {
				return http.StatusServiceUnavailable
			}
			return 0
		}}, `unchecked: true, steps: [{name: "a", streams: 2, ramp: 50, for: 1500}, {name: "b", streams: 5, ramp: 50, for: 1500}, {name: "c", streams: 9, ramp: 50, for: 1500}]`)
		require.Equal(t, map[string]float64{"a": 0 + 2, "b": 2 + 5}, h.sums(stepStreams))
		require.Len(t, h.metricSums(stepConnect, "scenario"), 2)
		require.Equal(t, map[ledger.State]int{ledger.Completed: 4, ledger.Refused: 1}, h.states())
		require.Empty(t, h.metricSums("checks", "check"))
	})
}

func TestBroadcastToOtherStreamsIsNotShort(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const options = `broadcast: {url: url + "/event/broadcast?event=news", event: "news", within: 3000}, steps: [{name: "a", streams: 2, for: 1000, broadcasts: 1, every: 10}]`
		l := listen(t)
		startBroadcasts(t, fakeservice.ServiceSpec{}, l)
		client := http.Client{Transport: &http.Transport{DialContext: memoryDialer{}.DialContext}}
		other, err := client.Get(l.url() + "/event/connect?id=other") // a stream of another client
		require.NoError(t, err)
		t.Cleanup(func() { _ = other.Body.Close() })
		h := holdAt(t, l.url(), options)
		require.Equal(t, map[string]float64{"a": 2}, h.sums(fanoutArrived))
		require.Empty(t, h.sums(fanoutShort))
	})
}

func TestBroadcastsAreCountedPerSubscriber(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		spec := fakeservice.ServiceSpec{Copies: func(id string, n int) int {
			switch {
			case n == 2 && id == "d-1":
				return 2
			case n == 2 && id == "d-2":
				return 0
			}
			return 1
		}}
		h := holdBroadcasts(t, spec, `broadcast: {url: url + "/event/broadcast?event=news", event: "news", within: 3000}, steps: [{name: "a", streams: 3, for: 1000, broadcasts: 3, every: 10}, {name: "b", streams: 4, for: 1000, broadcasts: 1, every: 10}]`)
		for metric, want := range map[string]map[string]float64{
			fanoutDue: {"a": 9, "b": 4}, fanoutArrived: {"a": 8, "b": 4}, fanoutDuplicated: {"a": 1}, fanoutOverdue: {}, fanoutUntimed: {}, fanoutUnexpected: {}, fanoutShort: {},
		} {
			require.Equal(t, want, h.sums(metric), metric)
		}
		counts := map[string]float64{}
		for _, metric := range []string{fanoutLatency, fanoutSinceRequest, fanoutLast, fanoutPost} {
			for _, sum := range h.metricSums(metric, "scenario") {
				counts[metric] += sum[1]
			}
		}
		require.Equal(t, map[string]float64{fanoutLatency: 12, fanoutSinceRequest: 12, fanoutLast: 3, fanoutPost: 4}, counts)
		require.Equal(t, [2]float64{4, 4}, h.metricSums("checks", "check")["Received all messages"])
	})
}

func TestFailedBroadcastsHaveTheCodeOfTheFailure(t *testing.T) {
	t.Parallel()
	for url, code := range map[string]string{`url + "/missing"`: "status-404", `"http://127.0.0.1:1/closed"`: "net-1212"} {
		h := holdBroadcasts(t, fakeservice.ServiceSpec{}, `broadcast: {url: `+url+`, event: "news", within: 10}, steps: [{name: "a", streams: 1, for: 500, broadcasts: 1, every: 10}]`)
		require.Equal(t, map[string][2]float64{code: {1, 1}}, h.metricSums(fanoutShort, shard.TagCode))
		require.Equal(t, code == "status-404", len(h.sums(fanoutPost)) == 1, "a POST without a response has no duration")
	}
}

// If the clock of the service is slow, the send time may be before the request.
func TestSendTimeBeforeTheRequestIsInvalid(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		h := holdBroadcasts(t, fakeservice.ServiceSpec{Stamp: -time.Millisecond}, `broadcast: {url: url + "/event/broadcast?event=news", event: "news", within: 3000}, steps: [{name: "a", streams: 2, for: 1000, broadcasts: 1, every: 10}]`)
		require.Equal(t, map[string]float64{"a": 2}, h.sums(fanoutUntimed))
		require.Empty(t, h.sums(fanoutLatency))
	})
}

// A step waits for a lost broadcast until the time limit of its deliveries. The next step still starts on time, and
// broadcasts that were not sent are not expected.
func TestLostBroadcastsDoNotProlongAStep(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		spec := fakeservice.ServiceSpec{Copies: func(id string, _ int) int {
			if id == "d-1" {
				return 0
			}
			return 1
		}}
		start := time.Now()
		h := holdBroadcasts(t, spec, `broadcast: {url: url + "/event/broadcast?event=news", event: "news", within: 1000}, steps: [
			{name: "a", streams: 2, for: 500, broadcasts: 20, every: 10, until: 1000}, {name: "b", streams: 2, for: 500, broadcasts: 20, every: 10, until: 2300}]`)
		require.Less(t, time.Since(start), 6*time.Second, "a step must not wait for all its lost broadcasts; 40 waits would take 40 s")
		for _, step := range []string{"a", "b"} {
			due, arrived := h.sums(fanoutDue)[step], h.sums(fanoutArrived)[step]
			require.LessOrEqual(t, due, 4., step)
			require.InDelta(t, due/2, arrived, 0, step)
		}
		require.Positive(t, h.sums(fanoutDue)["a"])
	})
}

func TestSlowStreamsResumeReading(t *testing.T) {
	t.Parallel()
	spec := fakeservice.ServiceSpec{Copies: func(id string, n int) int {
		if id == "d-1" && n == 3 {
			return 2
		}
		return 1
	}}
	h := holdAt(t, startBroadcastsOnTCP(t, spec), `from: 0, to: 4, openFor: 5000, broadcast: {url: url + "/event/broadcast?event=news", event: "news", kb: 1}, phases: [
		{name: "slow", at: 1500, action: "slow", streams: [0, 3], for: 1000, after: 1500, bytesPerSecond: 0, messageKB: 1, fillKB: 5, broadcastsPerSecond: 10}]`)
	for metric, want := range map[string]float64{
		slowStarted: 2, slowAccepted: 10, slowDue: 20, slowArrived: 20, slowRepeated: 1, slowFilled: 2, slowBacklog: 20, slowComplete: 2, slowRejected: 0, slowClosed: 0, slowClosedLater: 0,
	} {
		require.InDelta(t, want, h.sums(metric)["slow"], 0, metric)
	}
	require.Equal(t, [2]float64{2, 2}, h.metricSums("checks", "check")["Received all messages"])
	require.Equal(t, map[ledger.State]int{ledger.Completed: 4}, h.states())
}

// In the buffers of kernel and service, a message has its compressed size.
func TestBacklogOfSlowStreamsCountsCompressedBytes(t *testing.T) {
	t.Parallel()
	service, err := url.Parse(startBroadcastsOnTCP(t, fakeservice.ServiceSpec{}))
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(service)
	front := serveTCP(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			proxy.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		proxy.ServeHTTP(flushingGzip{w, gzip.NewWriter(w)}, r)
	})
	h := holdAt(t, front, `from: 0, to: 4, openFor: 4000, acceptEncoding: "gzip", broadcast: {url: url + "/event/broadcast?event=news", event: "news", kb: 10},
		phases: [{name: "slow", at: 1500, action: "slow", streams: [0, 3], for: 1000, after: 1000, bytesPerSecond: 0, messageKB: 10, fillKB: 50, broadcastsPerSecond: 10}]`)
	require.Equal(t, map[string]float64{"slow": 20}, h.sums(slowArrived))
	require.Empty(t, h.sums(slowFilled), "the backlog must not count the 100 KB before compression")
	require.Less(t, h.sums(slowBacklog)["slow"], 10.)
	require.Positive(t, h.sums(slowBacklog)["slow"])
}

type flushingGzip struct {
	http.ResponseWriter
	encoder *gzip.Writer
}

func (g flushingGzip) Write(b []byte) (int, error) {
	n, err := g.encoder.Write(b)
	g.Flush()
	return n, err //nolint:wrapcheck // of the same method
}

func (g flushingGzip) Flush() {
	_ = g.encoder.Flush()
	_ = http.NewResponseController(g.ResponseWriter).Flush()
}

package soak

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

// A broadcastService sends each request body to all streams, as the backend does. A DELETE ends a stream.
type broadcastService struct {
	copies func(id string, n int) int // number of copies of a broadcast on a stream; nil: one
	refuse string                     // the id of a stream that it refuses

	mu      sync.Mutex
	sent    int
	opened  []string
	streams map[string]chan string
}

func (s *broadcastService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("id")
	switch r.Method {
	case http.MethodPost:
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sent++
		for id, inbox := range s.streams {
			n := 1
			if s.copies != nil {
				n = s.copies(id, s.sent)
			}
			inbox <- strings.Repeat(fmt.Sprintf(": sent=%d\nevent: news\ndata: %s\n\n", time.Now().UnixMicro(), body), n)
		}
		_, _ = fmt.Fprintf(w, `{"delivered":%d}`, len(s.streams))
	case http.MethodDelete:
		s.mu.Lock()
		defer s.mu.Unlock()
		close(s.streams[id])
		delete(s.streams, id)
	default:
		s.stream(w, r, id)
	}
}

func (s *broadcastService) stream(w http.ResponseWriter, r *http.Request, id string) {
	if id == s.refuse {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	inbox := make(chan string, 100)
	s.mu.Lock()
	if s.streams == nil {
		s.streams = map[string]chan string{}
	}
	s.streams[id] = inbox
	s.opened = append(s.opened, id)
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	for text := "id: 1\ndata: 0\n\n"; ; {
		_, _ = io.WriteString(w, text)
		w.(http.Flusher).Flush() //nolint:forcetypeassert // net/http's is one
		select {
		case message, ok := <-inbox:
			if !ok {
				return
			}
			text = message
		case <-r.Context().Done():
			return
		}
	}
}

func (s *broadcastService) hold(t *testing.T, options string) holder {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	h := holderOf(t, server.URL, "")
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
	t.Parallel()
	s := &broadcastService{}
	start := time.Now()
	h := s.hold(t, `streams: [4, 5, 6], delay: 100, lifetimes: [200, 10, 100]`)
	require.GreaterOrEqual(t, time.Since(start), 410*time.Millisecond)
	require.Equal(t, []string{"d-4", "d-5", "d-6"}, s.opened)
	require.Equal(t, map[ledger.State]int{ledger.Completed: 3}, h.states())
	require.Equal(t, map[string][2]float64{"Get status was 200": {3, 3}, "Delete status was 200": {3, 3}, "Received all messages": {3, 3}}, h.metricSums("checks", "check"))
}

func TestStepsStopAtFault(t *testing.T) {
	t.Parallel()
	s := &broadcastService{refuse: "d-3"}
	h := s.hold(t, `unchecked: true, steps: [{name: "a", streams: 2, ramp: 50, for: 1500}, {name: "b", streams: 5, ramp: 50, for: 1500}, {name: "c", streams: 9, ramp: 50, for: 1500}]`)
	require.Equal(t, map[string]float64{"a": 0 + 2, "b": 2 + 5}, h.sums(capacityStreams))
	require.Len(t, h.metricSums(capacityConnect, "scenario"), 2)
	require.Equal(t, map[ledger.State]int{ledger.Completed: 4, ledger.Refused: 1}, h.states())
	require.Empty(t, h.metricSums("checks", "check"))
}

func TestBroadcastsPerSubscriber(t *testing.T) {
	t.Parallel()
	s := &broadcastService{copies: func(id string, n int) int {
		switch {
		case n == 2 && id == "d-1":
			return 2
		case n == 2 && id == "d-2":
			return 0
		}
		return 1
	}}
	h := s.hold(t, `broadcast: {url: url + "/event/broadcast?event=news", event: "news", within: 3000}, steps: [{name: "a", streams: 3, for: 1000, broadcasts: 3, every: 10}, {name: "b", streams: 4, for: 1000, broadcasts: 1, every: 10}]`)
	for metric, want := range map[string]map[string]float64{
		fanoutDue: {"a": 9, "b": 4}, fanoutArrived: {"a": 8, "b": 4}, fanoutDuplicated: {"a": 1}, fanoutLate: {}, fanoutUntimed: {}, fanoutUnexplained: {}, fanoutShort: {},
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
}

func TestSlowStreamsResumeReading(t *testing.T) {
	t.Parallel()
	s := &broadcastService{copies: func(id string, n int) int {
		if id == "d-1" && n == 3 {
			return 2
		}
		return 1
	}}
	h := s.hold(t, `from: 0, to: 4, openFor: 5000, broadcast: {url: url + "/event/broadcast?event=news", event: "news", kb: 1}, phases: [
		{name: "slow", at: 1500, action: "slow", streams: [0, 3], for: 1000, after: 1500, bytesPerSecond: 0, messageKB: 1, fillKB: 5, broadcastsPerSecond: 10}]`)
	for metric, want := range map[string]float64{
		slowStarted: 2, slowAccepted: 10, slowDue: 20, slowArrived: 20, slowRepeated: 1, slowFilled: 2, slowBacklog: 20, slowComplete: 2, slowRejected: 0, slowCut: 0, slowCutUnseen: 0,
	} {
		require.InDelta(t, want, h.sums(metric)["slow"], 0, metric)
	}
	require.Equal(t, [2]float64{2, 2}, h.metricSums("checks", "check")["Received all messages"])
	require.Equal(t, map[ledger.State]int{ledger.Completed: 4}, h.states())
}

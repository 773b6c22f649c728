package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/model"
	"github.com/sse-soak/sse-soak/tools/page"
)

// startModel starts the numbered model, and returns a client of the model and a benchmark that reads the model's
// ledger.
func startModel(t *testing.T) (*client, *gatewaysBench) {
	t.Helper()
	server := httptest.NewServer(model.New(model.Config{Keep: 100, Log: slog.New(slog.DiscardHandler)}))
	t.Cleanup(server.Close)
	b := &gatewaysBench{upstream: server.URL, runID: "test", Requests: 2, Rate: 100}
	return newClient(t.Context(), server.URL, "", protocols["openai-chat"]), b
}

// Without a gateway, each fault of the model becomes a state with exact counts of chunks.
func TestDirectResponsesMatchTheModel(t *testing.T) {
	c, b := startModel(t)
	for i, test := range []struct {
		fault, end string
		state      ledger.ResponseState
		want       ledger.Totals // without Expected
	}{
		{"none", "in order", ledger.ResponseComplete, ledger.Totals{Received: 10}},
		{"truncate@4", "in order", ledger.ResponseTruncated, ledger.Totals{Received: 4}},
		{"reset@4", "reset", ledger.ResponseTruncated, ledger.Totals{Received: 4}},
		{"cut@4", "cut", ledger.ResponseTruncated, ledger.Totals{Received: 4}},
		{"error@4", "in order", ledger.ResponseError, ledger.Totals{Received: 4}},
		{"empty", "in order", ledger.ResponseEmpty, ledger.Totals{}},
		{"500", "500 Internal Server Error", ledger.ResponseRefused, ledger.Totals{}},
		{"drop@4", "in order", ledger.ResponseComplete, ledger.Totals{Received: 9, Missed: 1}},
		{"double@4", "in order", ledger.ResponseComplete, ledger.Totals{Received: 10, Duplicated: 1}},
		{"swap@4", "in order", ledger.ResponseComplete, ledger.Totals{Received: 10, Reordered: 1}},
		{"corrupt@4", "in order", ledger.ResponseComplete, ledger.Totals{Received: 9, Corrupted: 1}},
		{"twice", "in order", ledger.ResponseAfterDone, ledger.Totals{Received: 10}},
		{"linger", "open", ledger.ResponseLingering, ledger.Totals{Received: 10}},
	} {
		t.Run(test.fault, func(t *testing.T) {
			got := c.do(t.Context(), fmt.Sprintf("test-%d", i), "chunks=10 fault="+test.fault, 10, behavior{})
			counts := got.Totals()
			counts.Expected = 0
			require.Equal(t, test.want, counts)
			require.Equal(t, []any{test.state, test.end}, []any{got.State, got.End})
			records, err := b.records(t.Context(), int64(i))
			require.NoError(t, err)
			require.Len(t, records, 1)
		})
	}
}

func TestRecordsOfOpenRequestsAreAnError(t *testing.T) {
	c, b := startModel(t)
	requests, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.do(requests, "test-1", "chunks=1000 delay=1s", 1000, behavior{})
	}()
	defer func() { stop(); <-ended }()
	require.Eventually(t, func() bool { _, open, err := b.ledger(t.Context(), 1); return err == nil && open == 1 }, 10*time.Second, time.Millisecond, "the model must have one open request")
	defer func(timeout time.Duration) { recordsTimeout = timeout }(recordsTimeout)
	recordsTimeout = 0
	_, err := b.records(t.Context(), 1)
	require.ErrorContains(t, err, "wait for the model: 1 request is still open")
}

func TestAPauseIsNotAFault(t *testing.T) {
	c, _ := startModel(t)
	got := c.do(t.Context(), "test-1", "chunks=50 delay=10ms", 50, behavior{pauseAfter: 5, pause: 300 * time.Millisecond})
	require.Equal(t, ledger.ResponseComplete, got.State)
	require.Equal(t, uint64(50), got.Totals().Received)
	require.GreaterOrEqual(t, time.Duration(slices.Max(got.Gaps))*time.Microsecond, 300*time.Millisecond)
}

func TestAbandonedRequestsAreCanceledAtTheModel(t *testing.T) {
	c, b := startModel(t)
	s := scenario{name: "leave", chunks: 1000, order: "delay=10ms", behavior: behavior{leaveAfter: 5}}
	responses, err := s.run(t.Context(), b, c, nil)
	require.NoError(t, err)
	records, err := b.records(t.Context(), 1)
	require.NoError(t, err)
	row := assess(s, responses, records)
	require.Equal(t, map[ledger.ResponseState]int{ledger.ResponseAbandoned: 2}, row.States)
	require.Equal(t, 2, row.Canceled)
	require.Less(t, row.Unreceived, 900)
}

func TestTableRows(t *testing.T) {
	g := &gateway{Name: direct}
	resp := &response{ID: "a", End: "in order", Expected: 4}
	for k := range uint64(3) {
		resp.Block(&ledger.Chunk{Content: true})
		resp.AddNumber(k+1, 0, true)
	}
	resp.Block(&ledger.Chunk{Done: true})
	resp.Close(0, ledger.ClosedInOrder)
	for _, s := range scenarios() {
		g.Rows = append(g.Rows, assess(s, []*response{resp},
			[]model.Record{{ID: "a", Sent: 4, Started: time.Now().UnixMicro()}}))
	}
	r := gatewaysBench{options: &options{RunInfo: &page.RunInfo{}}, Gateways: []*gateway{g}}
	var b strings.Builder
	require.NoError(t, r.write(&b))
	cells := "| direct | 1 complete | 1 in order | 1 | 1 | 0 | 0 | 1 |"
	require.Equal(t, len(scenarios()), strings.Count(regexp.MustCompile(` +`).ReplaceAllString(b.String(), " "), cells), b.String())
}

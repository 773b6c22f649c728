package main

import (
	"fmt"
	"log/slog"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/model"
	"github.com/sse-soak/sse-soak/tools/page"
)

// Without a gateway each fault of the model is the state that the client finds, with exact counts of chunks.
func TestDirectResponsesMatchTheModel(t *testing.T) {
	server := httptest.NewServer(model.New(model.Config{Keep: 100, Log: slog.New(slog.DiscardHandler)}))
	defer server.Close()
	c := newClient(server.URL, "", protocols["openai-chat"])
	b := &gatewaysBench{upstream: server.URL, runID: "test"}
	for i, test := range []struct {
		fault string
		want  response
	}{
		{"none", response{State: ledger.ResponseComplete, Ended: "in order", Received: 10, Whole: true}},
		{"truncate@4", response{State: ledger.ResponseTruncated, Ended: "in order", Received: 4, Lost: 6}},
		{"reset@4", response{State: ledger.ResponseTruncated, Ended: "reset", Received: 4, Lost: 6}},
		{"cut@4", response{State: ledger.ResponseTruncated, Ended: "cut", Received: 4, Lost: 6}},
		{"error@4", response{State: ledger.ResponseError, Ended: "in order", Received: 4, Lost: 6}},
		{"empty", response{State: ledger.ResponseEmpty, Ended: "in order", Lost: 10}},
		{"500", response{State: ledger.ResponseRefused, Ended: "500 Internal Server Error"}},
		{"drop@4", response{State: ledger.ResponseComplete, Ended: "in order", Received: 9, Lost: 1}},
		{"double@4", response{State: ledger.ResponseComplete, Ended: "in order", Received: 11, Doubled: 1, Whole: true}},
		{"swap@4", response{State: ledger.ResponseComplete, Ended: "in order", Received: 10, Reorder: 1, Whole: true}},
		{"corrupt@4", response{State: ledger.ResponseComplete, Ended: "in order", Received: 10, Corrupt: 1}},
		{"twice", response{State: ledger.ResponseAfterDone, Ended: "in order", Received: 10, Whole: true}},
		{"linger", response{State: ledger.ResponseLingering, Ended: "open", Received: 10, Whole: true}},
	} {
		t.Run(test.fault, func(t *testing.T) {
			id := fmt.Sprintf("test-%d", i)
			got := c.request(t.Context(), id, "chunks=10 fault="+test.fault, 10, behaviour{})
			test.want.ID = id
			got.TTFT, got.Gaps = 0, nil
			require.Equal(t, &test.want, got)
			records, err := b.records(t.Context(), int64(i))
			require.NoError(t, err)
			require.Len(t, records, 1)
		})
	}
}

func TestDisconnectsMatchTheLedger(t *testing.T) {
	server := httptest.NewServer(model.New(model.Config{Keep: 100, Log: slog.New(slog.DiscardHandler)}))
	defer server.Close()
	b := &gatewaysBench{upstream: server.URL, runID: "test", Requests: 2, Rate: 100}
	s := scenario{name: "leave", chunks: 1000, order: "delay=10ms", behaviour: behaviour{leaveAfter: 5}}
	responses, err := s.run(t.Context(), b, newClient(server.URL, "", protocols["openai-chat"]), nil)
	require.NoError(t, err)
	records, err := b.records(t.Context(), 1)
	require.NoError(t, err)
	row := assess(s, responses, records)
	require.Equal(t, map[ledger.ResponseState]int{ledger.ResponseAbandoned: 2}, row.States)
	require.Equal(t, 2, row.Cancelled)
	require.Less(t, row.Nobody, 900)
}

func TestTableRows(t *testing.T) {
	g := &gateway{Name: direct}
	for _, s := range scenarios() {
		g.Rows = append(g.Rows, assess(s, []*response{{ID: "a", State: ledger.ResponseComplete, Ended: "in order", Received: 3}},
			[]model.Record{{ID: "a", Sent: 4, Started: time.Now().UnixMicro()}}))
	}
	r := gatewaysBench{options: &options{Ran: &page.RunInfo{}}, Gateways: []*gateway{g}}
	var b strings.Builder
	require.NoError(t, r.write(&b))
	cells := "| direct | 1 complete | 1 in order | 1 | 1 | 0 | 0 | 1 |"
	require.Equal(t, len(scenarios()), strings.Count(regexp.MustCompile(` +`).ReplaceAllString(b.String(), " "), cells), b.String())
}

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/model"
	"github.com/sse-soak/sse-soak/test/services"
	"github.com/sse-soak/sse-soak/tools/page"
)

func TestEachServiceHasTraits(t *testing.T) {
	names, _ := new(servicesBench).names()
	for _, name := range names {
		require.Len(t, traits[name], 3, name)
	}
	require.Len(t, traits, len(names))
}

func TestFormatNumber(t *testing.T) {
	for v, want := range map[float64]string{0: "0", .0123: "0.012", -1.25: "-1.2", -12.4: "-12", 1234: "1,234", -1234: "−1,234"} {
		require.Equal(t, want, formatNumber(v))
	}
}

// The cost covers only the samples within the window.
func TestCostOfAWindow(t *testing.T) {
	start := time.Unix(1000, 0)
	var s sampler
	for i := range 20 {
		memory := uint64(100)
		if i == 7 {
			memory = 900
		}
		s.samples = append(s.samples, sample{start.Add(time.Duration(i) * time.Second), services.Usage{Memory: memory, CPU: float64(i * i)}, 2})
	}
	c, err := s.costBetween(start.Add(5*time.Second), start.Add(10*time.Second))
	require.NoError(t, err)
	require.Equal(t, Cost{MedianBytes: 100, MaxBytes: 900, CPUSeconds: 75, WindowS: 5, Load: 2}, c)

	_, err = s.costBetween(start.Add(time.Minute), start.Add(2*time.Minute))
	require.EqualError(t, err, "measure the cost: only 0 samples in 60 s")
	s.lastError = errors.New("no such process")
	_, err = s.costBetween(start.Add(time.Minute), start.Add(2*time.Minute))
	require.EqualError(t, err, "measure the cost: only 0 samples in 60 s: no such process")
}

// The tables of a run with a publisher list its counts, its cost per stream and message, and the unmet checks.
func TestTables(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "runs", "mine")
	require.NoError(t, os.MkdirAll(run, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(run, "verdict.json"), []byte(`{
		"verdict": "fail", "reasons": ["one", "two"], "checks": [{"name": "opened", "pass": true},
			{"name": "messages missed", "limit": "0", "actual": "10"}], "started_unix_s": 1000, "ended_unix_s": 1100,
		"connections": {"opened": 10}, "latency_ms": {"p50": 1.25, "p99": 20, "max": 1234.5}, "connect_ms": {"p99": 7},
		"messages": {"received": 950, "expected": 960, "missed": 10, "duplicated": 2, "repeated": 1, "reordered": 3,
			"last_subscriber_ms": {"p50": 2, "p99": 3, "max": 4}, "published": {"rate": 2, "planned": 190, "confirmed": 189, "response_ms": {"p99": 5}}},
		"tables": [{"title": "Resumes by kind of disconnect", "note": "outage: in seconds", "columns": ["cut", "lost"], "rows": [["fin", "3"], ["rst", ""]]}],
		"generator": {"cpu_seconds": 5, "saturated": true}}`), 0o600))
	r := row{Service: "mine", Version: "1.0"}
	require.NoError(t, r.read(run))
	require.Equal(t, []string{"one", "messages missed: 10 (limit: 0)"}, r.Findings)
	from, to := r.window()
	require.Equal(t, []int64{1025, 1097}, []int64{from.Unix(), to.Unix()})
	r.Cost = Cost{IdleBytes: 1 << 20, MedianBytes: 1<<20 + 20<<10, CPUSeconds: 7.2, WindowS: 72, Load: 1.5}

	var text strings.Builder
	bench := servicesBench{
		options: &options{RunInfo: &page.RunInfo{}}, Suite: "resume", Load: load{2000, 20, 20, 300, 2},
		Rows: []row{r, {Service: "other", Findings: []string{"it is\nnot there"}}},
	}
	require.NoError(t, bench.write(&text))
	output := regexp.MustCompile(` +`).ReplaceAllString(text.String(), " ")
	for _, line := range []string{
		"| mine | fail | 950 | 10 | 3 | 3 | 1.2 / 20 / 1,235 | 2.0 / 3.0 / 4.0 | 5.0 |",
		"| other | not measured | – | – | – | – | – | – | – |",
		"\n\nResumes by kind of disconnect (outage: in seconds):\n\n| service | cut | lost |\n|--- |--- |--- |\n| mine | fin | 3 |\n| mine | rst | – |\n",
		"| mine | 2.0 | 1.0 | 10 | 10,000 | 36 | 7.0 | 5.0, saturated | 1.5 |",
		"- mine: one", "- mine: messages missed: 10 (limit: 0)", "- other: it is not there",
	} {
		require.Contains(t, output, line+"\n")
	}
}

func TestInvalidOptions(t *testing.T) {
	parse := func(args ...string) error {
		_, err := new(options).parse("services", &servicesBench{options: &options{}}, append(args, "-root", "../..", "-out", t.TempDir()))
		return err
	}
	for list, unknown := range map[string]string{bareSuffix: bareSuffix, "nchan,nchen": "nchen", backend + bareSuffix: backend + bareSuffix} {
		require.ErrorContains(t, parse("-only", list), fmt.Sprintf("-without-history, got %q", unknown))
	}
	for _, bad := range []string{"-connections=0", "-topics=0", "-publish-rate=0", "-runners=0", "-seconds=14"} {
		require.ErrorContains(t, parse(bad), "must be positive")
	}
}

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

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLedgerLine checks the format that other programs read.
func TestLedgerLine(t *testing.T) {
	t.Parallel()
	s := startTest(t)
	s.open("a-1").numbers(2)
	s.open("b-1")
	row := s.disconnect("a-1")
	status, header, body := s.request("GET", "/event/ledger?prefix=a-", "")
	require.Equal(t, 200, status)
	require.Equal(t, "application/x-ndjson", header.Get("Content-Type"))
	require.Equal(t, "0", header.Get("X-Ledger-Evicted"))
	require.Equal(t, fmt.Sprintf(`{"id":"a-1","first":1,"last":%d,"sent":%d,"streams":1,"open":false,"closed":"forcedisconnect",`+
		`"opened_unix_us":%d,"closed_unix_us":%d,"slow":false}`+"\n", row.Last, row.Sent, row.Opened, row.ClosedAt), body)
	all := s.rows("")
	require.Len(t, all, 2)
	require.True(t, all["b-1"].Open)
	require.Empty(t, all["b-1"].Closed)
	require.Zero(t, all["b-1"].ClosedAt)
	require.InDelta(t, time.Now().UnixMicro(), row.ClosedAt, 60e6)
}

// The ledger keeps up to LEDGER_KEEP closed ids. It removes the oldest first, and reports the number of removed ids.
func TestLedgerKeep(t *testing.T) {
	t.Parallel()
	s := startTest(t, "--ledger-keep=3", "--noop-interval=1h")
	s.open("open")
	for i := range 5 {
		id := fmt.Sprintf("x-%d", i)
		s.open(id)
		s.disconnect(id)
	}
	s.open("x-2") // a reconnected id is not evicted
	s.open("y")
	s.disconnect("y")
	s.open("z")
	s.disconnect("z")
	_, header, body := s.request("GET", "/event/ledger", "")
	rows := parseRows(t, body)
	require.Len(t, rows, 5)
	for _, id := range []string{"open", "x-2", "x-4", "y", "z"} {
		require.Contains(t, rows, id)
	}
	require.Equal(t, "3", header.Get("X-Ledger-Evicted"))
}

// After thousands of ids have connected and expired, only ids that are in the ledger or can resume remain in memory.
func TestExpiredIDsAreRemovedFromMemory(t *testing.T) {
	t.Parallel()
	cfg, _, err := parseConfig([]string{"--ledger-keep=10", "--max-connections=5", "--noop-interval=1h"}, noEnv)
	require.NoError(t, err)
	h := &hub{cfg: cfg, batch: newBatch(), clk: newClock(), devices: map[string]*device{}, wheel: newWheel(time.Hour, scheduleBroadcast)}
	for i := range 5000 {
		d := &device{id: fmt.Sprint(i), fd: -1, bucket: -1}
		h.devices[d.id], h.connectOrder = d, append(h.connectOrder, d)
		h.wheel.add(d)
		d.streams++
		d.resumable = true
		d.element = h.resumable.PushBack(d)
		for h.resumable.Len() > cfg.MaxConnections {
			h.endNumbering(oldest(&h.resumable))
		}
	}
	require.Len(t, h.devices, 15)
	require.Len(t, h.wheel.buckets[0], 5)
	require.Less(t, len(h.connectOrder), 2500)
	require.Equal(t, 15, h.resumable.Len()+h.finished.Len())
	require.Equal(t, uint64(5000-15), h.evictions)
}

// A ledger of 5,000 ids is read in pages, so that the scheduler can send noops between two pages. A change after the
// first line is written therefore affects the last row.
func TestLargeLedger(t *testing.T) {
	t.Parallel()
	s := startTest(t, "--noop-interval=100ms")
	c := s.open("a")
	var last *device
	s.hub.call(func() {
		for i := range 5000 {
			last = &device{id: fmt.Sprintf("old-%d", i), fd: -1, bucket: -1, streams: 1, finished: true}
			s.hub.devices[last.id], s.hub.connectOrder = last, append(s.hub.connectOrder, last)
			last.element = s.hub.finished.PushBack(last)
		}
	})
	first := c.next()
	require.Len(t, s.rows("old-"), 5000)
	ids, err := s.hub.snapshotLedger()
	require.NoError(t, err)
	lines := 0
	require.NoError(t, s.hub.writeLedger(writeHook(func() {
		if lines++; lines == 1 {
			s.hub.call(func() { last.streams = 0 })
		}
	}), ids, "old-"))
	require.Equal(t, 4999, lines)
	for n := first.id + 1; n < first.id+10; n++ {
		require.Equal(t, n, c.next().id)
	}
}

// A writeHook is called at each write.
type writeHook func()

func (w writeHook) Write(p []byte) (int, error) {
	w()
	return len(p), nil
}

// A client must notice that a response, such as the ledger, is incomplete.
func TestAbortedResponseIsIncomplete(t *testing.T) {
	t.Parallel()
	s := startTest(t)
	for _, cause := range []any{http.ErrAbortHandler, "another panic"} {
		server := httptest.NewServer(s.guard(routeTable{"/": {http.MethodGet: {serve: func(w http.ResponseWriter, _ *http.Request) error {
			_, _ = io.WriteString(w, "{}\n")
			panic(cause)
		}}}}))
		resp, err := server.Client().Get(server.URL + "/")
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
		require.Error(t, err, cause)
		server.Close()
	}
}

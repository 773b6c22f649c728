package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/backend/fault"
)

func startWithFault(t *testing.T, spec string) (*testService, *stream) {
	t.Helper()
	s := startTest(t, "--noop-interval=50ms", "--backend-fault="+spec)
	return s, s.open("a")
}

func (s *testService) effects() []fault.Effect {
	var list []fault.Effect
	s.hub.call(func() {
		for _, f := range s.hub.faults.Status() {
			list = append(list, f.Effects...)
		}
	})
	return list
}

// Each fault has the expected effect on the received events. The ledger reports all numbers as sent, apart from the
// noop of a reset.
func TestNoopFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		spec     string
		events   string   // received numbers, with the data if it is not 0
		affected []uint64 // numbers of the affected noops
		end      error    // nil: the fault does not end the stream
	}{
		{"drop:noop=2,count=3", "1 5 6", []uint64{2, 3, 4}, nil},
		{"drop:noop=1;drop:noop=4", "2 3 5 6", []uint64{1, 4}, nil},
		{"duplicate", "1 2 3 3 4 5", []uint64{3}, nil},
		{"reorder:count=2,noop=1", "2 1 4 3 5 6", []uint64{1, 3}, nil},
		{"corrupt", "1 2 3=x 4 5", []uint64{3}, nil},
		{"stall", "1 2", []uint64{3}, nil},
		{"delay=400ms", "1 2 3 4 5 6 7 8 9 10 11 12", []uint64{3}, nil},
		{"drop:id=other", "1 2 3 4 5", nil, nil},
		{"truncate", "1 2", []uint64{3}, io.ErrUnexpectedEOF},
		{"reset", "", []uint64{3}, syscall.ECONNRESET}, // the reset may overtake the noops
	} {
		t.Run(c.spec, func(t *testing.T) {
			t.Parallel()
			s, client := startWithFault(t, c.spec)
			var events []string
			var last event
			for range strings.Fields(c.events) {
				last = client.next()
				events = append(events, strings.TrimSuffix(fmt.Sprintf("%d=%s", last.id, last.data), "=0"))
				if c.spec == "delay=400ms" && last.id == 3 {
					require.GreaterOrEqual(t, last.at.Sub(time.UnixMicro(last.sent)), 390*time.Millisecond)
				}
			}
			require.Equal(t, c.events, strings.Join(events, " "))
			if c.end != nil {
				_, err := client.readAll()
				require.ErrorIs(t, err, c.end)
				require.Equal(t, "fault", s.rows("a")["a"].Closed)
				require.Equal(t, []uint64{3, 4}, s.open("a", resumeAfter(2)).numbers(2), "the fault must apply to one connection only")
			} else {
				eventually(t, "the ledger counts the suppressed noops", func() bool { return s.rows("a")["a"].Last >= 3 })
				row := s.disconnect("a")
				remaining, err := client.readAll()
				require.NoError(t, err)
				require.Equal(t, []uint64{1, row.Last}, []uint64{row.First, row.Sent})
				require.False(t, row.Slow)
				if c.spec == "stall" {
					require.Empty(t, remaining)
				} else {
					require.Equal(t, row.Last, last.id+uint64(len(remaining)))
				}
			}
			var numbers []uint64
			for _, f := range s.effects() {
				require.Equal(t, "a", f.ID)
				require.NotZero(t, f.At)
				numbers = append(numbers, f.Number)
			}
			require.Equal(t, c.affected, numbers)
		})
	}
}

// The noops that wait for the end of a delay fault do not make the client count as slow.
func TestDelayedClientIsNotSlow(t *testing.T) {
	t.Parallel()
	s := startTest(t, "--noop-interval=2ms", "--max-pending=2", "--backend-fault=delay=100ms")
	require.Equal(t, numbersFrom(1, 100), s.open("a").numbers(100))
}

// A message that is written before the reordered noop counts as a message.
func TestReorderedNoopAndMessageAreCounted(t *testing.T) {
	t.Parallel()
	s := startTest(t, "--noop-interval=1h", "--backend-fault=reorder:noop=1")
	c := s.open("a")
	s.hub.call(func() {
		d := s.hub.devices["a"]
		d.seq++
		s.hub.frames.begin([]byte(noopData), 0)
		s.hub.noop(d)
	})
	status, _, _ := s.request("POST", "/event/send?id=a", "hello")
	require.Equal(t, 200, status)
	require.Equal(t, []uint64{2, 1}, c.numbers(2))
	require.Equal(t, uint64(2), s.disconnect("a").Sent)
	_, _, text := s.request("GET", "/metrics", "")
	require.Contains(t, text, "\nbackend_messages_sent_total 1\n")
	require.Contains(t, text, "\nbackend_noops_sent_total 1\n")
}

func TestConnectFaults(t *testing.T) {
	t.Parallel()
	s := startTest(t, "--backend-fault=refuse:id=a;wrong-type:id=a,count=2;slow-headers=300ms:id=b")
	status, header, _ := s.request("GET", "/event/connect?id=a", "")
	require.Equal(t, 503, status)
	require.NotEmpty(t, header.Get("Retry-After"))
	for range 2 {
		status, header, body := s.request("GET", "/event/connect?id=a", "")
		require.Equal(t, 200, status)
		require.Contains(t, header.Get("Content-Type"), "text/html")
		require.Contains(t, body, "not an event stream")
	}
	s.open("a").numbers(1)
	start := time.Now()
	b := s.open("b")
	require.GreaterOrEqual(t, time.Since(start), 300*time.Millisecond)
	require.Equal(t, uint64(1), b.next().id)
	require.Len(t, s.effects(), 4)
}

func TestFaultAdmin(t *testing.T) {
	t.Parallel()
	s := startTest(t, "--admin-listen=127.0.0.1:0", "--noop-interval=50ms")
	admin := s.adminAddr.String()
	c := s.open("a")
	last := c.numbers(5)[4]
	status, _, body := request(t, admin, "POST", "/fault", "drop:id=a")
	require.Equal(t, 201, status, body)
	for {
		e := c.next()
		if e.id == last+2 {
			break
		}
		require.Equal(t, last+1, e.id)
		last = e.id
	}
	status, _, body = request(t, admin, "GET", "/fault", "")
	require.Equal(t, 200, status)
	var list []fault.ArmedFault
	require.NoError(t, json.Unmarshal([]byte(body), &list))
	require.Len(t, list, 1)
	require.Equal(t, "drop:id=a,noop=3,count=1", list[0].Text)
	require.Zero(t, list[0].Remaining)
	require.Equal(t, "a", list[0].Effects[0].ID)
	require.Equal(t, last+1, list[0].Effects[0].Number)
	for _, bad := range []string{"", "nonsense", "drop:noop=0"} {
		status, header, _ := request(t, admin, "POST", "/fault", bad)
		require.Equal(t, 400, status)
		require.Equal(t, "application/problem+json", header.Get("Content-Type"))
	}
	status, _, _ = request(t, admin, "DELETE", "/fault", "")
	require.Equal(t, http.StatusNoContent, status)
	_, _, body = request(t, admin, "GET", "/fault", "")
	require.JSONEq(t, "[]", body)
}

func TestFaultsCannotBeClearedAfterTheEnd(t *testing.T) {
	t.Parallel()
	s := startTest(t, "--admin-listen=127.0.0.1:0")
	s.abort()
	response := httptest.NewRecorder()
	s.adminRoutes().ServeHTTP(response, httptest.NewRequest(http.MethodDelete, "/fault", nil))
	require.Equal(t, http.StatusServiceUnavailable, response.Code)
}

// If idle connections fill the gate of the admin listener, they are closed, so that a fault can be armed at any time.
func TestIdleConnectionsDoNotBlockTheAdminListener(t *testing.T) {
	t.Parallel()
	s := startTest(t, "--admin-listen=127.0.0.1:0", "--idle-timeout=1h")
	for range adminConnections {
		conn := dial(t, s.adminAddr.String())
		fmt.Fprint(conn, "GET /fault HTTP/1.1\r\nHost: test\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		_, err = io.ReadAll(resp.Body)
		require.NoError(t, err)
	}
	status, _, _ := request(t, s.adminAddr.String(), "GET", "/fault", "")
	require.Equal(t, 200, status)
}

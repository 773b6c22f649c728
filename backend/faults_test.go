package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/backend/fault"
)

// startWithFault starts a backend with faults and opens the stream "a".
func startWithFault(t *testing.T, spec string) (*testService, *stream) {
	t.Helper()
	s := startTest(t, "--noop-interval=50ms", "--backend-fault="+spec)
	return s, s.open("a")
}

// effects returns the effects of all faults.
func (s *testService) effects() []fault.Effect {
	var list []fault.Effect
	s.hub.call(func() {
		for _, f := range s.hub.faults.Status() {
			list = append(list, f.Effects...)
		}
	})
	return list
}

// Each fault changes the numbers that a client receives, but the ledger reports all numbers as sent.
func TestNoopFaults(t *testing.T) {
	t.Parallel()
	cases := []struct {
		spec     string
		numbers  []uint64 // received numbers
		affected []uint64 // numbers in the effects
	}{
		{"drop", []uint64{1, 2, 4, 5, 6}, []uint64{3}},
		{"drop:noop=2,count=3", []uint64{1, 5, 6}, []uint64{2, 3, 4}},
		{"drop:noop=1;drop:noop=4", []uint64{2, 3, 5, 6}, []uint64{1, 4}},
		{"duplicate", []uint64{1, 2, 3, 3, 4, 5}, []uint64{3}},
		{"reorder", []uint64{1, 2, 4, 3, 5, 6}, []uint64{3}},
		{"reorder:count=2,noop=1", []uint64{2, 1, 4, 3, 5, 6}, []uint64{1, 3}},
		{"drop:id=other", []uint64{1, 2, 3, 4, 5}, nil},
	}
	for _, c := range cases {
		t.Run(c.spec, func(t *testing.T) {
			t.Parallel()
			s, client := startWithFault(t, c.spec)
			require.Equal(t, c.numbers, client.numbers(len(c.numbers)))
			row := s.disconnect("a")
			require.Equal(t, row.Last, row.Sent)
			require.Equal(t, uint64(1), row.First)
			require.False(t, row.Slow)
			remaining, err := client.readAll()
			require.NoError(t, err)
			require.Equal(t, row.Last, c.numbers[len(c.numbers)-1]+uint64(len(remaining)))
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

// A fault without an id affects exactly one stream.
func TestFaultAffectsOneStream(t *testing.T) {
	t.Parallel()
	s, a := startWithFault(t, "drop:noop=5")
	b := s.open("b")
	got := [2][]uint64{a.numbers(6), b.numbers(6)}
	lost := 0
	for _, numbers := range got {
		if numbers[5] == 7 {
			lost++
		} else {
			require.Equal(t, numbersFrom(1, 6), numbers)
		}
	}
	require.Equal(t, 1, lost)
	require.Len(t, s.effects(), 1)
}

func TestFaultCorrupt(t *testing.T) {
	t.Parallel()
	_, c := startWithFault(t, "corrupt")
	for n := uint64(1); n <= 5; n++ {
		e := c.next()
		require.Equal(t, n, e.id)
		if n == 3 {
			require.Equal(t, "x", e.data)
		} else {
			require.Equal(t, "0", e.data)
		}
	}
}

// A delayed noop and all later ones wait, nothing is lost, and other streams are not affected.
func TestFaultDelay(t *testing.T) {
	t.Parallel()
	s, a := startWithFault(t, "delay=400ms:id=a")
	b := s.open("b")
	received := a.numbers(2)
	require.Equal(t, []uint64{1, 2}, received)
	third := a.next()
	require.Equal(t, uint64(3), third.id)
	wait := third.at.Sub(time.UnixMicro(third.sent))
	require.GreaterOrEqual(t, wait, 390*time.Millisecond)
	require.Equal(t, numbersFrom(4, 12), a.numbers(9))
	for n := uint64(1); n <= 8; n++ {
		require.Equal(t, n, b.next().id)
	}
	row := s.disconnect("a")
	require.Equal(t, row.Last, row.Sent)
	require.False(t, row.Slow)
}

func TestFaultsThatEndTheStream(t *testing.T) {
	t.Parallel()
	for kind, c := range map[string]struct {
		err  error
		sent uint64 // the ledger counts a truncated noop
	}{"truncate": {io.ErrUnexpectedEOF, 3}, "reset": {syscall.ECONNRESET, 2}} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s, client := startWithFault(t, kind)
			events, err := client.readAll()
			require.ErrorIs(t, err, c.err)
			require.LessOrEqual(t, len(events), 2)
			row := s.rows("a")["a"]
			require.Equal(t, "fault", row.Closed)
			require.Equal(t, []uint64{c.sent, c.sent}, []uint64{row.Last, row.Sent})
			require.Equal(t, []uint64{3, 4}, s.open("a", resumeAfter(2)).numbers(2), "the fault must apply to one connection only")
		})
	}
}

// The count of a reset is a number of connections, of any clients.
func TestResetCountsConnections(t *testing.T) {
	t.Parallel()
	s, a := startWithFault(t, "reset:count=2")
	list := []*stream{a, s.open("b"), s.open("c")}
	ok := 0
	for _, c := range list {
		broken := false
		for n := uint64(1); n <= 6 && !broken; n++ {
			_, err := c.read()
			broken = err != nil
		}
		if !broken {
			ok++
		}
	}
	require.Equal(t, 1, ok)
}

func TestFaultStall(t *testing.T) {
	t.Parallel()
	s, c := startWithFault(t, "stall")
	require.Equal(t, []uint64{1, 2}, c.numbers(2))
	eventually(t, "the ledger counts further noops", func() bool { return s.rows("a")["a"].Last >= 8 })
	require.True(t, s.rows("a")["a"].Open)
	row := s.disconnect("a")
	require.Equal(t, row.Last, row.Sent)
	events, err := c.readAll()
	require.NoError(t, err)
	require.Empty(t, events)
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

// The process ends, as by kill -9, before the noop is sent.
func TestFaultDie(t *testing.T) {
	t.Parallel()
	p := startChild(t, "--noop-interval=50ms", "--backend-fault=die:noop=4")
	c := openOn(t, dial(t, p.addr), "a")
	events, err := c.readAll()
	require.Error(t, err)
	require.Equal(t, numbersFrom(1, 3), numbersOf(events))
	var exit interface{ ExitCode() int }
	require.True(t, errors.As(p.cmd.Wait(), &exit))
	require.Equal(t, syscall.SIGKILL, p.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal())

	p = startChild(t, "--noop-interval=50ms")
	c = openOn(t, dial(t, p.addr), "a", resumeAfter(3))
	require.Equal(t, []uint64{4, 5}, c.numbers(2), "the numbering must continue after the restart")
}

// The admin listener arms, lists and clears faults. Its address must be a loopback address.
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
	for _, addr := range []string{"0.0.0.0:0", "192.0.2.1:80", ":8081", "[::]:1", "example.org:80"} {
		_, _, err := parseConfig([]string{"--admin-listen=" + addr}, noEnv)
		require.ErrorContains(t, err, "loopback", addr)
	}
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

// Without chunked encoding the faults apply to the bare events.
func TestFaultUnderHTTP10(t *testing.T) {
	t.Parallel()
	s := startTest(t, "--noop-interval=50ms", "--backend-fault=corrupt:noop=1;duplicate:noop=2")
	conn := dial(t, s.addr)
	_, err := io.WriteString(conn, "GET /event/connect?id=a HTTP/1.0\r\n\r\n")
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	c := &stream{t: t, reader: bufio.NewReader(resp.Body)}
	require.Equal(t, "x", c.next().data)
	require.Equal(t, []uint64{2, 2, 3}, c.numbers(3))
}

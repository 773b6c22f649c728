package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/backend/answer"
)

func TestWireFormat(t *testing.T) {
	t.Parallel()
	s := startTest(t)
	read := func(version, id string) string {
		conn := dial(t, s.addr)
		fmt.Fprintf(conn, "GET /event/connect?id=%s HTTP/%s\r\nHost: test\r\n\r\n", id, version)
		eventually(t, "a noop was sent", func() bool { return s.rows(id)[id].Last >= 1 })
		s.disconnect(id)
		data, err := io.ReadAll(conn)
		require.NoError(t, err)
		all := regexp.MustCompile(`Date: [^\r]+ GMT`).ReplaceAllString(string(data), "Date: D")
		all = regexp.MustCompile(`sent=\d{16}\n`).ReplaceAllString(all, "sent=S\n")
		// Later noops may have arrived: compare only the first noop and the end of the body.
		second := strings.Index(all, "id: 2")
		if second > 0 {
			end := strings.LastIndex(all, "data: 0\n\n") + len("data: 0\n\n")
			all = strings.TrimSuffix(all[:second], "27\r\n") + strings.TrimPrefix(all[end:], "\r\n")
		}
		return all
	}
	require.Equal(t, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"+
		"Cache-Control: no-cache, no-transform\r\nX-Accel-Buffering: no\r\nDate: D\r\n"+
		"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"+
		"27\r\nid: 1\n: sent=S\ndata: 0\n\n\r\n0\r\n\r\n", read("1.1", "chunked"))
	require.Equal(t, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"+
		"Cache-Control: no-cache, no-transform\r\nX-Accel-Buffering: no\r\nDate: D\r\n"+
		"Connection: close\r\n\r\nid: 1\n: sent=S\ndata: 0\n\n", read("1.0", "identity"))
}

func TestNoopsWithoutTimestamps(t *testing.T) {
	t.Parallel()
	s := startTest(t, "--noop-timestamps=off")
	e := s.open("a").next()
	require.Zero(t, e.sent)
	require.Equal(t, "0", e.data)
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	s := startTest(t)
	s.open("open")
	longID := strings.Repeat("x", 65)
	cases := []struct {
		method, path string
		status       int
		headers      []string
	}{
		{"GET", "/event/connect?id=open", 409, nil},
		{"GET", "/event/connect", 400, nil},
		{"GET", "/event/connect?id=", 400, nil},
		{"GET", "/event/connect?id=" + longID, 400, nil},
		{"GET", "/event/connect?id=a%2Fb", 400, nil},
		{"GET", "/event/connect?id=a%00", 400, nil},
		{"GET", "/event/connect?id=../etc", 400, nil},
		{"GET", "/event/connect?id=%C3%A4", 400, nil},
		{"GET", "/event/connect?id=a&id=b", 400, nil},
		{"GET", "/event/connect?id=a;b", 400, nil},
		{"GET", "/event/connect?id=%zz", 400, nil},
		{"GET", "/event/connect?id=a", 400, []string{"Last-Event-ID: x"}},
		{"GET", "/event/connect?id=a", 400, []string{"Last-Event-ID: -1"}},
		{"GET", "/event/connect?id=a", 400, []string{"Last-Event-ID: +1"}},
		{"GET", "/event/connect?id=a", 400, []string{"Last-Event-ID: 1", "Last-Event-ID: 2"}},
		{"GET", "/event/connect?id=a", 400, []string{"Last-Event-ID: 99999999999999999999"}},
		{"DELETE", "/event/forcedisconnect?id=nobody", 404, nil},
		{"DELETE", "/event/forcedisconnect", 400, nil},
		{"POST", "/event/send?id=nobody", 404, nil},
		{"POST", "/event/send?id=open&event=a%0Ab", 400, nil},
		{"POST", "/event/connect?id=a", 405, nil},
		{"HEAD", "/event/connect?id=a", 405, nil},
		{"GET", "/event/forcedisconnect?id=open", 405, nil},
		{"OPTIONS", "/healthz", 405, nil},
		{"GET", "/", 404, nil},
		{"GET", "/fault", 404, nil},
		{"GET", "//event/ledger", 404, nil},
		{"GET", "/event/../event/ledger", 404, nil},
		{"GET", "/event/ledger/", 404, nil},
		{"GET", "/event%2fledger", 404, nil},
		{"GET", "/%65vent/ledger", 404, nil},
		{"GET", "/event/ledger?prefix=%2e%2e%2f", 400, nil},
	}
	for _, c := range cases {
		s.requireRefusal(c.method, c.path, c.status, c.headers...)
	}
	require.Equal(t, 1, s.hub.openStreams())
	status, _, _ := s.request("GET", "/event/connect?id=a", "body")
	require.Equal(t, 400, status)
}

func (s *testService) requireRefusal(method, path string, want int, headers ...string) {
	s.t.Helper()
	status, header, body := s.request(method, path, "", headers...)
	require.Equal(s.t, want, status, "%s %s: %s", method, path, body)
	require.Equal(s.t, "application/problem+json", header.Get("Content-Type"), path)
	if want == http.StatusMethodNotAllowed {
		require.NotEmpty(s.t, header.Get("Allow"))
	}
	if method == http.MethodHead {
		return
	}
	var p answer.Problem
	require.NoError(s.t, json.Unmarshal([]byte(body), &p))
	require.Equal(s.t, want, p.Status)
	require.Equal(s.t, "about:blank", p.Type)
	require.NotEmpty(s.t, p.Title)
	require.Greater(s.t, len(p.Detail), 20, "%s %s", method, path)
}

func TestFullServer(t *testing.T) {
	t.Parallel()
	s := startTest(t, "--max-connections=2")
	s.open("a")
	s.open("b")
	status, header, _ := s.request("GET", "/event/connect?id=c", "")
	require.Equal(t, 503, status)
	require.NotEmpty(t, header.Get("Retry-After"))
	s.disconnect("a")
	s.open("c")
}

// Plain connections and streams share the descriptors. Limits that exceed the descriptors are an error at the start.
func TestConnectionLimitsFitTheDescriptors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ streams, plain, files, wantStreams, wantPlain int }{
		"no limits":         {0, 0, 20_000, 15_840, 4096},
		"few descriptors":   {0, 0, 1064, 750, 250},
		"plain limit only":  {0, 15_000, 20_000, 4936, 15_000},
		"both limits":       {4000, 15_000, 20_000, 4000, 15_000},
		"stream limit only": {19_800, 0, 20_000, 19_800, 136},
		"too many plain":    {0, 19_936, 20_000, 0, 0},
		"too many of both":  {10_000, 10_000, 20_000, 0, 0},
		"too many streams":  {19_900, 0, 20_000, 0, 0},
	} {
		cfg := Config{MaxConnections: c.streams, MaxPlain: c.plain}
		err := cfg.shareDescriptors(uint64(c.files))
		if c.wantPlain == 0 {
			require.ErrorContains(t, err, "do not fit into 20000 file descriptors; raise the limit (ulimit -n", name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, []int{c.wantStreams, c.wantPlain}, []int{cfg.MaxConnections, cfg.httpConnections}, name)
	}
}

func TestToken(t *testing.T) {
	t.Parallel()
	s := startTest(t, "--backend-token=s3cret", "--admin-listen=127.0.0.1:0")
	s.open("a")
	admin := s.adminAddr.String()
	cases := []struct{ addr, method, path, body string }{
		{s.addr, "GET", "/event/ledger", ""},
		{s.addr, "POST", "/event/send?id=a", "x"},
		{s.addr, "POST", "/event/broadcast", "x"},
		{s.addr, "DELETE", "/event/forcedisconnect?id=a", ""},
		{admin, "GET", "/fault", ""},
		{admin, "POST", "/fault", "drop:id=z"},
		{admin, "DELETE", "/fault", ""},
	}
	for _, c := range cases {
		for _, header := range []string{"X-Nothing: 1", "Authorization: Bearer wrong", "Authorization: Basic s3cret", "Authorization: Bearer"} {
			status, got, body := request(t, c.addr, c.method, c.path, c.body, header)
			require.Equal(t, 401, status, c.path)
			require.Contains(t, got.Get("WWW-Authenticate"), "Bearer")
			require.Contains(t, body, `"status":401`)
		}
		status, _, _ := request(t, c.addr, c.method, c.path, c.body, "Authorization: Bearer s3cret")
		require.Less(t, status, 300, c.path)
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		status, _, _ := s.request("GET", path, "")
		require.Equal(t, 200, status)
	}
}

func TestHealthAndMetrics(t *testing.T) {
	t.Parallel()
	s := startTest(t, "--noop-interval=0.1")
	s.open("secret-id").numbers(2)
	_, _, body := s.request("GET", "/healthz", "")
	var health map[string]any
	require.NoError(t, json.Unmarshal([]byte(body), &health))
	require.Equal(t, "ok", health["status"])
	require.Equal(t, 0.1, health["noop_interval_s"])
	require.Equal(t, "broadcast", health["noop_schedule"])
	require.Equal(t, 1.0, health["streams"])
	require.Contains(t, health, "version")
	require.Contains(t, health, "uptime_s")
	_, _, text := s.request("GET", "/metrics", "")
	for _, line := range []string{"backend_streams_open 1\n", "backend_streams_opened_total 1\n",
		`backend_streams_closed_total{reason="slow"} 0`, "backend_noop_interval_seconds 0.1\n",
		"backend_ledger_entries 1\n", "backend_broadcast_duration_seconds_count ", "process_resident_memory_bytes ",
		"go_goroutines ", "backend_build_info{", `backend_refused_total{reason="full"} 0`} {
		require.Contains(t, text, line)
	}
	require.NotContains(t, text, "secret-id")
}

// The backend replaces a stale socket file, serves the protocol on its unix socket, and removes the file when it stops.
func TestUnixSocket(t *testing.T) {
	t.Parallel()
	path := t.TempDir() + "/backend.sock"
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	stale.SetUnlinkOnClose(false)
	stale.Close()
	s := startTest(t, "--listen=unix:"+path)
	s.addr = path
	c := s.open("u")
	require.Equal(t, []uint64{1, 2}, c.numbers(2))
	_, err = listen("unix:"+path, 0o600)
	require.ErrorContains(t, err, "another process is listening")
	row := s.disconnect("u")
	events, err := c.readAll()
	require.NoError(t, err)
	require.Equal(t, row.Last, uint64(2+len(events)))
	s.abort()
	require.NoFileExists(t, path)
}

// Long before the first noop, the response headers arrive, and the backend detects that a client has closed its
// connection.
func TestDisconnectsAreDetected(t *testing.T) {
	t.Parallel()
	s := startTest(t, "--noop-interval=1h")
	c := s.open("a")
	c.conn.Close()
	eventually(t, "the stream has ended", func() bool { return s.hub.openStreams() == 0 })
	row := s.rows("a")["a"]
	require.Equal(t, "client", row.Closed)
	require.False(t, row.Open)
	require.NotZero(t, row.ClosedAt)
	status, _, _ := s.request("DELETE", "/event/forcedisconnect?id=a", "")
	require.Equal(t, http.StatusNotFound, status)
}

// The header X-Server names the server that responded, so that a slow one of several servers can be identified.
func TestForceDisconnectNamesTheServer(t *testing.T) {
	t.Parallel()
	s := startTest(t, "--server-name=backend-2")
	s.open("a")
	for _, want := range []int{http.StatusOK, http.StatusNotFound} {
		status, header, _ := s.request("DELETE", "/event/forcedisconnect?id=a", "")
		require.Equal(t, want, status)
		require.Equal(t, "backend-2", header.Get("X-Server"))
	}
}

// A forcedisconnect that overtakes the connect ends the stream as soon as the stream is attached.
func TestForceDisconnectOvertakesConnect(t *testing.T) {
	t.Parallel()
	s := startTest(t, "--backend-fault=slow-headers=300ms")
	conn := dial(t, s.addr)
	fmt.Fprint(conn, "GET /event/connect?id=a HTTP/1.1\r\nHost: test\r\n\r\n")
	eventually(t, "the connect is pending", func() bool {
		status, _, _ := s.request("DELETE", "/event/forcedisconnect?id=a", "")
		return status == 200
	})
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Empty(t, body)
	require.Equal(t, "forcedisconnect", s.rows("a")["a"].Closed)
}

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/terminal"
)

// childVariable is the environment variable that makes the test binary run the backend, for tests that stop or kill a
// process.
const childVariable = "BACKEND_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		main()
		return
	}
	raiseFileLimit()
	os.Exit(m.Run())
}

// testTimeout limits each wait in the tests.
const testTimeout = 30 * time.Second

// A testService is a backend in the process of the test, on a free port.
type testService struct {
	*service
	t    testing.TB
	addr string
}

func noEnv(string) (string, bool) { return "", false }

// startTest starts a backend with a short noop interval and additional flags.
func startTest(t testing.TB, flags ...string) *testService {
	t.Helper()
	cfg, _, err := parseConfig(append([]string{"--listen=127.0.0.1:0", "--noop-interval=100ms",
		"--max-connections=2000"}, flags...), noEnv)
	require.NoError(t, err)
	svc, err := startService(cfg, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	s := &testService{service: svc, t: t, addr: svc.addr.String()}
	t.Cleanup(func() {
		select {
		case <-s.stopping:
		default:
			s.abort()
		}
	})
	return s
}

func (s *testService) request(method, path, body string, headers ...string) (int, http.Header, string) {
	return request(s.t, s.addr, method, path, body, headers...)
}

// request returns the status, the headers and the body of the response.
func request(t testing.TB, addr, method, path, body string, headers ...string) (int, http.Header, string) {
	t.Helper()
	conn := dial(t, addr)
	defer conn.Close()
	fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: test\r\nConnection: close\r\n%sContent-Length: %d\r\n\r\n%s",
		method, path, headerLines(headers), len(body), body)
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	require.NoError(t, err)
	data, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, resp.Header, string(data)
}

func headerLines(headers []string) string {
	var b strings.Builder
	for _, h := range headers {
		b.WriteString(h + "\r\n")
	}
	return b.String()
}

func dial(t testing.TB, addr string) net.Conn {
	t.Helper()
	network := "tcp"
	if strings.HasPrefix(addr, "/") {
		network = "unix"
	}
	conn, err := net.DialTimeout(network, addr, testTimeout)
	require.NoError(t, err)
	require.NoError(t, conn.SetDeadline(time.Now().Add(3*testTimeout)))
	t.Cleanup(func() { conn.Close() })
	return conn
}

type event struct {
	id   uint64
	sent int64
	name string
	data string
	at   time.Time
}

// A stream is the client's end of an event stream.
type stream struct {
	t      testing.TB
	id     string
	conn   net.Conn
	resp   *http.Response
	reader *bufio.Reader
}

// open connects a stream, and fails the test unless the status is 200.
func (s *testService) open(id string, headers ...string) *stream {
	s.t.Helper()
	c := openOn(s.t, dial(s.t, s.addr), id, headers...)
	require.Equal(s.t, http.StatusOK, c.resp.StatusCode)
	return c
}

// openOn requests a stream on a connection. It accepts any status.
func openOn(t testing.TB, conn net.Conn, id string, headers ...string) *stream {
	t.Helper()
	fmt.Fprintf(conn, "GET /event/connect?id=%s HTTP/1.1\r\nHost: test\r\n%s\r\n", id, headerLines(headers))
	raw := bufio.NewReader(conn)
	resp, err := http.ReadResponse(raw, nil)
	require.NoError(t, err)
	return &stream{t: t, id: id, conn: conn, resp: resp, reader: bufio.NewReader(resp.Body)}
}

func resumeAfter(n uint64) string { return "Last-Event-ID: " + strconv.FormatUint(n, 10) }

// read returns the next event, or io.EOF after the terminator.
func (c *stream) read() (event, error) {
	var e event
	var data []string
	for {
		line, err := c.reader.ReadString('\n')
		if err != nil {
			return e, err
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch {
		case line == "\n":
			e.data, e.at = strings.Join(data, "\n"), time.Now()
			return e, nil
		case field == "id":
			e.id, err = strconv.ParseUint(value, 10, 64)
			require.NoError(c.t, err)
		case field == "event":
			e.name = value
		case field == "data":
			data = append(data, value)
		case strings.HasPrefix(line, ": sent="):
			e.sent, err = strconv.ParseInt(strings.TrimPrefix(value, "sent="), 10, 64)
			require.NoError(c.t, err)
		default:
			require.Fail(c.t, "unexpected line", "%q", line)
		}
	}
}

// next returns the next event, and fails the test if the stream ends.
func (c *stream) next() event {
	c.t.Helper()
	e, err := c.read()
	require.NoError(c.t, err)
	return e
}

func (c *stream) numbers(n int) []uint64 {
	c.t.Helper()
	list := make([]uint64, n)
	for i := range list {
		list[i] = c.next().id
	}
	return list
}

// readAll returns the events up to the end of the stream. err is nil if the stream ended with the terminator.
func (c *stream) readAll() (events []event, err error) {
	for {
		e, err := c.read()
		if err == io.EOF {
			return events, nil
		}
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
}

// disconnect ends a stream with forcedisconnect, and returns its row in the ledger.
func (s *testService) disconnect(id string) ledgerRow {
	s.t.Helper()
	status, _, body := s.request("DELETE", "/event/forcedisconnect?id="+id, "")
	require.Equal(s.t, http.StatusOK, status, body)
	var row ledgerRow
	require.NoError(s.t, json.Unmarshal([]byte(body), &row))
	return row
}

func (s *testService) rows(prefix string) map[string]ledgerRow {
	s.t.Helper()
	status, _, body := s.request("GET", "/event/ledger?prefix="+prefix, "")
	require.Equal(s.t, http.StatusOK, status)
	return parseRows(s.t, body)
}

func parseRows(t testing.TB, body string) map[string]ledgerRow {
	t.Helper()
	rows := map[string]ledgerRow{}
	for line := range strings.Lines(body) {
		var row ledgerRow
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			require.NoError(t, err, line)
		}
		if _, duplicate := rows[row.ID]; duplicate {
			require.Fail(t, "an id is in the ledger twice", row.ID)
		}
		rows[row.ID] = row
	}
	return rows
}

func eventually(t testing.TB, condition string, cond func() bool) {
	t.Helper()
	require.Eventually(t, cond, testTimeout, 5*time.Millisecond, "condition not met: %s", condition)
}

func numbersFrom(first, last uint64) []uint64 {
	var list []uint64
	for n := first; n <= last; n++ {
		list = append(list, n)
	}
	return list
}

func numbersOf(events []event) []uint64 {
	var list []uint64
	for _, e := range events {
		list = append(list, e.id)
	}
	return list
}

// A child is a backend in its own process.
type child struct {
	cmd  *exec.Cmd
	addr string
	log  *terminal.Output
}

// startChild starts the backend as a process and waits until it listens.
func startChild(t testing.TB, flags ...string) *child {
	t.Helper()
	c := &child{log: new(terminal.Output)}
	c.cmd = exec.Command(os.Args[0], append([]string{"--listen=127.0.0.1:0"}, flags...)...)
	c.cmd.Env = append(os.Environ(), childVariable+"=1")
	c.cmd.Stderr = c.log
	require.NoError(t, c.cmd.Start())
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
	})
	deadline := time.Now().Add(testTimeout)
	for c.addr == "" {
		require.True(t, time.Now().Before(deadline), "the backend does not listen: %s", c.log)
		time.Sleep(5 * time.Millisecond)
		for line := range strings.Lines(c.log.String()) {
			var entry struct{ Msg, Addr string }
			if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "listening" {
				c.addr = entry.Addr
			}
		}
	}
	return c
}

package requests

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.k6.io/k6/v2/lib"
)

func direct(*url.URL) (*url.URL, error) { return nil, nil }

func TestClosedStageMakesEachRequestOnce(t *testing.T) {
	t.Parallel()
	var served, concurrent, peak, connections atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := concurrent.Add(1)
		for p := peak.Load(); n > p && !peak.CompareAndSwap(p, n); p = peak.Load() {
		}
		defer concurrent.Add(-1)
		served.Add(1)
		w.Header().Set("X-Server", "a")
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, `{"method": %q, "got": %q, "agent": %q}`, r.Method, body, r.Header.Get("User-Agent"))
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	v := newVU(t, func(s *lib.State) { s.Options.UserAgent.SetValid("tester") })
	require.Equal(t, counts{Made: 1000}, v.await(`closed({concurrency: 10, requests: 1000, operations: [
		{name: 'get', url: %q, want: {json: {agent: 'tester', got: '', method: 'GET'}}},
		{name: 'post', method: 'POST', url: %q, body: 'text', want: {json: 'text', at: 'got'}},
	]})`, s.URL, s.URL))
	require.EqualValues(t, 1000, served.Load())
	require.LessOrEqual(t, peak.Load(), int64(10))
	require.LessOrEqual(t, connections.Load(), int64(10), "connections must be reused")
	sums := v.sums()
	require.Equal(t, 1000, sums["request_duration ok a"].n)
	// The number of series is the product of stages, operations and servers, and a series uses 26 KB or more.
	// request_first_byte is therefore not split by operation and server.
	require.Equal(t, 1000, sums["request_first_byte ok"].n)
	require.LessOrEqual(t, sums["request_first_byte ok"].total, sums["request_duration ok a"].total)
}

func TestExpectedResponseContainsTheUniqueTextOfItsRequest(t *testing.T) {
	t.Parallel()
	var texts sync.Map
	var wrong, requests atomic.Int64
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if _, known := texts.LoadOrStore(string(body), true); known || r.FormValue("id") != string(body) || r.Header.Get("X-Id") != string(body) || r.Host != string(body)+".test" || len(body) != 20 {
			wrong.Add(1)
		}
		if requests.Add(1) == 7 {
			body[3]++
		}
		_, _ = fmt.Fprintf(w, `{"id": "%s"}`, body)
	})
	v := newVU(t)
	require.Equal(t, counts{Made: 100, Failed: 1}, v.await(`closed({concurrency: 5, requests: 100, operations: [
		{method: 'PUT', url: '%s/?id={unique}', headers: {'X-Id': '{unique}', Host: '{unique}.test'}, body: '{unique}', want: {json: {id: '{unique}'}}},
	]})`, s.URL))
	require.Equal(t, map[string]int{"ok": 99, "wrong": 1}, v.codes())
	require.Zero(t, wrong.Load())
}

func TestRunnersDivideALoadExactly(t *testing.T) {
	t.Parallel()
	var served atomic.Int64
	s := serve(t, func(http.ResponseWriter, *http.Request) { served.Add(1) })
	sequence, err := lib.NewExecutionSegmentSequenceFromString("0,1/3,2/3,1")
	require.NoError(t, err)
	for _, call := range []string{
		`closed({concurrency: 7, requests: 100, operations: [{url: %q}]})`,
		`closed({concurrency: 1, requests: 100, operations: [{url: %q}]})`,
		`closed({concurrency: 100, requests: 100, operations: [{url: %q}]})`,
		`open({rate: 1000, seconds: 0.1, concurrency: 10, operations: [{url: %q}]})`,
		`open({rate: 1000, seconds: 0.1, concurrency: 2, operations: [{url: %q}]})`,
		`burst({requests: 100, operations: [{url: %q}]})`,
	} {
		served.Store(0)
		for i := range 3 {
			v := newVU(t, func(s *lib.State) {
				s.Options.ExecutionSegment, s.Options.ExecutionSegmentSequence = sequence[i], &sequence
			})
			require.Zero(t, v.await(call, s.URL).Failed)
		}
		require.EqualValues(t, 100, served.Load(), call)
	}
}

func TestResponseDeterminesTheOutcome(t *testing.T) {
	t.Parallel()
	ok := "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	for name, c := range map[string]struct {
		url, want, code string
	}{
		"expected body":                  {serveBytes(t, ok), `{body: 'ok'}`, "ok"},
		"wrong body":                     {serveBytes(t, ok), `{body: 'no'}`, "wrong"},
		"invalid JSON":                   {serveBytes(t, ok), `{json: 'ok'}`, "wrong"},
		"JSON":                           {serveBytes(t, "HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n{\"a\":{\"b\":[1,2]}}"), `{json: [1, 2], at: 'a.b'}`, "ok"},
		"JSON without the property":      {serveBytes(t, "HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n{\"a\":{\"b\":[1,2]}}"), `{json: null, at: 'a.c'}`, "wrong"},
		"any body":                       {serveBytes(t, ok), `{}`, "ok"},
		"chunked":                        {serveBytes(t, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n"), `{body: 'ok'}`, "ok"},
		"interim responses":              {serveBytes(t, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n"+ok), `{body: 'ok'}`, "ok"},
		"only interim responses":         {serveBytes(t, strings.Repeat("HTTP/1.1 102 P\r\n\r\n", 11)), `{}`, "net-1000"},
		"no content":                     {serveBytes(t, "HTTP/1.1 204 No Content\r\n\r\n"), `{status: 204}`, "ok"},
		"no content instead of 200":      {serveBytes(t, "HTTP/1.1 204 No Content\r\n\r\n"), `{}`, "status-204"},
		"busy":                           {serveBytes(t, "HTTP/1.1 503 S\r\nContent-Length: 0\r\n\r\n"), `{}`, "status-503"},
		"redirect":                       {serveBytes(t, "HTTP/1.1 302 F\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"), `{}`, "status-302"},
		"other protocol":                 {serveBytes(t, "HTTP/1.1 101 S\r\nUpgrade: x\r\n\r\n"), `{}`, "status-101"},
		"body until the connection ends": {serveTruncated(t, "HTTP/1.1 200 OK\r\n\r\nok"), `{body: 'ok'}`, "ok"},
		"truncated body":                 {serveTruncated(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no"), `{body: 'ok'}`, "truncated"},
		"truncated body, any expected":   {serveTruncated(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no"), `{}`, "truncated"},
		"chunked without a last chunk":   {serveTruncated(t, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n"), `{body: 'ok'}`, "truncated"},
		"truncated body, then a reset": {serveRaw(t, func(conn net.Conn, request func() bool) {
			_ = request()
			_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no"))
			time.Sleep(200 * time.Millisecond) // a reset discards what the client has not read
			_ = conn.(*net.TCPConn).SetLinger(0)
		}), `{body: 'ok'}`, "truncated"},
		"truncated body of a refusal": {serveTruncated(t, "HTTP/1.1 503 S\r\nContent-Length: 2\r\n\r\no"), `{}`, "net-1000"},
		"truncated head":              {serveTruncated(t, "HTTP/1.1 200 OK\r\nContent-"), `{}`, "net-1000"},
		"longer than its length":      {serveBytes(t, ok+"!"), `{}`, "wrong"},
		"two responses":               {serveBytes(t, ok+ok), `{body: 'ok'}`, "wrong"},
		"a bad status, and longer":    {serveBytes(t, "HTTP/1.1 503 S\r\nContent-Length: 0\r\n\r\n!"), `{}`, "status-503"},
		"not HTTP":                    {serveBytes(t, "ok\r\n"), `{}`, "net-1000"},
		"closed connection":           {serveTruncated(t, ""), `{}`, "net-1000"},
		"reset connection": {serveRaw(t, func(conn net.Conn, request func() bool) {
			_ = request()
			_ = conn.(*net.TCPConn).SetLinger(0)
		}), `{}`, "net-1220"},
		"refused connection": {closedURL, `{}`, "net-1212"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVU(t)
			v.await(`closed({concurrency: 1, requests: 3, operations: [{url: %q, want: %s}]})`, c.url, c.want)
			require.Equal(t, map[string]int{c.code: 3}, v.codes())
		})
	}
}

func TestExpectedBodyMayExceedMaxBody(t *testing.T) {
	t.Parallel()
	expected := bytes.Repeat([]byte("x"), maxBody+1)
	for surplus, code := range []string{"ok", "wrong"} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(expected)
			_, _ = w.Write(expected[:surplus])
		})
		l, request := newVU(t).lane(`{url: %q, want: {body: ''}}`, s.URL)
		l.s.operations[0].want.body = expected
		require.Equal(t, code, request())
	}
}

func TestExpectedJSONIsEncodedAsByJSONStringify(t *testing.T) {
	t.Parallel()
	for want, body := range map[string]string{
		`{a: 1, b: undefined}`:       `{"a": 1}`,
		`{at: new Date(0)}`:          `{"at": "1970-01-01T00:00:00.000Z"}`,
		`[NaN, undefined]`:           `[null, null]`,
		`{toJSON() { return 'x'; }}`: `"x"`,
		`'a'`:                        `"a"`,
		`null`:                       `null`,
	} {
		v, u := newVU(t), serveOK(t, body)
		v.await(`closed({concurrency: 1, requests: 1, operations: [{url: %q, want: {json: %s}}]})`, u, want)
		require.Equal(t, map[string]int{"ok": 1}, v.codes(), want)
	}
}

func serveOK(t *testing.T, body string) string {
	return serveBytes(t, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
}

// Only {unique} is replaced in a request.
func TestRequestIsSentUnchanged(t *testing.T) {
	t.Parallel()
	bodies := make(chan string, 1)
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies <- string(body)
	})
	const call = `closed({concurrency: 1, requests: 1, operations: [{method: 'POST', url: %q, body: 'u'.repeat(50)}]})`
	newVU(t).await(call, s.URL)
	require.Equal(t, strings.Repeat("u", 50), <-bodies)
}

func TestSlowResponseIsATimeout(t *testing.T) {
	t.Parallel()
	u := serveRaw(t, func(conn net.Conn, request func() bool) {
		_ = request()
		_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\n"))
		_ = request() // waits for the client to close
	})
	v := newVU(t)
	require.Equal(t, counts{Made: 2, Failed: 2}, v.await(`closed({concurrency: 2, requests: 2, timeout: 1000, operations: [{url: %q}]})`, u))
	sums := v.sums()
	require.Equal(t, 2, sums["request_duration net-1050"].n)
	require.GreaterOrEqual(t, sums["request_duration net-1050"].total, 2000.0)
	require.Equal(t, 2, sums["request_first_byte net-1050"].n, "responses whose first byte arrived must be counted")
}

// A second response 3 ms after the first is a fault of the service, in every load model and also after the last
// request of a connection.
func TestUnrequestedBytesAreCounted(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]string{
		"open":   `open({rate: 50, seconds: 0.4, concurrency: 2, operations: [{url: %q, want: {body: 'ok'}}]})`,
		"closed": `closed({concurrency: 10, requests: 10, operations: [{url: %q, want: {body: 'ok'}}]})`,
		"burst":  `burst({requests: 20, operations: [{url: %q, want: {body: 'ok'}}]})`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sentCount, timelyCount atomic.Int64
			u := serveRaw(t, func(conn net.Conn, request func() bool) {
				for request() {
					respondedAt := time.Now()
					_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"))
					time.Sleep(3 * time.Millisecond)
					if _, err := conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno")); err != nil {
						return
					}
					sentCount.Add(1)
					if time.Since(respondedAt) < settleTime/2 { // a later response may arrive after the client has closed the connection
						timelyCount.Add(1)
					}
				}
			})
			v := newVU(t)
			var failed int64
			for timelyCount.Load() == 0 { // on a busy machine, the unrequested responses may all be late
				failed += v.await(call, u).Failed
			}
			sums := v.sums()
			// A request that is sent within these 3 ms reads the second response to the previous request as its own.
			wrong := float64(sums["request_duration wrong"].n)
			found := sums["unrequested_bytes"].total + wrong
			require.LessOrEqual(t, found, float64(sentCount.Load()))
			require.GreaterOrEqual(t, found, .7*(float64(timelyCount.Load())-wrong))
			require.EqualValues(t, failed, sums["request_duration wrong"].n)
		})
	}
}

// A closed stage starts no request after its end, but waits for the requests that it has started.
func TestClosedStageEndsByTime(t *testing.T) {
	t.Parallel()
	s := serve(t, func(http.ResponseWriter, *http.Request) { time.Sleep(20 * time.Millisecond) })
	v := newVU(t)
	c := v.await(`closed({concurrency: 2, requests: 1000, seconds: 0.2, operations: [{url: %q}]})`, s.URL)
	require.Zero(t, c.Failed)
	require.Positive(t, c.Made)
	require.EqualValues(t, 1000, c.Made+c.Dropped)
	require.EqualValues(t, c.Dropped, v.sums()["dropped_iterations"].total)
	require.Positive(t, v.await(`closed({concurrency: 2, seconds: 0.1, operations: [{url: %q}]})`, s.URL).Made)
	require.Zero(t, v.sums()["dropped_iterations"].total, "a stage without the option requests must drop no request")
}

func TestInterruptedStageEndsAtOnce(t *testing.T) {
	t.Parallel()
	for _, call := range []string{
		`closed({concurrency: 20, requests: 100, timeout: '10m', operations: [{url: %q}]})`,
		`open({rate: 200, seconds: 600, concurrency: 20, timeout: '10m', operations: [{url: %q}]})`,
		`burst({requests: 20, timeout: '10m', operations: [{url: %q}]})`,
	} {
		var requests atomic.Int64
		all := make(chan struct{})
		u := serveRaw(t, func(_ net.Conn, request func() bool) {
			_ = request()
			if requests.Add(1) == 20 {
				close(all)
			}
			_ = request()
		})
		v := newVU(t)
		go func() {
			<-all
			v.CancelContext()
		}()
		start := time.Now()
		_, _ = v.RunOnEventLoop(fmt.Sprintf(call, u))
		require.Less(t, time.Since(start), time.Minute)
		require.Empty(t, v.codes(), "interrupted requests must not be counted")
	}
}

func TestNoGoroutineIsLeft(t *testing.T) { //nolint:paralleltest // counts the goroutines of the process
	u := serveBytes(t, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	v := newVU(t)
	before := runtime.NumGoroutine()
	for _, call := range []string{
		`closed({concurrency: 50, requests: 500, operations: [{url: %q}]})`,
		`open({rate: 1000, seconds: 0.2, concurrency: 50, operations: [{url: %q}]})`,
		`burst({requests: 50, operations: [{url: %q}]})`,
	} {
		require.Zero(t, v.await(call, u).Failed)
	}
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+2 }, time.Minute, time.Millisecond)
}

func TestWrongOptionsThrow(t *testing.T) {
	t.Parallel()
	v := newVU(t)
	for script, message := range map[string]string{
		`closed()`:                              "options are missing",
		`closed({concurrency: 1, requests: 1})`: "operations is missing",
		`closed({operations: [], concurrency: 1, requests: 1})`:                                            "at least one operation",
		`closed({operations: [{url: 'ftp://h'}], concurrency: 1, requests: 1})`:                            "must start with http://",
		`closed({operations: [{url: 'http://h', method: 'A B'}], concurrency: 1, requests: 1})`:            "invalid method",
		`closed({operations: [{url: 'http://h', headers: {a: 'b\nc'}}], concurrency: 1, requests: 1})`:     "invalid header",
		`closed({operations: [{url: 'http://h', body: 7}], concurrency: 1, requests: 1})`:                  "body must be a string",
		`closed({operations: [{url: 'http://h', want: {body: '', json: 1}}], concurrency: 1, seconds: 1})`: "must not have both body and json",
		`closed({operations: [{url: 'http://h'}], concurrency: 1})`:                                        "would never end",
		`closed({operations: [{url: 'http://h'}], concurrency: 1.5, requests: 1})`:                         "concurrency must be a positive integer",
		`closed({operations: [{url: 'http://h'}], concurrency: 1, requests: 1, timeout: 0})`:               "timeout must be a positive number",
		`closed({operations: [{url: 'http://h'}], concurrency: 1, requests: 1, rate: 1})`:                  `unknown option "rate"`,
		`closed({operations: [{url: 'http://h', wnat: {body: 'ok'}}], concurrency: 1, requests: 1})`:       `unknown property "wnat"`,
		`closed({operations: [{url: 'http://h', want: {boddy: 'ok'}}], concurrency: 1, requests: 1})`:      `want: unknown property "boddy"; use status, body, json, at`,
		`closed({operations: [{url: 'http://h'}], concurrency: 1, requests: 2e9})`:                         "up to 1e9",
		`open({operations: [{url: 'http://h'}], rate: 0, seconds: 1, concurrency: 1})`:                     "rate must be a positive number",
		`burst({operations: [{url: 'http://h'}]})`:                                                         "requests is missing",
	} {
		_, err := v.VU.Runtime().RunString(script)
		require.ErrorContains(t, err, message, script)
	}
}

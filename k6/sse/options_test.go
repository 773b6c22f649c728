package sse

import (
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"
	"gopkg.in/guregu/null.v3"
)

// The time to connect must exclude waits due to the option rps.
func TestOptionRPSLimitsStreamsAndSecondRequests(t *testing.T) {
	t.Parallel()
	const interval = 100 * time.Millisecond
	for name, tt := range map[string]struct {
		script   string
		requests int
	}{
		"EventSource": {`
			for (let i = 0; i < 4; i++) {
				const s = new EventSource(url, { reconnect: false, connectTimeout: "1m" });
				s.onopen = () => log.push(s.connectMs < 1000);
			}`, 4},
		"a reconnect": {`
			const s = new EventSource(url, { reconnectDelay: 1 });
			s.onopen = () => { if (log.push(true) === 4) s.close(); };`, 4},
		"open": {`for (let i = 0; i < 4; i++) log.push(sse.open(url, { timeout: "1m" }, () => {}).error === "");`, 4},
		"a second request": {`
			for (let i = 0; i < 2; i++) {
				const s = new EventSource(url + "/hold", { then: { url: "/", ok: [200] } });
				s.addEventListener("then", () => { log.push(true, true); s.close(); });
			}`, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newVU(t)
			v.state.RPSLimit = rate.NewLimiter(rate.Every(interval), 1)
			v.set("url", serve(t, func(p *peer) {
				if p.req.Method == "POST" {
					p.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
					return
				}
				p.send(streamHead + "retry: 1\ndata: 0\n\n")
				if p.req.URL.Path == "/hold" {
					p.hold()
				}
			}))
			start := time.Now()
			require.Equal(t, "true true true true", v.log(tt.script))
			require.GreaterOrEqual(t, time.Since(start), time.Duration(tt.requests-1)*interval)
		})
	}
}

func TestStreamDelayedByTheOptionRPSCanBeClosed(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"close() of EventSource":     `const s = new EventSource(url); s.onerror = () => log.push("error"); setTimeout(() => { s.close(); log.push(s.readyState); }, 1);`,
		"close() of open":            `sse.open(url, (c) => { c.setTimeout(() => { c.close(); log.push(2); }, 1); });`,
		"EventSource, end of the VU": `new EventSource(url); cancel(); log.push(2)`,
		"open, end of the VU":        `log.push(sse.open(url, (c) => c.setTimeout(cancel, 1)).error.startsWith("interrupted") ? 2 : "no");`,
	} {
		v := newVU(t)
		v.set("cancel", v.CancelContext)
		v.state.RPSLimit = rate.NewLimiter(rate.Every(time.Hour), 1)
		require.True(t, v.state.RPSLimit.Allow())
		v.set("url", "http://127.0.0.1:1/")
		v.set("setTimeout", func(fn func() error, _ int) { v.VU.RegisterCallback()(fn) })
		require.Equal(t, "2", v.log(script), name)
	}
}

func TestOptionHTTPDebugLogsRequestsAndResponseHeads(t *testing.T) {
	t.Parallel()
	for option, body := range map[string]string{"headers": "", "full": "{}"} {
		v := newVU(t)
		logger, entries := test.NewNullLogger()
		v.state.Logger, v.state.Options.HTTPDebug = logger, null.StringFrom(option)
		v.set("url", serve(t, func(p *peer) {
			if p.n == 0 {
				p.send("HTTP/1.1 307 Temporary Redirect\r\nLocation: /to\r\nContent-Length: 0\r\n\r\n")
				return
			}
			p.send(streamHead + "data: hidden\n\n")
		}))
		v.mustRun(`new EventSource(url + "/from", { method: "POST", body: "{}", headers: { X: "1" }, reconnect: false, tags: { device: "d1" } })`)
		var all []string
		for _, e := range entries.AllEntries() {
			all = append(all, e.Message)
			require.Equal(t, "http-debug", e.Data["source"])
			require.Equal(t, "d1", e.Data["device"])
			require.NotEmpty(t, e.Data["request_id"])
		}
		require.Len(t, all, 4, "the log must have two requests and two responses")
		require.Regexp(t, `^Request:\nPOST /from HTTP/1\.1\nHost: [^\r]*\nX: 1[^\r]*\n\n`+body+`\n$`, all[0])
		require.Equal(t, "Response:\nHTTP/1.1 307 Temporary Redirect\nContent-Length: 0\nLocation: /to\n\n", all[1])
		require.True(t, strings.HasPrefix(all[2], "Request:\nPOST /to HTTP/1.1\n"), all[2])
		require.Equal(t, "Response:\nHTTP/1.1 200 OK\nContent-Type: text/event-stream\n\n", all[3])
	}
}

func TestInvalidOptionsAreRejected(t *testing.T) {
	t.Parallel()
	v := newVU(t)
	v.set("notALedger", v)
	for options, want := range map[string]string{
		`idleTimeout: -1`:                           "option idleTimeout: must not be negative, got -1",
		`idleTimeout: -1e13`:                        "option idleTimeout: must not be negative",
		`idleTimeout: "1e13"`:                       "must be a number of milliseconds up to 9e12",
		`idleTimeout: NaN`:                          `option idleTimeout: must be a number of milliseconds up to 9e12 or a duration such as "10s", got NaN`,
		`idleTimeout: 1e300`:                        "got 1e+300",
		`idleTimeout: 1e13`:                         "must be a number of milliseconds up to 9e12",
		`connectTimeout: "soon"`:                    `option connectTimeout: must be a number of milliseconds up to 9e12 or a duration such as "10s", got "soon"`,
		`reconnect: 1`:                              "option reconnect: must be true or false, got 1",
		`maxRedirects: -1`:                          "option maxRedirects: must be an integer from 0 to 2147483647, got -1",
		`followRedirects: "false"`:                  `option followRedirects: must be true or false, got "false"`,
		`maxEventSize: 0`:                           "option maxEventSize: must be an integer from 1 to 2147483647, got 0",
		`http: "3"`:                                 `option http: must be auto, 1.1 or 2, got "3"`,
		`streamsPerConnection: -1`:                  "option streamsPerConnection: must be an integer from 0 to 65535, got -1",
		`streamsPerConnection: 70000`:               "option streamsPerConnection: must be an integer from 0 to 65535, got 70000",
		`acceptEncoding: true`:                      `option acceptEncoding: must be none, gzip or browser, got "true"`,
		`ledger: {}`:                                "option ledger: must be a Ledger of k6/x/soak, got [object Object]",
		`ledger: notALedger`:                        "must be a Ledger of k6/x/soak",
		`headers: {"a b": "c"}`:                     `option headers: invalid header name "a b"`,
		`headers: {a: "x\r\nEvil: 1"}`:              "line break",
		`tags: {a: {}}`:                             "option tags: invalid value for metric tag 'a'",
		`method: 5`:                                 `option method: must be a method other than HEAD and CONNECT, got "5"`,
		`method: ""`:                                `option method: must be a method other than HEAD and CONNECT, got ""`,
		`method: "GET / HTTP/1.1\r\n"`:              `option method: must be a method other than HEAD and CONNECT, got "GET / HTTP/1.1`,
		`method: "HEAD"`:                            `option method: must be a method other than HEAD and CONNECT, got "HEAD"`,
		`method: "POST", body: {}`:                  "option body: must be a string, got [object Object]; encode an object with JSON.stringify",
		`body: "x"`:                                 "option body: a GET request cannot have a body; set method",
		`method: "GET", body: "x"`:                  "option body: a GET request cannot have a body; set method",
		`resume: "query"`:                           `option resume: must be "header", "none" or { query: "name" }`,
		`resume: null`:                              "option resume: must be",
		`resume: {}`:                                "option resume: must be",
		`resume: { query: "" }`:                     `option resume: query must be the name of a parameter, got ""`,
		`resume: { query: 5 }`:                      `option resume: query must be the name of a parameter, got "5"`,
		`resume: { header: "x" }`:                   `option resume: unknown property "header"; use query`,
		`renew: {}`:                                 "option renew: must be a function, got [object Object]",
		`then: 5`:                                   "option then: must be an object with a url, got 5",
		`then: {}`:                                  "option then: url is missing",
		`then: { url: 5 }`:                          "option then: url: must be a string or a function, got 5",
		`then: { url: "{first.ID}" }`:               `option then: url: unknown placeholder "{first.ID}"`,
		`then: { url: "", body: "{first.id" }`:      `option then: body: unknown placeholder "{first.id"`,
		`then: { url: "", body: {} }`:               "option then: body: must be a string or a function, got [object Object]",
		`then: { url: "", method: "A B" }`:          `option then: method: must be a method other than HEAD and CONNECT, got "A B"`,
		`then: { url: "", ok: 200 }`:                "option then: ok: must be a list of statuses such as [200, 204], got 200",
		`then: { url: "", ok: [] }`:                 "option then: ok: must contain at least one status",
		`then: { url: "", ok: [20] }`:               "option then: ok: must contain only statuses from 200 to 599, got 20",
		`then: { url: "", timeout: "soon" }`:        "option then: timeout: must be a number of milliseconds up to 9e12 or a duration",
		`then: { url: "", headers: { "a b": "" } }`: `option then: headers: invalid header name "a b"`,
		`then: { url: "", headers: { a: 5 } }`:      "option then: headers: a: must be a string or a function, got 5",
		`then: { url: "", header: {} }`:             "option then: header: unknown property; use method, url,",
	} {
		_, err := v.VU.Runtime().RunString(`new EventSource("http://h/", { ` + options + ` })`)
		require.ErrorContains(t, err, want, options)
	}
}

package sse

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	httpModule "go.k6.io/k6/v2/js/modules/k6/http"
	"gopkg.in/guregu/null.v3"
)

// logging is a function for open that records all calls of handlers.
const logging = `function (client) {
	client.on("open", () => log.push("open"));
	client.on("event", (e) => log.push("event:" + [e.id, e.name, e.data, e.comment].join("|")));
	client.on("error", (e) => { globalThis.error = e; log.push("error:" + e.reason, e.error() === e.message && e.message !== ""); });
}`

func TestOpenReadsAStream(t *testing.T) {
	t.Parallel()
	v := serveVU(t, respond(strings.Replace(streamHead, "\r\n\r\n", "\r\nX-A: 1\r\nX-A: 2\r\n\r\n", 1)+
		"retry: 10000\n: hello\nid: ABCD\ndata: {\"ping\": \"pong\"}\ndata: {\"hello\": \"sse\"}\n\n"+
		": a block without data is no event\n\nevent: EFGH\r\ndata: x\r\n\r\n"))
	require.Equal(t, `open event:ABCD||{"ping": "pong"}`+"\n"+`{"hello": "sse"}|hello event:|EFGH|x| 200 true 1, 2 `,
		v.log(`const res = sse.open(url + "/?id=1", `+logging+`);
			log.push(res.status, res.url === url + "/?id=1", res.headers["X-A"], res.error);`))
	all := v.drainSamples()
	plainURL := v.str("url") + "/"
	for metric, want := range map[string]float64{
		"sse_event": 2, "sse_connection_opened": 1, "http_reqs": 1,
	} {
		got, _ := v.sum(all, metric, "url", plainURL, "status", "200", "method", "GET")
		assert.Equal(t, want, got, metric)
	}
	for _, metric := range []string{"sse_connecting", "sse_first_event", "http_req_duration"} {
		_, n := v.sum(all, metric)
		assert.Equal(t, 1, n, metric)
	}
	got, _ := v.sum(all, "sse_connection_closed", "reason", "server", "opened", "true")
	assert.Equal(t, 1.0, got)
}

// xk6-sse hangs or reports no error for these faults, according to its issue tracker and our measurements.
func TestOpenReturnsOnFaults(t *testing.T) {
	t.Parallel()
	const chunked = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
	hold := func(s string) func(*peer) { return func(p *peer) { p.send(s); p.hold() } }
	const event = " event:||0|"
	for _, tt := range []struct {
		name, params, want string
		status             int
		handle             func(p *peer)
		url, message       string // the URL to open without a server, and a part of the error
	}{
		{name: "silent server", params: `{idleTimeout: "60ms"}`, want: "open" + event + " error:idle", status: 200, handle: hold(streamHead + "data: 0\n\n")},
		{name: "TCP reset", want: "open" + event + " error:reset", status: 200, handle: func(p *peer) {
			p.send(streamHead + "data: 0\n\n")
			time.Sleep(20 * time.Millisecond)
			p.reset()
		}},
		{name: "early EOF", want: "open" + event + " error:truncated", status: 200, handle: respond(chunked + "9\r\ndata: 0\n\n\r\n")},
		{name: "an incomplete event", params: "null", want: "open" + event + " error:truncated", status: 200, handle: respond(streamHead + "data: 0\n\ndata:")},
		{name: "comments only", params: "undefined", want: "open", status: 200, handle: respond(streamHead + ": 1\n\n:\n\n")},
		{name: "500", want: "error:status", status: 500, handle: respond("HTTP/1.1 500 Oops\r\nContent-Type: text/event-stream\r\n\r\ndata: 0\n\n")},
		{name: "204", want: "error:no_content", status: 204, handle: respond("HTTP/1.1 204 No Content\r\n\r\n")},
		{name: "no header in time", params: `{connectTimeout: 60}`, want: "error:connect_timeout", handle: hold("")},
		{name: "timeout during the stream", params: `{timeout: "500ms"}`, want: "open" + event + " error:timeout", status: 200, handle: hold(streamHead + "data: 0\n\n")},
		{name: "timeout before the header", params: `{timeout: 60}`, want: "error:timeout", handle: hold("")},
		{name: "refused", url: "http://127.0.0.1:1/", want: "error:refused", message: "connection refused"},
		{name: "no such name", url: "http://no-such-host.invalid/", want: "error:dns", message: "no such host"},
		{name: "malformed URL", url: "INVALID", want: "error:error", message: "invalid URL"},
		{name: "empty URL", url: "", want: "error:error", message: "invalid URL"},
		{name: "escape in the URL", url: "http://h/%zz", want: "error:error", message: "invalid URL"},
		{name: "control character in the URL", url: "http://h\x7f/", want: "error:error", message: "invalid URL"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, throw := range []bool{false, true} {
				v := newVU(t)
				v.state.Options.Throw = null.BoolFrom(throw)
				v.set("url", tt.url)
				if tt.handle != nil {
					v.set("url", serve(t, tt.handle))
				}
				got := v.log(`
					var res = {}, thrown = "";
					try { res = sse.open(url, ` + cmp.Or(tt.params, "{}") + `, ` + logging + `); } catch (e) { thrown = e.message || String(e); }
				`)
				want := tt.want
				failed := strings.Contains(want, "error:")
				if failed {
					want += " true"
				}
				require.Equal(t, want, got)
				if throw && tt.status == 0 {
					require.NotEmpty(t, v.str("thrown"))
					require.Contains(t, v.str("thrown"), tt.message)
					continue
				}
				require.Empty(t, v.str("thrown"))
				require.Equal(t, fmt.Sprint(tt.status), v.str("res.status"))
				require.Equal(t, failed, v.str("res.error") != "")
				if failed {
					require.Equal(t, fmt.Sprint(tt.status), v.str("error.status"))
					require.Contains(t, v.str("res.error"), tt.message)
					require.Contains(t, v.str("String(error)"), tt.message)
				}
			}
		})
	}
}

func TestOpenCanBeClosedAtAnyTime(t *testing.T) {
	t.Parallel()
	v := newVU(t)
	url := serve(t, func(p *peer) { p.send(streamHead + strings.Repeat("data: 0\n\n", 100)); p.hold() })
	v.set("url", url)
	for name, script := range map[string]string{
		"by its function":    `sse.open(url, (c) => { c.on("error", () => log.push("error")); c.close(); log.push("ok"); })`,
		"in the first event": `sse.open(url, (c) => { c.on("error", () => log.push("error")); c.on("event", () => { log.push("ok"); c.close(); }); })`,
		"in open":            `sse.open(url, (c) => { c.on("event", () => log.push("event")); c.on("open", () => { log.push("ok"); c.close(); }); })`,
		"by a watchdog":      `sse.open(url, (c) => c.setTimeout(() => { log.push("ok"); c.close(); }, 20))`,
		"by a watchdog of 32 years or by a ticker of under 1 ns": `sse.open(url, (c) => { c.setTimeout(() => log.push("early"), 1e300);
			c.setInterval(() => log.push("early"), 1e300); let n = 0; c.setInterval(() => { if (++n === 3) { log.push("ok"); c.close(); } }, 1e-9); })`,
		"by a ticker": `sse.open(url, (c) => { let n = 0; c.setInterval(() => {
			if (++n === 3) { log.push("ok"); c.close(); } }, 5); })`,
	} {
		v.drainSamples()
		require.Equal(t, "ok", v.log(script), name)
		closed, n := v.sum(v.drainSamples(), "sse_connection_closed")
		if name != "by its function" {
			require.Equal(t, 1.0, closed, name)
			require.Equal(t, 1, n, name)
		}
	}
}

func TestOpenThrowsExceptionsAndArgumentErrors(t *testing.T) {
	t.Parallel()
	v := serveVU(t, func(p *peer) { p.send(streamHead + "data: 0\n\n"); p.hold() })
	for _, script := range []string{
		`sse.open(url, () => { throw new Error("mine"); })`,
		`sse.open(url, (c) => c.on("open", () => { throw new Error("mine"); }))`,
		`sse.open(url, (c) => c.on("event", () => { throw new Error("mine"); }))`,
		`sse.open(url, (c) => c.setTimeout(() => { throw new Error("mine"); }, 1))`,
		`sse.open("http://127.0.0.1:1", (c) => c.on("error", (e) => { throw new Error("mine"); }))`,
	} {
		require.Equal(t, "mine", v.log(`try { `+script+` } catch (e) { log.push(e.message); }`), script)
	}
	for script, want := range map[string]string{
		`sse.open(url)`:                                     "invalid number of arguments to sse.open",
		`sse.open(url, {}, 1)`:                              "last argument to sse.open must be a function",
		`sse.open(url, {}, () => {}, 1)`:                    "invalid number of arguments",
		`sse.open(url, {timeout: "invalid"}, () => {})`:     "invalid sse.open() timeout",
		`sse.open(url, {method: "G T"}, () => {})`:          "invalid sse.open() method",
		`sse.open(url, {headers: {a: "\n"}}, () => {})`:     "invalid sse.open() headers",
		`sse.open(url, {tags: {a: {}}}, () => {})`:          "invalid sse.open() metric tags",
		`sse.open(url, (c) => c.setTimeout(() => {}, 0))`:   "setTimeout: the delay must be above 0 ms",
		`sse.open(url, (c) => c.setInterval(() => {}, -1))`: "setInterval: the delay must be above 0 ms",
		`sse.open(url, (c) => c.setInterval(undefined, 1))`: "setInterval: the first argument must be a function",
	} {
		_, err := v.VU.Runtime().RunString(script)
		require.ErrorContains(t, err, want, script)
	}
}

func TestOpenIsInterruptedWithTheVU(t *testing.T) {
	t.Parallel()
	v := newVU(t)
	v.set("cancel", v.CancelContext)
	v.set("url", serve(t, func(p *peer) { p.send(streamHead); p.hold() }))
	require.Equal(t, "200 interrupted: k6 ended the iteration before the stream had ended", v.log(`
		const res = sse.open(url, (c) => { c.on("open", cancel); c.on("error", () => log.push("error")); });
		log.push(res.status, res.error);
	`))
	closed, _ := v.sum(v.drainSamples(), "sse_connection_closed", "reason", "interrupted")
	require.Equal(t, 1.0, closed)
}

func TestOpenSendsItsParameters(t *testing.T) {
	t.Parallel()
	srv := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, r.ContentLength)
		_, _ = r.Body.Read(body)
		cookie := "none"
		if c, err := r.Cookie("k"); err == nil {
			cookie = c.Value
		}
		stream(w, "data: "+strings.Join([]string{r.Method, string(body), r.Header.Get("Content-Type"), r.UserAgent(), cookie}, ",")+"\n\n")
	})
	v := newVU(t)
	v.state.CookieJar, _ = cookiejar.New(nil)
	v.VU.InitEnvField, v.VU.StateField = nil, v.state
	v.set("http", httpModule.New().NewModuleInstance(v.VU).Exports().Default)
	v.set("url", srv.URL)
	require.Equal(t, "GET,,,test-agent,none POST,{},application/json,test-agent,default PUT,x,,,custom", v.log(`
		const show = (c) => c.on("event", (e) => log.push(e.data));
		sse.open(url, show);
		http.cookieJar().set(url, "k", "default");
		sse.open(url, { method: "POST", body: " {} ", headers: { "content-type": "application/json" }, unknown: 1 }, show);
		const jar = new http.CookieJar();
		jar.set(url, "k", "custom");
		sse.open(url, { method: "PUT", body: "x", jar, headers: { "User-Agent": "" } }, show);
	`))
}

// Without a warning, a script for xk6-sse that checks only the status would pass without an event.
func TestOpenWarnsOnceAboutAnotherType(t *testing.T) {
	contentTypeWarning = sync.Once{}
	v := newVU(t)
	logger, entries := test.NewNullLogger()
	v.state.Logger = logger
	v.set("url", serveText(t, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\ndata: 0\n\n"))
	for range 2 {
		v.mustRun(`sse.open(url, {}, () => {})`)
	}
	require.Len(t, entries.AllEntries(), 1)
	require.Contains(t, entries.LastEntry().Message, "Set anyContentType")
}

// Scripts for xk6-sse rely on this behavior. Some of it requires a parameter of open.
func TestOpenIsCompatibleWithXK6SSE(t *testing.T) {
	t.Parallel()
	const plainHead = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
	for name, tt := range map[string]struct{ params, response, want string }{
		"comments are not events": {`{}`, streamHead + ": ping\n\ndata: 0\n\n", "open event:||0|"},
		"every block is an event": {`{ everyBlock: true }`, streamHead + ": ping\n\n:\n\nid: 4\nevent: x\n\n: c\ndata: 0\n\n\n: tail", "open event:|||ping event:||| event:4|x|| event:||0|c error:truncated true"},
		"other type, rejected":    {`{}`, plainHead + "data: 0\n\n", "error:content_type true"},
		"other type, accepted":    {`{ anyContentType: true }`, plainHead + "data: 0\n\n", "open event:||0|"},
		"no type, accepted":       {`{ anyContentType: true }`, "HTTP/1.1 200 OK\r\n\r\ndata: 0\n\n", "open event:||0|"},
		"error status":            {`{ anyContentType: true }`, "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", "error:status true"},
		"event too long":          {`{ maxEventSize: 100 }`, streamHead + "data: " + strings.Repeat("x", 200) + "\n\n", "open error:too_long true"},
		"empty method means GET":  {`{ method: "" }`, streamHead + "data: 0\n\n", "open event:||0|"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := serveVU(t, func(p *peer) { p.send(tt.response) })
			require.Equal(t, tt.want, v.log(`sse.open(url, `+tt.params+`, `+logging+`)`))
			events, _ := v.sum(v.drainSamples(), "sse_event", "method", "GET")
			require.EqualValues(t, strings.Count(tt.want, "event:"), events)
		})
	}
	v := newVU(t)
	_, err := v.VU.Runtime().RunString(`sse.open("http://127.0.0.1:1", { maxEventSize: 0 }, () => {})`)
	require.ErrorContains(t, err, "invalid sse.open() maxEventSize")
}

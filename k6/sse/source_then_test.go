package sse

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/sseclient"
)

const (
	subscribe = `url: "/api/realtime", headers: { "Content-Type": "application/json" }, ` +
		`body: '{"clientId":"{first.id}","subscriptions":["notes"]}'`
	subscribeByFunction = `url: (first) => "realtime?x=" + first.name, headers: { "X": (first) => first.data }, ` +
		`body: (first) => JSON.stringify({ clientId: first.id, subscriptions: ["notes"] })`
)

func TestSecondRequestFollowsTheFirstEventOfEachStream(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		then, uri string
	}{
		"template":  {subscribe, "/api/realtime"},
		"functions": {subscribeByFunction, "/api/realtime?x=PB_CONNECT"},
	} {
		t.Run(name, func(t *testing.T) {
			runTransports(t, mixedTransports, func(t *testing.T, w transport) {
				b, v := newPocketBase(), w.vu(t)
				v.set("url", b.serve(v))
				v.set("endStream", func() { b.end <- struct{}{} })
				require.Equal(t, "true server true", v.log(`
				const s = new EventSource(url, { ledger, then: { event: "PB_CONNECT", ok: [200, 204], `+tt.then+` } });
				let answered = 0, notes = 0;
				const step = () => {
					if (answered !== notes) return;
					log.push(s.status === 200);
					if (notes === 1) endStream(); else s.close();
				};
				s.addEventListener("then", (e) => { if (e.status === 204 && e.target === s) answered++; step(); });
				s.addEventListener("notes", () => { notes++; step(); });
				s.onerror = (e) => log.push(e.reason);
			`))
				want := func(n int) string {
					return fmt.Sprintf(`POST %s {"clientId":"c\"%d","subscriptions":["notes"]}`, tt.uri, n)
				}
				require.Equal(t, want(1)+"; "+want(2), b.String())
				attempt := `connecting opened event:\{\} (event:1 answered:204|answered:204 event:1)`
				require.Regexp(t, "^"+attempt+` closed:server\+retry `+attempt+" closed:client$", v.rec.String())
				_, samples := v.sum(v.drainSamples(), "sse_then")
				require.Equal(t, 2, samples)
			})
		})
	}
}

func TestFailedSecondRequestEndsTheStream(t *testing.T) {
	t.Parallel()
	status := func(code int, text string) func(http.ResponseWriter, *http.Request, int) bool {
		return func(w http.ResponseWriter, _ *http.Request, _ int) bool {
			w.WriteHeader(code)
			_, _ = io.WriteString(w, text)
			return true
		}
	}
	hang := func(_ http.ResponseWriter, r *http.Request, _ int) bool { <-r.Context().Done(); return true }
	for name, tt := range map[string]struct {
		server   *pocketBase
		then     string
		status   int
		message  string
		standard bool // reconnects without the option reconnect
		always   bool // reconnects with reconnect: true
	}{
		"404":                {&pocketBase{second: status(404, `{"detail":"no such client"}`)}, subscribe, 404, "the second request (then): unexpected status 404 Not Found: no such client", false, true},
		"401":                {&pocketBase{second: status(401, "")}, subscribe, 401, "401 Unauthorized", false, false},
		"500":                {&pocketBase{second: status(500, "")}, subscribe, 500, "500", false, true},
		"200 instead of 204": {&pocketBase{second: status(200, "")}, subscribe + ", ok: [204]", 200, "unexpected status 200", false, false},
		"a redirect to another scheme": {&pocketBase{second: func(w http.ResponseWriter, _ *http.Request, _ int) bool {
			w.Header().Set("Location", "ftp://x/")
			w.WriteHeader(303)
			return true
		}}, subscribe, 303, "follow the redirect", false, false},
		"no response in time": {&pocketBase{second: hang}, subscribe + ", timeout: 500", 0, "no complete response header", true, true},
		"no first event":      {&pocketBase{mute: 1000}, subscribe + ", timeout: 100", 0, "the event before it did not arrive in time: 100ms", true, true},
		"another event":       {newPocketBase(), subscribe + ", event: 'hello', timeout: 100", 0, "the event before it did not arrive in time", true, true},
		"refused":             {newPocketBase(), `url: "http://127.0.0.1:1/"`, 0, "connection refused", true, true},
		"no URL":              {newPocketBase(), `url: "{first.data}://"`, 0, "url: ", true, true},
		"a header of two lines": {newPocketBase(), `url: "/", headers: { A: () => "x\r\nEvil: 1" }`, 0,
			`invalid value of header "A"`, true, true},
	} {
		for mode, reconnects := range map[string]bool{"": tt.standard, "reconnect: true,": tt.always, "reconnect: false,": false} {
			t.Run(fmt.Sprint(name, " ", mode), func(t *testing.T) {
				t.Parallel()
				b, v := newPocketBase(), newVU(t)
				b.second, b.mute, b.retry = tt.server.second, tt.server.mute, 3_600_000
				v.set("url", b.serve(v))
				got := v.log(`
					const s = new EventSource(url, {` + mode + ` ledger, then: { ` + tt.then + ` } });
					s.addEventListener("then", () => log.push("then"));
					s.onerror = (e) => { log.push(e.reason, e.status, e.willReconnect); globalThis.message = e.message; s.close(); };
				`)
				require.Equal(t, fmt.Sprint("then ", tt.status, " ", reconnects), got)
				require.Contains(t, v.str("message"), tt.message)
				require.Equal(t, sseclient.ReasonThen, v.rec.last.Reason)
				require.Equal(t, tt.status, v.rec.last.Status)
				require.NotContains(t, v.rec.String(), "answered")
				n, _ := v.sum(v.drainSamples(), "sse_connection_closed", "reason", "then", "opened", "true")
				require.Equal(t, 1.0, n)
			})
		}
	}
}

func TestFailedSecondRequestDoesNotResetTheBackoff(t *testing.T) {
	t.Parallel()
	b, v := newPocketBase(), newVU(t)
	b.second = func(w http.ResponseWriter, _ *http.Request, n int) bool {
		if n == 1 {
			w.Header().Set("Retry-After", "1")
		}
		if n <= 4 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return n <= 4
	}
	v.set("url", b.serve(v))
	require.Equal(t, "true true true true then", v.log(`
		const s = new EventSource(url, { reconnect: true, then: { `+subscribe+` } });
		const least = [1000, 50, 100, 200], n = () => log.length;
		s.onerror = (e) => log.push(e.retryMs >= least[n()]);
		s.addEventListener("then", () => { log.push("then"); s.close(); });
	`))
}

// The service provides the URL, as in the HTTP+SSE transport of MCP. Values in a form are URL-encoded.
func TestSecondRequestUsesTheURLOfTheFirstEvent(t *testing.T) {
	t.Parallel()
	v := newVU(t)
	got := make(chan string, 1)
	srv := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "event: endpoint\ndata: /messages?session=a%2Fb&x=1\nid: 1&2\n\n")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		_ = r.ParseForm()
		got <- fmt.Sprint(r.Method, " ", r.RequestURI, " ", r.PostForm.Encode(), " ", r.Header)
		w.WriteHeader(http.StatusAccepted)
	})
	v.set("url", srv.URL+"/sse")
	require.Equal(t, "202", v.log(`
		const s = new EventSource(url, { headers: { Secret: "1" }, then: {
			method: "put", url: "{first.data}", headers: { "Content-Type": "application/x-www-form-urlencoded", N: " {first.name} " }, body: "id={first.id}" } });
		s.addEventListener("then", (e) => { log.push(e.status); s.close(); });
	`))
	require.Equal(t, "PUT /messages?session=a%2Fb&x=1 id=1%262 map[Accept:[*/*] Connection:[close] Content-Length:[8] "+
		"Content-Type:[application/x-www-form-urlencoded] N:[endpoint] User-Agent:[test-agent]]", <-got)
}

// During the second request the event loop continues and events arrive. The end of the stream, of the source or of the
// VU also ends the request.
func TestSecondRequestDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ script, want, closed string }{
		"the stream ends":      {`s.onerror = (e) => { log.push(e.reason); s.close(); }; endStream();`, "server", "closed:server+retry"},
		"the source is closed": {`s.close();`, "", "closed:client"},
		"the VU ends":          {`cancel();`, "", "closed:interrupted"},
		"a handler throws":     {`throw new Error("no more");`, "", "closed:interrupted"},
	} {
		for kind, then := range map[string]string{"template": subscribe, "functions": subscribeByFunction} {
			t.Run(fmt.Sprint(name, " ", kind), func(t *testing.T) {
				t.Parallel()
				b, v := newPocketBase(), newVU(t)
				requested := make(chan struct{})
				b.retry = 3_600_000
				b.second = func(_ http.ResponseWriter, r *http.Request, _ int) bool {
					close(requested)
					<-r.Context().Done()
					return true
				}
				v.set("cancel", v.CancelContext)
				v.set("endStream", func() { b.end <- struct{}{} })
				v.set("requested", func() bool {
					select {
					case <-requested:
						return true
					default:
						return false
					}
				})
				v.set("url", b.serve(v))
				v.mustRun("var log = []")
				_, err := v.run(`
					const s = new EventSource(url, { ledger, then: { ` + then + ` } });
					s.addEventListener("then", () => log.push("then"));
					const poll = setInterval(() => { if (requested()) { clearInterval(poll); ` + tt.script + ` } }, 5);
				`)
				require.Equal(t, strings.Contains(tt.script, "throw"), err != nil, err)
				require.Equal(t, tt.want, v.str(`log.join(" ")`))
				require.Equal(t, "connecting opened event:{} "+tt.closed, v.rec.String())
			})
		}
	}
}

// The stream may end before the event loop makes the second request.
func TestSecondRequestOfAnEndedStreamIsNotSent(t *testing.T) {
	t.Parallel()
	v := newVU(t)
	v.set("awaitEnd", func() {
		assert.Eventually(t, func() bool { return strings.Contains(v.rec.String(), "closed:server+retry") }, testTimeout, time.Millisecond)
	})
	v.set("url", serve(t, func(p *peer) {
		if p.req.Method == http.MethodPost {
			p.send("HTTP/1.1 204 No Content\r\n\r\n")
			return
		}
		p.send(streamHead + fmt.Sprintf("retry: 1\nid: %d\ndata: hello\n\n", p.n))
		if p.n > 0 {
			p.hold()
		}
	}))
	require.Equal(t, "server 1 then", v.log(`
		const s = new EventSource(url, { ledger, then: { url: "/", body: (first) => { log.push(first.id); return ""; } } });
		awaitEnd(); // of the first stream
		s.onerror = (e) => log.push(e.reason);
		s.addEventListener("then", () => { log.push("then"); s.close(); });
	`))
	require.Equal(t, "connecting opened event:hello closed:server+retry connecting opened event:hello answered:204 closed:client", v.rec.String())
}

func TestSourceWithASecondRequestCanBeClosedBeforeItsFirstEvent(t *testing.T) {
	t.Parallel()
	b, v := newPocketBase(), newVU(t)
	b.mute = 1
	v.set("url", b.serve(v))
	v.mustRun(`
		const s = new EventSource(url, { ledger, then: { ` + subscribe + `, timeout: 0 } });
		s.onopen = () => setTimeout(() => s.close(), 50);
	`)
	require.Equal(t, "connecting opened closed:client", v.rec.String())
	require.Empty(t, b.String())
}

// Streams and second requests may end at any time, in any order.
func TestEachStreamWithASecondRequestEndsOnce(t *testing.T) {
	t.Parallel()
	sleep := func() { time.Sleep(rand.N(20 * time.Millisecond)) }
	handle := func(p *peer) {
		if p.req.Method == http.MethodPost {
			sleep()
			p.send([]string{"", "HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 500 Oops\r\n\r\n"}[rand.N(3)])
			return
		}
		p.send(streamHead + "retry: 5\n\n")
		if sleep(); rand.N(4) > 0 {
			p.send("data: hello\n\n")
		}
		if sleep(); rand.N(2) == 0 {
			p.reset()
		}
	}
	const sources = 30
	v := newVU(t)
	recs := make([]*recorder, sources)
	v.set("newLedger", func(i int) any { recs[i] = &recorder{}; return testObserver{recs[i]} })
	v.set("url", serve(t, handle))
	v.mustRun(fmt.Sprintf(`
		const all = [];
		for (let i = 0; i < %d; i++) {
			const body = i %% 2 ? "{first.data}" : (first) => first.data;
			all.push(new EventSource(url, { ledger: newLedger(i), reconnect: true, then: { url: "/", body, timeout: 10 + i %% 3 * 10 } }));
		}
		setTimeout(() => all.forEach((s) => s.close()), 700);
	`, sources))
	all := ""
	for _, r := range recs {
		all += r.String() + "\n"
		require.Regexp(t, `^(connecting (opened (event:hello )?(answered:204 )?)?closed:\w+\+retry )*connecting (opened (event:hello )?(answered:204 )?)?closed:\w+$`+
			`|^(connecting (opened (event:hello )?(answered:204 )?)?closed:\w+\+retry ?)+$`, r.String())
	}
	require.Regexp(t, "closed:then", all)
	require.Regexp(t, "event:hello closed:(server|reset)", all)
}

func TestExceptionOfASecondRequestEndsTheIteration(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		`{ url: "/", body: () => { throw new Error("no body"); } }`: "no body",
		`{ url: () => 5 }`: "option then: url: the function must return a string, got 5",
		`{ url: "/", headers: { A: () => undefined } }`: "option then: A: the function must return a string, got undefined",
	} {
		b, v := newPocketBase(), newVU(t)
		v.set("url", b.serve(v))
		_, err := v.run(`new EventSource(url, { ledger, then: ` + script + ` })`)
		require.ErrorContains(t, err, want, script)
		require.Equal(t, sseclient.ReasonInterrupted, v.rec.last.Reason)
		require.Empty(t, b.String())
	}
}

// An event or a redirect of the stream may choose another origin for the second request. That origin must not get the
// credentials for the first origin.
func TestSecondRequestSendsNoCredentialsToAnotherOrigin(t *testing.T) {
	t.Parallel()
	const refused, toBody = `another origin; pass --follow-redirects, or set followRedirects in a script`, `another origin, which gets no request with a body`
	for name, tt := range map[string]struct{ path, then, want, got string }{
		"named by the event":                {"/names", `{ url: "{first.data}", headers: { "X-Api-Key": "secret" } }`, refused, ""},
		"named by the event, allowed":       {"/names", `{ url: "{first.data}", headers: { "X-Api-Key": "secret" } }, followRedirects: true`, "202", "POST /second"},
		"named by the event, with a body":   {"/names", `{ url: "{first.data}", body: "secret" }, followRedirects: true`, toBody, ""},
		"relative, redirected":              {"/redirects", `{ url: "/second", headers: { "X-Api-Key": "secret" } }, followRedirects: true`, "202", "POST /second"},
		"relative, redirected, with a body": {"/redirects", `{ url: "/second", body: "secret" }, followRedirects: true`, toBody, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stream := func(w http.ResponseWriter, r *http.Request, data string) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, "data: "+data+"\n\n")
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			}
			got := make(chan string, 1)
			other := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					stream(w, r, "x")
					return
				}
				got <- strings.TrimSpace(fmt.Sprint(r.Method, " ", r.RequestURI, " ", r.Header.Get("X-Api-Key")))
				w.WriteHeader(http.StatusAccepted)
			})
			srv := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/redirects" {
					http.Redirect(w, r, other.URL+"/stream", http.StatusFound)
					return
				}
				stream(w, r, other.URL+"/second")
			})
			v := newVU(t)
			v.set("url", srv.URL+tt.path)
			require.Contains(t, v.log(`
			const s = new EventSource(url, { reconnect: false, then: `+tt.then+` });
			s.addEventListener("then", (e) => { log.push(e.status); s.close(); });
			s.onerror = (e) => log.push(e.message);
			`), tt.want)
			select {
			case request := <-got:
				require.Equal(t, tt.got, request)
			default:
				require.Empty(t, tt.got)
			}
		})
	}
}

package sse

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.k6.io/k6/v2/lib/netext"
	"go.k6.io/k6/v2/lib/types"
)

// The tables have the cases of other test suites for the HTML standard, mainly eventsource/ of web-platform-tests. The
// tests of eventstream have the cases that concern only the format.

// Section 9.2.5: invalid UTF-8 becomes U+FFFD, as in a TextDecoder, for scripts and in requests.
func TestStandardDecoding(t *testing.T) {
	t.Parallel()
	const euro = "\xE2\x82" // without its last byte
	events := "retry: 1\nid: i" + euro + "\nevent: e" + euro + "\n: c" + euro + "\ndata: d" + euro + "\xFF\n\n"
	v := serveVU(t, func(p *peer) {
		p.send(streamHead + events)
		if id := p.req.Header.Get("Last-Event-ID"); id != "" {
			p.send(fmt.Sprintf("data: %s\n\n", id))
			p.hold()
		}
	})
	require.Equal(t, "d\uFFFD\uFFFD i\uFFFD c\uFFFD d\uFFFD\uFFFD i\uFFFD c\uFFFD i\uFFFD", v.log(`
		const s = new EventSource(url);
		s.addEventListener("e\uFFFD", (e) => log.push(e.data, e.lastEventId, e.comment));
		s.onmessage = (e) => { log.push(e.data); s.close(); };
	`))
	require.Equal(t, "i\uFFFD|e\uFFFD|d\uFFFD\uFFFD|c\uFFFD", v.log(`
		sse.open(url, (c) => c.on("event", (e) => { log.push([e.id, e.name, e.data, e.comment].join("|")); }));`))
}

// Section 9.2.2 and the Fetch standard, scheme fetch: a URL with another scheme is valid, but its fetch is a network
// error.
func TestStandardSchemes(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"ws://h/", "ftp://h/", "data:text/event-stream,data", "mailto:a@b"} {
		v := newVU(t)
		v.set("url", url)
		require.Equal(t, "0 2 error false null", v.log(`
			const s = new EventSource(url, { reconnect: true });
			log.push(s.readyState);
			s.onerror = (e) => log.push(s.readyState, e.reason, e.willReconnect, e.retryMs === null ? "null" : e.retryMs);`), url)
	}
}

// Section 9.2.2: attributes, constants, and the properties that Web IDL defines for each interface.
func TestStandardInterface(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		`Object.prototype.toString.call(s)`:                                                "[object EventSource]",
		`String(s)`:                                                                        "[object EventSource]",
		`EventSource.name + EventSource.length`:                                            "EventSource1",
		`s.constructor === EventSource && s instanceof EventSource`:                        "true",
		`Object.getPrototypeOf(s) === EventSource.prototype`:                               "true",
		`[EventSource.OPEN, s.CLOSED, EventSource.prototype.CLOSED]`:                       "1,2,2",
		`s.withCredentials`:                                                                "false",
		`open("", { withCredentials: true }).withCredentials`:                              "true",
		`open("", { withCredentials: 0 }).withCredentials`:                                 "false", // Web IDL, section 3.2.3: any value is a boolean
		`[s.onopen, s.onmessage, s.onerror].every((h) => h === null)`:                      "true",
		`String((s.onopen = 5, s.onopen))`:                                                 "null",
		`(EventSource.prototype.twice = function () { return 2 * this.OPEN; }, s.twice())`: "2",
		`Object.getOwnPropertyDescriptor(EventSource.prototype, "url").set === undefined`:  "true",
		`["readyState" in EventSource.prototype, Object.keys(s).length]`:                   "true,0",
		`(class extends EventSource { get url() { return "mine " + super.url.slice(0, 4); } }, new (class extends EventSource { get url() { return "mine " + super.url.slice(0, 4); } })(url)).url`: "mine http",
		`(() => { "use strict"; try { s.url = ""; } catch (e) { return e.name; } })()`:                                                                                                              "TypeError",
		`(class extends EventSource { x() { return 7; } }, new (class extends EventSource { x() { return 7; } })(url)).x()`:                                                                         "7",
	} {
		v := serveVU(t, respond("HTTP/1.1 204 No Content\r\n\r\n"))
		require.Equal(t, want, v.log(`
			const open = (path, options) => new EventSource(url + path, options), s = open("");
			log.push(`+script+`);`), script)
	}
}

// DOM standard, sections 2.2 and 2.9, and section 8.1.8.1 of the HTML standard: attributes of an event, and the order
// of listeners.
func TestStandardEvents(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ script, want string }{
		"attributes of an event": {`
			const describe = (e) => log.push(Object.prototype.toString.call(e), e.isTrusted, e.bubbles, e.cancelable || e.defaultPrevented !== false, e.target === s, e.currentTarget === s);
			s.onopen = s.onmessage = s.onerror = describe;`,
			"[object Event] true false false true true [object MessageEvent] true false false true true [object Event] true false false true true"},
		"enumerable attributes":                {`s.onmessage = (e) => log.push(Object.keys(e));`, "type,target,timeStamp,data,lastEventId,origin,comment,receivedAt"},
		"a listener may freeze the event":      {`s.onmessage = (e) => { Object.freeze(e); log.push("frozen"); };`, "frozen"},
		"no current target after the dispatch": {`let event; s.onopen = (e) => { event = e; }; s.onmessage = () => log.push(event.currentTarget, event.target === s);`, " true"},
		"the order of listeners": {`
			s.addEventListener("message", () => log.push("a")); s.onmessage = () => log.push("handler"); s.addEventListener("message", () => log.push("b"));`,
			"a handler b"},
		"a new handler takes the position of the old one": {`
			s.onmessage = () => log.push("no"); s.addEventListener("message", () => log.push("a")); s.onmessage = () => log.push("handler");`, "handler a"},
		"a handler after null is the last": {`
			s.onmessage = () => log.push("no"); s.addEventListener("message", () => log.push("a")); s.onmessage = null; s.onmessage = () => log.push("handler");`, "a handler"},
		"a listener removes another": {`
			const b = () => log.push("b"); s.addEventListener("message", () => { log.push("a"); s.removeEventListener("message", b); }); s.addEventListener("message", b);`, "a"},
		"a listener replaces the handler": {`
			s.addEventListener("message", () => { s.onmessage = () => log.push("new"); }); s.onmessage = () => log.push("old");`, "new"},
		"a listener that is added during the dispatch": {`s.onmessage = () => { log.push("a"); s.addEventListener("message", () => log.push("b")); };`, "a"},
		"the same listener twice": {`
			const a = () => log.push("a"); s.onmessage = a; s.addEventListener("message", a); s.addEventListener("message", a);`, "a a"},
		"this is the target":         {`s.onmessage = function (e) { log.push(this === e.currentTarget); };`, "true"},
		"an object with handleEvent": {`const o = { handleEvent() { log.push(this === o); } }; s.addEventListener("message", o);`, "true"},
		"an event of the script": {`
			s.addEventListener("ping", function (e) { log.push(e.type, e.target === s, this === s); });
			log.push(s.dispatchEvent({ type: "ping" }), s.dispatchEvent({ type: "unknown" }));`, "ping true true true true"},
		"null or undefined instead of a listener": {`
			s.addEventListener("message", null); s.addEventListener("message", undefined); s.removeEventListener("message", undefined);
			s.onmessage = () => log.push("a");`, "a"},
		"a handler that is set in onopen": {`s.onopen = () => { s.onmessage = (e) => log.push(e.data); };`, "0"},
		"a listener for one event": {`
			s.addEventListener("ping", () => log.push("a"), { once: true });
			for (let i = 0; i < 2; i++) s.dispatchEvent({ type: "ping" });`, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := serveVU(t, respond(streamHead+"data: 0\n\n"))
			require.Equal(t, tt.want, v.log(`const s = new EventSource(url, { reconnect: false }); `+tt.script))
		})
	}
}

// URL standard, section 3.3, domain to ASCII: punycode is used to dial, in the option hosts, in requests and for
// scripts.
func TestStandardDomains(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"b\u00FCcher.test":       "xn--bcher-kva.test",
		"B\u00DCCHER.test":       "xn--bcher-kva.test",
		"b%C3%BCcher.test":       "xn--bcher-kva.test",
		"fa\u00DF.test":          "xn--fa-hia.test", // nontransitional processing keeps ß
		"\u4F8B\u3048\u3002test": "xn--r8jz45g.test",
		"a-b.b\u00FC.test":       "a-b.xn--b-eha.test",
		"plain.test":             "plain.test",
	} {
		v := newVU(t)
		address := strings.TrimPrefix(serve(t, func(p *peer) { p.send(streamHead + "data: " + p.req.Host + "\n\n"); p.hold() }), "http://")
		addr, port, err := net.SplitHostPort(address)
		require.NoError(t, err)
		hosts, err := types.NewHosts(map[string]types.Host{want: {IP: net.ParseIP(addr)}})
		require.NoError(t, err)
		v.state.Dialer.(*netext.Dialer).Hosts = hosts
		v.set("url", "http://"+host+":"+port+"/")
		require.Equal(t, fmt.Sprintf("%s:%s http://%[1]s:%[2]s", want, port), v.log(`
			const s = new EventSource(url);
			s.onmessage = (e) => { log.push(e.data, e.origin); s.close(); };
		`), host)
	}
}

// Fetch standard, section 4.4, HTTP-redirect fetch: a POST that becomes a GET has no body and no body headers.
func TestStandardRedirects(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]string{
		301: "GET,,,kept", 302: "GET,,,kept", 303: "GET,,,kept",
		307: "POST,{},application/json,kept", 308: "POST,{},application/json,kept",
	} {
		srv := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/" {
				w.Header().Set("Location", "/to")
				w.WriteHeader(status)
				return
			}
			body, _ := io.ReadAll(r.Body)
			headers := r.Header.Get("Content-Language") + r.Header.Get("Content-Encoding") + r.Header.Get("Content-Location")
			stream(w, "data: "+strings.Join([]string{r.Method, string(body), r.Header.Get("Content-Type"), r.Header.Get("X-Own") + headers}, ",")+"\n\n")
		})
		v := newVU(t)
		v.set("url", srv.URL)
		v.set("hasHeaders", status < 304)
		require.Equal(t, want, v.log(`
			const headers = { "content-type": "application/json", "X-Own": "kept" };
			if (hasHeaders) Object.assign(headers, { "Content-Language": "de", "Content-Encoding": "x", "Content-Location": "/" });
			const s = new EventSource(url, { method: "POST", body: "{}", headers });
			s.onmessage = (e) => { log.push(e.data); s.close(); };
		`), status)
	}
}

// Section 9.2.3, announce the connection or fail it: which responses are event streams, and after which responses a
// browser reconnects.
func TestStandardResponses(t *testing.T) {
	t.Parallel()
	type response struct{ head, want string }
	cases := []response{
		{"200 OK\r\nContent-Type: text/event-stream", "open true"},
		{"200 OK\r\nContent-Type: TEXT/Event-Stream", "open true"},
		{"200 OK\r\nContent-Type: text/event-stream;", "open true"},
		{"200 OK\r\nContent-Type: text/event-stream ; charset=utf-8", "open true"},
		{"200 OK\r\nContent-Type: text/event-stream;charset=windows-1252", "open true"}, // decoded as UTF-8 anyway
		{"200 OK\r\nContent-Type: text/event-stream;x bogus", "open true"},              // MIME Sniffing standard, section 4.4: only the parameter is ignored
		{"200 OK\r\nContent-Type: text/event-stream; a=1; a=2", "open true"},
		{"200 OK\r\nContent-Type: text/event-stream; a=\"", "open true"},
		{"200 OK\r\nContent-Type: x bogus", "content_type false"},
		{"200 OK\r\nContent-Type: text/event-streams", "content_type false"},
		{"200 OK\r\nContent-Type: text/event-stream, text/html", "content_type false"},
		{"200 OK\r\nContent-Type: text/plain", "content_type false"},
		{"200 OK", "content_type false"},
		{"301 Moved Permanently\r\nContent-Length: 0", "status false"}, // without a Location
		{"204 No Content", "no_content false"},
	}
	for _, status := range []string{"201", "202", "205", "210", "299", "300", "400", "401", "403", "404", "410", "500", "502", "503"} {
		cases = append(cases, response{status + " Other\r\nContent-Type: text/event-stream\r\nContent-Length: 0", "status false"})
	}
	for _, tt := range cases {
		t.Run(tt.head, func(t *testing.T) {
			t.Parallel()
			v := serveVU(t, respond("HTTP/1.1 "+tt.head+"\r\n\r\n"))
			require.Equal(t, tt.want, v.log(`
				const s = new EventSource(url, { reconnectDelay: "1h" });
				s.onopen = () => log.push("open");
				s.onerror = (e) => {
					if (log.length === 0) log.push(e.reason);
					log.push(s.readyState === EventSource.CONNECTING && e.willReconnect);
					s.close();
				};
			`))
		})
	}
}

// Section 9.2.2, close(), and 9.2.6: after close() nothing is dispatched, not even events that have been read.
func TestStandardClose(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		`s.close(); log.push(s.readyState); s.onopen = s.onmessage = s.onerror = (e) => log.push(e.type);`:                                            "2",
		`s.onopen = () => { s.close(); log.push(s.readyState); }; s.onmessage = s.onerror = (e) => log.push(e.type);`:                                 "2",
		`s.onmessage = (e) => { log.push(e.data); s.close(); s.close(); }; s.onerror = (e) => log.push(e.type);`:                                      "0",
		`s.onerror = () => { log.push(s.readyState); s.close(); log.push(s.readyState); }`:                                                            "0 2",
		`s.onmessage = (e) => { if (e.data === "1") { s.close(); log.push(s.readyState, s.url === url, s.onmessage !== null); } }`:                    "2 true true",
		`s.onopen = () => log.push(s.readyState); s.onmessage = (e) => { if (e.data === "1") log.push(s.readyState); }; s.onerror = () => s.close();`: "1 1",
	} {
		v := serveVU(t, respond(streamHead+"data: 0\n\ndata: 1\n\n"))
		require.Equal(t, want, v.log(`const s = new EventSource(url); `+script), script)
	}
}

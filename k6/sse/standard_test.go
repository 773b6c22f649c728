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

// The cases of the HTML standard that other suites of event streams have, web-platform-tests' eventsource/ before all, in
// tables of our own. What concerns the format alone is in eventstream.

// Section 9.2.5: what is no UTF-8 becomes U+FFFD as a TextDecoder makes it, in all that a script or the server is told.
func TestStandardDecodes(t *testing.T) {
	t.Parallel()
	const euro = "\xE2\x82" // lacks its end
	events := "retry: 1\nid: i" + euro + "\nevent: e" + euro + "\n: c" + euro + "\ndata: d" + euro + "\xFF\n\n"
	v := newVU(t)
	v.set("url", serve(t, func(p *peer) {
		p.say(streamHead + events)
		if id := p.req.Header.Get("Last-Event-ID"); id != "" {
			p.say(fmt.Sprintf("data: %s\n\n", id))
			p.hold()
		}
	}))
	require.Equal(t, "d\uFFFD\uFFFD i\uFFFD c\uFFFD d\uFFFD\uFFFD i\uFFFD c\uFFFD i\uFFFD", v.log(`
		const s = new EventSource(url);
		s.addEventListener("e\uFFFD", (e) => log.push(e.data, e.lastEventId, e.comment));
		s.onmessage = (e) => { log.push(e.data); s.close(); };
	`))
	require.Equal(t, "i\uFFFD|e\uFFFD|d\uFFFD\uFFFD|c\uFFFD", v.log(`
		sse.open(url, (c) => c.on("event", (e) => { log.push([e.id, e.name, e.data, e.comment].join("|")); }));`))
}

// URL standard, section 3.3, domain to ASCII: a name is dialed, looked up in the option hosts, sent and told in punycode.
func TestStandardDomains(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{
		"b\u00FCcher.test":       "xn--bcher-kva.test",
		"B\u00DCCHER.test":       "xn--bcher-kva.test",
		"b%C3%BCcher.test":       "xn--bcher-kva.test",
		"fa\u00DF.test":          "xn--fa-hia.test", // not transitional: no ss
		"\u4F8B\u3048\u3002test": "xn--r8jz45g.test",
		"a-b.b\u00FC.test":       "a-b.xn--b-eha.test",
		"plain.test":             "plain.test",
	} {
		v := newVU(t)
		address := strings.TrimPrefix(serve(t, func(p *peer) { p.say(streamHead + "data: " + p.req.Host + "\n\n"); p.hold() }), "http://")
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

// Fetch standard, section 4.4, HTTP-redirect fetch: a POST that becomes a GET has no body, and nothing that says what it was.
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
			said := r.Header.Get("Content-Language") + r.Header.Get("Content-Encoding") + r.Header.Get("Content-Location")
			stream(w, "data: "+strings.Join([]string{r.Method, string(body), r.Header.Get("Content-Type"), r.Header.Get("X-Own") + said}, ",")+"\n\n")
		})
		v := newVU(t)
		v.set("url", srv.URL)
		v.set("more", status < 304)
		require.Equal(t, want, v.log(`
			const headers = { "content-type": "application/json", "X-Own": "kept" };
			if (more) Object.assign(headers, { "Content-Language": "de", "Content-Encoding": "x", "Content-Location": "/" });
			const s = new EventSource(url, { method: "POST", body: "{}", headers });
			s.onmessage = (e) => { log.push(e.data); s.close(); };
		`), status)
	}
}

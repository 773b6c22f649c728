package sse

import (
	"bytes"
	"crypto/tls"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http/httpproxy"
	"gopkg.in/guregu/null.v3"

	"github.com/sse-soak/sse-soak/test/forward"
	"github.com/sse-soak/sse-soak/test/sockets"
)

// useProxy sends a VU's streams through a proxy, except streams to *.direct.test.
func (v *vu) useProxy(proxyURL string) {
	v.m.proxies = (&httpproxy.Config{HTTPProxy: proxyURL, HTTPSProxy: proxyURL, NoProxy: ".direct.test"}).ProxyFunc()
}

// startProxy starts a proxy that resolves every name to the address of a URL.
func startProxy(t testing.TB, o forward.Options, target string) *forward.Proxy {
	t.Helper()
	u, err := url.Parse(target)
	require.NoError(t, err)
	o.Resolve = func(string) string { return u.Host }
	p, err := forward.Start(o)
	require.NoError(t, err)
	t.Cleanup(p.Stop)
	return p
}

var proxyUser = url.UserPassword("us er", "pass/word")

func TestStreamsGoThroughAProxy(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, scheme string
		proxy        forward.Options
		requests     []string
	}{
		{"http through http", "http", forward.Options{}, []string{"GET http://service.test/events", "POST http://service.test/then"}},
		{"http through https", "http", forward.Options{TLS: sockets.ServerTLS()}, []string{"GET http://service.test/events", "POST http://service.test/then"}},
		{"https through http", "https", forward.Options{}, []string{"CONNECT service.test:443", "CONNECT service.test:443"}},
		{"https through https", "https", forward.Options{TLS: sockets.ServerTLS()}, []string{"CONNECT service.test:443", "CONNECT service.test:443"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			received, proceed := make(chan *http.Request, 3), make(chan struct{})
			server := serve(t, func(p *peer) {
				received <- p.req
				if p.req.Method == http.MethodPost {
					p.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
					return
				}
				p.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: 0\n\n\r\n")
				<-proceed // so that the next chunk has its own packet
				p.send("9\r\ndata: 1\n\n\r\n0\r\n\r\n")
			})
			tt.proxy.User = proxyUser
			proxy := startProxy(t, tt.proxy, server)
			v := newVU(t)
			v.useProxy(proxy.URL)
			v.state.TLSConfig = &tls.Config{InsecureSkipVerify: true}
			v.set("url", tt.scheme+"://service.test/events?id=1")
			v.set("then", func() { close(proceed) })
			// Message 1 follows the response to "then", which may arrive before message 0.
			require.Equal(t, "0 1 server", v.log(`
				const s = new EventSource(url, { reconnect: false, then: { url: "/then" } });
				s.onmessage = (e) => log.push(e.data);
				s.addEventListener("then", () => then());
				s.onerror = (e) => log.push(e.reason, ...(e.reason === "server" ? [] : [e.message]));
			`))
			require.Equal(t, tt.requests, proxy.Requests())
			for range 2 {
				r := <-received
				assert.True(t, strings.HasPrefix(r.RequestURI, "/"), r.RequestURI)
				assert.Equal(t, "service.test", r.Host)
				assert.Empty(t, r.Header.Get("Proxy-Authorization"), "the server must not get the credentials of the proxy")
			}
			n, _ := v.sum(v.drainSamples(), "sse_event", "ip", "127.0.0.1")
			require.Equal(t, 2.0, n)
		})
	}
}

// An error names the address and the response of the proxy, without the password.
func TestErrorNamesTheProxy(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, scheme string
		proxy        func(p *peer)
		want         string
	}{
		{"407 to CONNECT", "https", respond("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 11\r\n\r\nwho is it?\n"),
			"proxy: the proxy http://PROXY refused CONNECT service.test:443 with 407 Proxy Authentication Required: who is it?; set user and password in HTTPS_PROXY, as http://user:password@host:port"},
		{"407 without a text to CONNECT", "https", respond("HTTP/1.1 407\r\nContent-Length: 0\r\n\r\n"),
			"proxy: the proxy http://PROXY refused CONNECT service.test:443 with 407; set user and password in HTTPS_PROXY"},
		{"a status without a text to CONNECT", "https", respond("HTTP/1.1 520 \r\nContent-Length: 4\r\n\r\ndown"),
			"proxy: the proxy http://PROXY refused CONNECT service.test:443 with 520: down"},
		{"403 to CONNECT", "https", respond("HTTP/1.1 403 Filtered\r\nContent-Type: text/html\r\n\r\n<!DOCTYPE html><html><head><title>Not for\nyou</title></head>"),
			"proxy: the proxy http://PROXY refused CONNECT service.test:443 with 403 Filtered: Not for you"},
		{"502 to CONNECT", "https", respond("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 100\r\n\r\nno route\n"), // the rest of the body never arrives
			"proxy: the proxy http://PROXY refused CONNECT service.test:443 with 502 Bad Gateway: no route"},
		{"no HTTP", "https", respond("SSH-2.0-dropbear\r\n"),
			`proxy: the proxy http://PROXY sent an invalid response to CONNECT service.test:443: malformed HTTP response "SSH-2.0-dropbear"`},
		{"nothing", "https", func(*peer) {},
			"proxy: the proxy http://PROXY closed the connection instead of answering CONNECT service.test:443: unexpected EOF"},
		{"silence", "https", (*peer).hold,
			"connect_timeout: no complete response header within the connect timeout: the proxy http://PROXY did not answer CONNECT service.test:443: read tcp"},
		{"a server that ends the handshake", "https", respond("HTTP/1.1 200 OK\r\n\r\n\x15\x03\x03\x00\x02\x02\x28"), // an alert together with the response
			"tls: TLS handshake (through the proxy http://PROXY): remote error: tls: handshake failure"},
		{"407", "http", respond("HTTP/1.1 407 No\r\nContent-Length: 11\r\n\r\nwho is it?\n"),
			"proxy: the proxy http://PROXY refused the request with 407 Proxy Authentication Required: who is it?; set user and password in HTTP_PROXY"},
		{"403 of Squid", "http", respond("HTTP/1.1 403 Forbidden\r\nX-Squid-Error: ERR_ACCESS_DENIED 0\r\nContent-Length: 6\r\n\r\n<html>"),
			"status: unexpected status 403 Forbidden: ERR_ACCESS_DENIED 0 (through the proxy http://PROXY)"},
		{"503 to CONNECT", "https", respond("HTTP/1.1 503 Service Unavailable\r\nProxy-Status: cache; error=connection_refused\r\nContent-Length: 6\r\n\r\n<html>"),
			"proxy: the proxy http://PROXY refused CONNECT service.test:443 with 503 Service Unavailable: cache; error=connection_refused"},
		{"502", "http", respond("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 9\r\n\r\nno route\n"), // may come from the service
			"status: unexpected status 502 Bad Gateway: no route (through the proxy http://PROXY)"},
		{"an end without a response", "http", func(*peer) {},
			"truncated: read the response header (through the proxy http://PROXY): EOF"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v := newVU(t)
			address := strings.TrimPrefix(serve(t, tt.proxy), "http://")
			v.useProxy("http://joe:open%20sesame@" + address)
			v.set("url", tt.scheme+"://service.test/")
			v.set("connectTimeout", map[bool]int{true: 1000, false: 0}[tt.name == "silence"])
			got := v.log(`new EventSource(url, { reconnect: false, connectTimeout }).onerror = (e) => log.push(e.reason + ": " + e.message)`)
			require.Contains(t, got, strings.ReplaceAll(tt.want, "//PROXY", "//"+address))
			require.NotRegexp(t, `joe|sesame|am9l`, got)
			reason, _, _ := strings.Cut(tt.want, ":")
			_, n := v.sum(v.drainSamples(), "sse_connection_closed", "reason", reason, "opened", "false")
			require.Equal(t, 1, n)
		})
	}
}

func TestErrorNamesTheUnreachableProxy(t *testing.T) {
	t.Parallel()
	const address = "127.0.0.1:1" // another test may reuse a closed port
	plain := strings.TrimPrefix(httpServer(t, nil).URL, "http://")
	for proxyURL, want := range map[string]string{
		"http://joe:sesame@" + address: "proxy: the proxy http://" + address + " cannot be reached: dial tcp " + address + ": connect: connection refused",
		"joe:sesame@" + address:        "proxy: the proxy http://" + address + " cannot be reached: dial tcp " + address + ": connect: connection refused",
		"https://joe:sesame@" + plain:  "proxy: the proxy https://" + plain + " failed the TLS handshake: ",
		"ftp://joe:sesame@" + address:  "proxy: the proxy ftp://" + address + " has no host or an unknown scheme; set HTTP_PROXY to http://HOST:PORT",
	} {
		v := newVU(t)
		v.useProxy(proxyURL)
		got := v.log(`new EventSource("http://service.test/", { reconnect: false }).onerror = (e) => log.push(e.reason + ": " + e.message)`)
		require.Contains(t, got, want)
		require.NotRegexp(t, `joe|sesame`, got)
	}
}

// The dialed address is the proxy's or, if NO_PROXY matches the server, the server's.
func TestOptionsOfK6ApplyToTheDialedAddress(t *testing.T) {
	t.Parallel()
	server := serveText(t, streamHead+"data: 0\n\n")
	proxy := startProxy(t, forward.Options{}, server)
	v := newVU(t)
	v.useProxy(proxy.URL)
	v.set("port", server[strings.LastIndex(server, ":"):])
	const script = `
		for (const host of ["service.test", "127.0.0.1", "x.direct.test"]) {
			const s = new EventSource("http://" + host + port, { reconnect: false });
			s.onmessage = () => log.push(host);
			s.onerror = (e) => e.reason === "server" || log.push(e.reason);
		}`
	got := strings.Fields(v.log(script))
	require.ElementsMatch(t, []string{"service.test", "127.0.0.1", "dns"}, got)
	require.Equal(t, []string{"GET http://service.test" + server[strings.LastIndex(server, ":"):] + "/"}, proxy.Requests())

	v.block("127.0.0.0/8")
	require.ElementsMatch(t, []string{"proxy", "refused", "dns"}, strings.Fields(v.log(strings.Replace(script, "const s", "var s", 1))))
}

func TestHTTPDebugLogsNoCredentialsOfAProxy(t *testing.T) {
	t.Parallel()
	proxy := startProxy(t, forward.Options{User: proxyUser}, serveText(t, streamHead+"data: 0\n\n"))
	v := newVU(t)
	v.useProxy(proxy.URL)
	var output bytes.Buffer
	v.state.Logger.(*logrus.Logger).SetOutput(&output)
	v.state.Options.HTTPDebug = null.StringFrom("full")
	require.Equal(t, "server", v.log(`new EventSource("http://service.test/x", { reconnect: false }).onerror = (e) => log.push(e.reason)`))
	require.Len(t, proxy.Requests(), 1)
	require.Contains(t, output.String(), "GET /x HTTP/1.1")
	require.NotContains(t, output.String(), "Authorization")
}

func TestRedirectChoosesTheProxyAgain(t *testing.T) {
	t.Parallel()
	end := serveText(t, streamHead+"data: 0\n\n")
	proxy := startProxy(t, forward.Options{}, serveText(t, "HTTP/1.1 307 There\r\nLocation: "+end+"\r\nContent-Length: 0\r\n\r\n"))
	v := newVU(t)
	v.useProxy(proxy.URL)
	require.Equal(t, "0", v.log(`new EventSource("http://service.test/", { reconnect: false, followRedirects: true }).onmessage = (e) => log.push(e.data)`))
	require.Len(t, proxy.Requests(), 1)
}

func TestEachStreamReportsTheEndOfItsProxy(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"http", "https"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			server := serve(t, func(p *peer) {
				p.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: 0\n\n\r\n")
				p.hold()
			})
			proxy := startProxy(t, forward.Options{}, server)
			v := newVU(t)
			v.useProxy(proxy.URL)
			v.state.TLSConfig = &tls.Config{InsecureSkipVerify: true}
			v.set("url", scheme+"://service.test/")
			v.set("kill", proxy.Stop)
			require.Regexp(t, `^((truncated|reset) ?){5}$`, v.log(`
				let open = 0;
				for (let i = 0; i < 5; i++) {
					const s = new EventSource(url, { reconnect: false });
					s.onmessage = () => ++open === 5 && kill();
					s.onerror = (e) => log.push(e.reason);
				}`))
		})
	}
}

// The poller reads a tunnel through an http: proxy. A goroutine reads a tunnel through an https: proxy. Each stream
// reports the end of the proxy.
func TestStreamsOfHTTP2ShareATunnel(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]forward.Options{"http": {User: proxyUser}, "https": {User: proxyUser, TLS: sockets.ServerTLS()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := transports[1].vu(t)
			v.serveH2(func(rw http.ResponseWriter, r *http.Request) {
				rw.Header().Set("Content-Type", "text/event-stream")
				_, _ = rw.Write([]byte("data: " + r.Proto + r.Header.Get("Proxy-Authorization") + "\n\n"))
				rw.(http.Flusher).Flush()
				<-r.Context().Done()
			})
			proxy := startProxy(t, o, v.str("url"))
			v.useProxy(proxy.URL)
			v.set("kill", proxy.Stop)
			require.Equal(t, "30 HTTP/2.0", v.log(`
				const outcomes = new Set();
				let open = 0, ended = 0;
				for (let i = 0; i < 30; i++) {
					const s = new EventSource("https://service.test/" + i, { reconnect: false });
					s.onmessage = (e) => { outcomes.add(e.data); if (++open === 30) kill(); };
					s.onerror = (e) => { if (e.reason !== "truncated" && e.reason !== "reset") outcomes.add(e.message); if (++ended === 30) log.push(open, ...outcomes); };
				}`))
			require.Equal(t, []string{"CONNECT service.test:443"}, proxy.Requests())
		})
	}

	// HTTP/2 by prior knowledge is impossible through a proxy that forwards plain requests.
	v := newVU(t)
	proxy := startProxy(t, forward.Options{}, serveText(t, ""))
	v.useProxy(proxy.URL)
	require.Regexp(t, `^proxy HTTP/2 without TLS is not possible through an HTTP proxy; add.*\(through the proxy `+proxy.URL+`\)$`, v.log(`
		new EventSource("http://service.test/", { http: "2", reconnect: false }).onerror = (e) => log.push(e.reason, e.message)`))
}

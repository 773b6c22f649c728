package sse

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	"gopkg.in/guregu/null.v3"

	"github.com/sse-soak/sse-soak/internal/sseclient"
)

// serveH2 starts a server of net/http that supports only HTTP/2: over TLS by ALPN, otherwise by prior knowledge. conns
// counts the connections to the server.
func (v *vu) serveH2(handle http.HandlerFunc, settings ...func(*http.HTTP2Config)) (conns *atomic.Int32) {
	v.t.Helper()
	conns = new(atomic.Int32)
	s := httpServer(v.t, handle, func(s *httptest.Server) {
		s.Config.Protocols, s.Config.HTTP2 = new(http.Protocols), new(http.HTTP2Config)
		for _, set := range settings {
			set(s.Config.HTTP2)
		}
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				conns.Add(1)
			}
		}
		s.EnableHTTP2 = v.transport.tls
		s.Config.Protocols.SetHTTP2(v.transport.tls)
		s.Config.Protocols.SetUnencryptedHTTP2(!v.transport.tls)
	})
	v.set("url", s.URL)
	v.set("http", map[bool]string{true: "auto", false: "2"}[v.transport.tls]) // negotiated over TLS
	return conns
}

// A connectionCounter is an observer that counts the streams that are the first on their connection.
type connectionCounter struct{ atomic.Int32 }

func (s *connectionCounter) Opened(_ time.Time, r *sseclient.Response) {
	if r.FirstOnConnection {
		s.Add(1)
	}
}

// A ramp opens only as many HTTP/2 connections as it needs.
func TestRampSharesConnections(t *testing.T) {
	for _, tt := range []struct{ serverLimit, clientLimit, conns int }{{250, 0, 1}, {10, 0, 2}, {250, 5, 4}, {10, 15, 2}, {250, 1, 20}} {
		t.Run(fmt.Sprint(tt), func(t *testing.T) {
			runTransports(t, mixedTransports, func(t *testing.T, w transport) {
				v, first := w.vu(t), new(connectionCounter)
				release := make(chan struct{})
				conns := v.serveH2(func(rw http.ResponseWriter, r *http.Request) {
					sendEvents(rw, fmt.Sprintf("data: %s %s\n\n", r.Proto, r.URL.Query().Get("id")))
					<-release
				}, func(c *http.HTTP2Config) { c.MaxConcurrentStreams = tt.serverLimit })
				v.set("ledger", first)
				v.set("limit", tt.clientLimit)
				v.set("release", func() { close(release) })
				require.Empty(t, v.log(`
					const messages = new Set();
					for (let i = 0; i < 20; i++) {
						const s = new EventSource(url + "/?id=" + i, { http, streamsPerConnection: limit, ledger, reconnect: false, connectTimeout: "1m" });
						s.onmessage = (e) => {
							messages.add(e.data);
							if (messages.size === 20) release();
						};
						s.onerror = (e) => { if (e.reason !== "server") log.push(e.reason, e.message); };
					}
				`))
				require.EqualValues(t, tt.conns, conns.Load())
				require.EqualValues(t, tt.conns, first.Load())
				opened, _ := v.sum(v.drainSamples(), "sse_connection_opened", "proto", "HTTP/2.0", "status", "200")
				require.Equal(t, 20.0, opened)
			})
		})
	}
}

// A response header that is too long ends the connection. The errors of the other streams name the stream with that
// header.
func TestHeaderOverTheLimitEndsTheConnectionOverH2(t *testing.T) {
	runTransports(t, mixedTransports, func(t *testing.T, w transport) {
		v := w.vu(t)
		v.serveH2(func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", "text/event-stream")
			if r.URL.Path == "/long" {
				rw.Header().Set("X-Long", strings.Repeat("x", 2<<20))
			}
			rw.(http.Flusher).Flush()
			<-r.Context().Done()
		})
		require.Equal(t, "error: read the stream: this client closed the connection, "+
			"because the response header of stream 3 on it exceeds 131072 bytes, "+
			"too_long: read the response header: the response header exceeds 65536 bytes", v.log(`
			const ends = {};
			const connect = (path) => {
				const s = new EventSource(url + path, { http, reconnect: false });
				s.onerror = (e) => {
					ends[path] = e.reason + ": " + e.message;
					if (ends["/"] && ends["/long"]) log.push(ends["/"] + ", " + ends["/long"]);
				};
				return s;
			};
			connect("/").onopen = () => connect("/long");
		`))
	})
}

// HTTP/2 must not change requests, redirects or refusals.
func TestRequestsOverH2(t *testing.T) {
	runTransports(t, mixedTransports, func(t *testing.T, w transport) {
		v := w.vu(t)
		var output bytes.Buffer
		second := make(chan string, 1)
		logger := logrus.New()
		logger.SetOutput(&output)
		v.state.Logger, v.state.Options.HTTPDebug = logger, null.StringFrom("full")
		v.serveH2(func(rw http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			switch r.URL.Path {
			case "/redirect":
				http.SetCookie(rw, &http.Cookie{Name: "biscuit", Value: "1", Path: "/"})
				http.Redirect(rw, r, "/there?x=1", http.StatusTemporaryRedirect)
			case "/there":
				cookie, _ := r.Cookie("biscuit")
				rw.Header().Set("Content-Type", "text/event-stream")
				_, _ = fmt.Fprintf(rw, "id: 1\ndata: %s %s %s %s %s %s %d\n\n", r.Method, r.RequestURI, cookie, r.Header.Get("X-Own"), r.UserAgent(), r.Header.Get("Authorization"), len(body))
			case "/none":
				rw.WriteHeader(http.StatusNoContent)
			case "/full":
				rw.Header().Set("Retry-After", "7")
				rw.WriteHeader(http.StatusServiceUnavailable)
				_, _ = io.WriteString(rw, `{"detail":"we are full"}`)
			case "/first":
				rw.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(rw, "data: token\n\n")
				rw.(http.Flusher).Flush()
				<-r.Context().Done()
			case "/second":
				second <- string(body)
			}
		})
		v.set("big", strings.Repeat("b", 200_000))
		require.Equal(t, "200000", v.str("String(big.length)"))
		got := v.log(`
			const s = new EventSource(url.replace("://", "://me:secret@") + "/redirect",
				{ http, reconnect: false, method: "POST", body: big, headers: { "X-Own": "a", Connection: "close", Host: "example.org" } });
			s.onmessage = (e) => log.push(e.data);
			s.onerror = () => {
				const none = new EventSource(url + "/none", { http });
				none.onerror = (e) => {
					log.push(e.reason);
					const full = new EventSource(url + "/full", { http, reconnect: true });
					full.onerror = (e) => {
						log.push(e.message, e.retryMs >= 7000);
						full.close();
						const first = new EventSource(url + "/first", { http, then: { url: url + "/second", body: "<{first.data}>" } });
						first.addEventListener("then", (e) => { log.push(e.status); first.close(); });
					};
				};
			};
		`)
		require.Equal(t, "POST /there?x=1 biscuit=1 a test-agent Basic bWU6c2VjcmV0 200000 no_content unexpected status 503 Service Unavailable: we are full true 200", got)
		require.Equal(t, "<token>", <-second)
		for _, want := range []string{"POST /redirect HTTP/1.1", "HTTP/2.0 307 Temporary Redirect", "HTTP/2.0 503"} {
			require.Contains(t, output.String(), want)
		}
	})
}

func TestOptionHTTPSelectsTheProtocol(t *testing.T) {
	t.Parallel()
	proto := func(rw http.ResponseWriter, r *http.Request) { stream(rw, "data: "+r.Proto+"\n\n") }
	const ended = " server: the server ended the stream"
	for _, tt := range []struct {
		name, http, want string
		tls, http1       bool
	}{
		{"auto over TLS", "auto", "HTTP/2.0" + ended, true, false},
		{"auto over TLS, server with HTTP/1.1", "auto", "HTTP/1.1" + ended, true, true},
		{"auto over plain HTTP", "auto", "HTTP/1.1" + ended, false, true},
		{"2 over TLS", "2", "HTTP/2.0" + ended, true, false},
		{"2 by prior knowledge", "2", "HTTP/2.0" + ended, false, false},
		{"2 over TLS, server with HTTP/1.1", "2", "tls: TLS handshake: the server does not support HTTP/2 over TLS (ALPN h2): remote error: tls: no application protocol", true, true},
		{"2 by prior knowledge, server with HTTP/1.1", "2", "error: start HTTP/2: the server responded with HTTP/1.1 and does not support HTTP/2 without TLS", false, true},
		{"1.1 over TLS, server with HTTP/2", "1.1", "truncated: read the response header: EOF", true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v := transport{tls: tt.tls}.vu(t)
			if tt.http1 {
				v.set("url", v.serveHTTP(proto))
			} else {
				v.serveH2(proto)
			}
			v.set("http", tt.http)
			require.Equal(t, tt.want, v.readStream("http"))
		})
	}
}

func TestOpenReadsAndClosesAStreamOverH2(t *testing.T) {
	runTransports(t, mixedTransports, func(t *testing.T, w transport) {
		v := w.vu(t)
		disconnected := make(chan struct{})
		conns := v.serveH2(func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", "text/event-stream")
			for n := range 30 {
				_, _ = fmt.Fprintf(rw, "data: %d %s\n\n", n, strings.Repeat("x", 10_000))
			}
			rw.(http.Flusher).Flush()
			<-r.Context().Done()
			close(disconnected)
		})
		require.Equal(t, "30 200 true", v.log(`
			let n = 0;
			const res = sse.open(url, { http }, (client) => {
				client.on("event", (e) => {
					if (e.data.length < 10000) log.push(e.data);
					if (++n === 2) wait(50); // until the window of the stream is empty
					if (n === 30) client.close();
				});
			});
			log.push(n, res.status, res.error === "");
		`))
		<-disconnected
		require.EqualValues(t, 1, conns.Load())
	})
}

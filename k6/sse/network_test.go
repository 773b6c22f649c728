package sse

import (
	"crypto/tls"
	"encoding/base64"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.k6.io/k6/v2/metrics"
	"gopkg.in/guregu/null.v3"
)

// stream responds with the given events and ends.
func stream(w http.ResponseWriter, events string) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = w.Write([]byte(events))
}

// httpServer starts a server that stops at the end of the test. It uses TLS if prepare enables HTTP/2 or sets TLS.
func httpServer(t testing.TB, handler http.HandlerFunc, prepare ...func(*httptest.Server)) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // tests provoke failed handshakes
	for _, change := range prepare {
		change(s)
	}
	if s.EnableHTTP2 || s.TLS != nil {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

func enableTLS(s *httptest.Server)   { s.TLS = new(tls.Config) }
func enableHTTP2(s *httptest.Server) { s.EnableHTTP2 = true }

// The status explains the failure of a request that the server did not read to its end.
func TestResponseBeforeTheEndOfTheRequest(t *testing.T) {
	t.Parallel()
	v := newVU(t)
	v.set("url", httpServer(t, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "too long", http.StatusRequestEntityTooLarge)
	}).URL)
	require.Equal(t, "status: unexpected status 413 Request Entity Too Large: too long", v.log(`
		const s = new EventSource(url, { http: "1.1", method: "POST", body: "x".repeat(20000000), reconnect: false });
		s.onerror = (e) => log.push(e.reason + ": " + e.message);
	`))
}

func TestRequestHeaders(t *testing.T) {
	t.Parallel()
	got := make(chan *http.Request, 1)
	srv := httpServer(t, func(w http.ResponseWriter, r *http.Request) { got <- r; stream(w, "") })
	v := newVU(t)
	u, err := url.Parse(srv.URL)
	require.NoError(t, err)
	v.state.CookieJar.SetCookies(u, []*http.Cookie{{Name: "k", Value: "v"}})
	v.set("url", strings.Replace(srv.URL, "//", "//us%20er:pw@", 1)+"/a%2Fb?id=ü&x=1#frag")
	v.mustRun(`new EventSource(url, { reconnect: false, headers: { "x-one": 1, "X-Two": " two " } })`)
	r := <-got
	assert.Equal(t, "GET /a%2Fb?id=ü&x=1 HTTP/1.1", r.Method+" "+r.RequestURI+" "+r.Proto)
	assert.Equal(t, u.Host, r.Host)
	want := http.Header{
		"Accept": {"text/event-stream"}, "Cache-Control": {"no-cache"}, "User-Agent": {"test-agent"},
		"X-One": {"1"}, "X-Two": {"two"}, "Cookie": {"k=v"},
		"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte("us er:pw"))},
	}
	assert.Equal(t, want, r.Header)

	v.set("url", srv.URL)
	v.mustRun(`new EventSource(url, { reconnect: false, headers: {
		accept: "*/*", "user-agent": "", HOST: "other.test", "Last-Event-ID": "5" } })`)
	r = <-got
	assert.Equal(t, "other.test", r.Host)
	assert.Equal(t, http.Header{
		"Accept": {"*/*"}, "Cache-Control": {"no-cache"}, "Cookie": {"k=v"}, "Last-Event-Id": {"5"},
	}, r.Header)
}

func TestCookiesAreSentByLaterRequests(t *testing.T) {
	t.Parallel()
	srv := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "k", Value: "1"})
		if _, err := r.Cookie("k"); err == nil {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		stream(w, "retry: 1\n\n")
	})
	v := newVU(t)
	v.set("url", srv.URL)
	require.Equal(t, "server no_content", v.log(`new EventSource(url).onerror = (e) => log.push(e.reason)`))
}

func TestRedirectsAreFollowed(t *testing.T) {
	t.Parallel()
	foreign := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		stream(w, "data: foreign"+r.Header.Get("Authorization")+"/"+r.Header.Get("X")+"\n\n")
	})
	srv := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/foreign":
			http.Redirect(w, r, strings.Replace(foreign.URL, "127.0.0.1", "localhost", 1), http.StatusMovedPermanently)
		case "/broken":
			w.Header().Set("Location", "ftp://x/")
			w.WriteHeader(http.StatusSeeOther)
		case "/nowhere":
			w.WriteHeader(http.StatusFound)
		case "/end":
			stream(w, "data: "+r.Method+r.Header.Get("Authorization")+"\n\n")
		default: // /308/2 goes to /308/1, then to /end
			to := "/308/1"
			if r.URL.Path == to {
				to = "/end"
			}
			http.Redirect(w, r, to, http.StatusPermanentRedirect)
		}
	})
	for _, tt := range []struct{ path, options, want string }{
		{"/308/2", "maxRedirects: 2,", "GETsecret server"},
		{"/308/2", "maxRedirects: 1,", "status 308"},
		{"/308/2", "maxRedirects: 0,", "status 308"},
		{"/loop", "", "status 302"},
		{"/nowhere", "", "status 302"},
		{"/broken", "", "status 303"},
		{"/foreign", "", "status 301"},
		{"/foreign", "followRedirects: true,", "foreign/ server"},
	} {
		t.Run(tt.path+" "+tt.options, func(t *testing.T) {
			t.Parallel()
			v := newVU(t)
			v.set("url", srv.URL+tt.path)
			require.Equal(t, tt.want, v.log(`
				const s = new EventSource(url, { reconnect: false, `+tt.options+` headers: { Authorization: "secret", X: "kept" } });
				s.onmessage = (e) => log.push(e.data);
				s.onerror = (e) => { log.push(e.reason); if (e.reason === "status") log.push(e.status); };
			`))
		})
	}
	t.Run("k6's option", func(t *testing.T) {
		t.Parallel()
		v := newVU(t)
		v.state.Options.MaxRedirects = null.IntFrom(0)
		v.set("url", srv.URL+"/308/2")
		require.Equal(t, "status", v.log(`new EventSource(url).onerror = (e) => log.push(e.reason)`))
	})
}

func TestTLSUsesTheConfigurationOfTheVU(t *testing.T) {
	t.Parallel()
	srv := httpServer(t, func(w http.ResponseWriter, r *http.Request) {
		stream(w, "data: "+r.Proto+" "+r.TLS.ServerName+"\n\n")
	}, enableHTTP2)
	hostURL := strings.Replace(srv.URL, "127.0.0.1", "localhost", 1)

	v := newVU(t)
	v.state.TLSConfig = &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}
	v.set("url", hostURL)
	for http, want := range map[string]string{"auto": "HTTP/2.0", "1.1": "HTTP/1.1"} {
		v.set("http", http)
		require.Equal(t, want+" localhost server: the server ended the stream", v.readStream("http"))
	}
	require.Equal(t, []string{"h2"}, v.state.TLSConfig.NextProtos, "the configuration of the VU must not change")
	n, _ := v.sum(v.drainSamples(), "sse_event", "tls_version", "tls1.3")
	require.Equal(t, 2.0, n)

	strict := newVU(t)
	strict.state.TLSConfig = &tls.Config{}
	strict.set("url", srv.URL)
	strict.set("plain", serve(t, func(p *peer) { p.send("nonsense") }))
	require.Equal(t, "tls tls", strict.log(`
		const logReason = (e) => log.push(e.reason);
		new EventSource(url, { reconnect: false }).onerror = logReason;
		new EventSource(plain.replace("http:", "https:"), { reconnect: false }).onerror = logReason;
	`))
}

func TestConnectTimeoutIncludesTheTLSHandshake(t *testing.T) {
	t.Parallel()
	v := newVU(t)
	v.set("url", "https://"+stuckServer(t))
	require.Equal(t, "connect_timeout", v.log(`
		new EventSource(url, { reconnect: false, connectTimeout: 50 }).onerror = (e) => log.push(e.reason);
	`))
}

func TestIdleTimeoutIsMeasuredFromTheLastByte(t *testing.T) {
	runTransports(t, allTransports, func(t *testing.T, w transport) {
		v := w.serveVU(t, func(p *peer) {
			p.send(streamHead)
			for range 6 { // longer than the timeout in total; each byte resets it
				time.Sleep(60 * time.Millisecond)
				p.send(":")
			}
			p.send("\n\ndata: 0\n\n")
			p.hold()
		})
		start := time.Now()
		require.Equal(t, "idle", v.log(`
		new EventSource(url, { ledger, reconnect: false, idleTimeout: 300 }).onerror = (e) => log.push(e.reason)`))
		require.Equal(t, "connecting opened event:0 closed:idle", v.rec.String())
		require.GreaterOrEqual(t, time.Since(start), 660*time.Millisecond)
		require.ErrorContains(t, v.rec.last.Err, "no byte from the server within the idle timeout")
		require.Equal(t, 200, v.rec.last.Status)
	})
}

// A script that waits for a requested end has its own deadline, so it can disable the idle timeout of an open stream
// and restore it later.
func TestIdleTimeoutCanBeChanged(t *testing.T) {
	runTransports(t, allTransports, func(t *testing.T, w transport) {
		v := w.serveVU(t, func(p *peer) {
			p.send(streamHead + "data: 0\n\n")
			p.hold()
		})
		require.Equal(t, "300 0 still open, TypeError idle", v.log(`
		const s = new EventSource(url, { reconnect: false, idleTimeout: 300 });
		s.onmessage = () => {
			log.push(s.idleTimeout);
			s.idleTimeout = 0;
			log.push(s.idleTimeout);
			setTimeout(() => {
				log.push(s.readyState === EventSource.OPEN ? "still open," : "closed,");
				try { s.idleTimeout = "soon"; } catch (e) { log.push(e.name); }
				s.idleTimeout = 60;
			}, 500);
		};
		s.onerror = (e) => log.push(e.reason);
	`))
	})
}

func TestTagsOmitCredentialsAndQueries(t *testing.T) {
	t.Parallel()
	v := newVU(t)
	v.state.Tags.Modify(func(tm *metrics.TagsAndMeta) { tm.SetTag("scenario", "soak"); tm.SetMetadata("vu", "7") })
	srv := serveText(t, streamHead+"data: 0\n\n")
	v.set("url", strings.Replace(srv, "//", "//u:p@", 1)+"/event/connect?id=device-1#f")
	v.mustRun(`
		new EventSource(url, { reconnect: false, tags: { kind: "a", n: 1 } });
		new EventSource(url, { reconnect: false, tags: { name: "connect" } });
	`)
	all := v.drainSamples()
	for _, s := range all {
		for name, value := range s.Tags.Map() {
			assert.NotContains(t, value, "device-1", name)
			assert.NotContains(t, value, "u:p", name)
		}
		assert.Equal(t, map[string]string{"vu": "7"}, s.Metadata)
	}
	for _, metric := range []string{"sse_event", "sse_connecting", "sse_first_event", "sse_connection_opened", "sse_connection_closed"} {
		_, n := v.sum(all, metric, "url", srv+"/event/connect", "name", srv+"/event/connect", "kind", "a", "n", "1",
			"scenario", "soak", "status", "200", "method", "GET", "proto", "HTTP/1.1", "ip", "127.0.0.1")
		assert.Equal(t, 1, n, metric)
		_, n = v.sum(all, metric, "url", "connect", "name", "connect")
		assert.Equal(t, 1, n, metric)
	}
}

// The end of the context loses no event. A sample may count several events.
func TestEventsAreCountedExactly(t *testing.T) {
	runTransports(t, allTransports, func(t *testing.T, w transport) {
		const connections, events = 10, 250
		v := w.vu(t)
		v.set("n", connections)
		v.set("url", v.serve(func(p *peer) {
			p.send(streamHead + strings.Repeat("data: 0\n\n", events))
			p.hold()
		}))
		var tally eventTally
		v.set("ledger", func() any {
			return testObserver{&tally}
		})
		v.set("cancel", v.CancelContext)
		v.set("counted", tally.Load)
		v.mustRun(`
		const all = [];
		for (let i = 0; i < n; i++) all.push(new EventSource(url, { ledger: ledger() }));
		const poll = setInterval(() => { if (counted() === n * 250) { clearInterval(poll); cancel(); } }, 5);
	`)
		all := v.drainSamples()
		sum, n := v.sum(all, "sse_event")
		require.Equal(t, float64(connections*events), sum)
		require.Less(t, n, 10)
		closed, _ := v.sum(all, "sse_connection_closed", "reason", "interrupted", "opened", "true")
		require.Equal(t, float64(connections), closed)
	})
}

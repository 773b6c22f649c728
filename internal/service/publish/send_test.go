package publish

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http/httpproxy"

	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/test/forward"
)

const okResponse = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// A service that receives a request and closes its connection may have the message, so the publisher never sends it
// again. net/http would repeat requests with some methods.
func TestMessagesAreSentOnce(t *testing.T) {
	t.Parallel()
	for _, publish := range []string{
		"",
		`{"url":"{base}/pub/{topic}","body":"{\"run\":\"{run}\",\"seq\":{seq},\"t\":{sentAt}}","headers":{"Idempotency-Key":"{run}-{seq}"}}`,
		`{"method":"GET","url":"{base}/pub/{topic}?data={\"run\":\"{run}\",\"seq\":{seq},\"t\":{sentAt}}"}`,
		`{"method":"PUT","url":"{base}/pub/{topic}?data={\"run\":\"{run}\",\"seq\":{seq},\"t\":{sentAt}}"}`,
	} {
		t.Run(publish, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			times := map[string]int{}
			base := serve(t, func(c net.Conn, in *bufio.Reader) {
				for n := 1; ; n++ {
					r, body, err := request(in)
					if err != nil {
						return
					}
					mu.Lock()
					query, _ := url.QueryUnescape(r.URL.RawQuery)
					times[seqPattern.FindString(query+string(body))]++
					mu.Unlock()
					if n == 4 { // on a reused connection, which ends like an idle connection
						return
					}
					_, _ = io.WriteString(c, okResponse)
				}
			})
			c := newConfig(t, base)
			c.Service, c.Topics, c.For = newService(t, publish, ""), []string{"a"}, time.Second/10
			p := publishAll(t, c)
			mu.Lock()
			defer mu.Unlock()
			require.Len(t, times, 20)
			for message, n := range times {
				require.Equal(t, 1, n, message)
			}
			require.Equal(t, shard.PublishSums{Sent: 20, Confirmed: 15, Open: 5}, withoutLag(p.Sums()))
			for n, m := range p.Topic(0) {
				require.Equal(t, n%4 == 3, m.State == shard.Open, "message %d", n+1)
			}
			require.Contains(t, p.Unanswered()[0].Text, "the connection was closed before the response")
		})
	}
}

var seqPattern = regexp.MustCompile(`seq\D+[0-9]+`)

// A connection is kept after a complete response. Before the publisher sends the next message, it detects whether the
// service closed the idle connection.
func TestConnectionsAreKept(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer string
		keep   bool // the server answers all requests of a connection
		dials  int  // for 2 messages
		state  shard.MessageState
		text   string
	}{
		"counted":            {okResponse, true, 1, shard.Confirmed, ""},
		"chunked":            {"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", true, 1, shard.Confirmed, ""},
		"empty":              {"HTTP/1.1 204 No Content\r\n\r\n", true, 1, shard.Confirmed, ""},
		"a long body":        {fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", 100_000, strings.Repeat("x", 100_000)), true, 1, shard.Confirmed, ""},
		"refused":            {strings.Replace(okResponse, "200", "400", 1), true, 1, shard.Refused, "400 OK: ok"},
		"closed while idle":  {okResponse, false, 2, shard.Confirmed, ""},
		"Connection: close":  {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", false, 2, shard.Confirmed, ""},
		"HTTP/1.0":           {"HTTP/1.0 200 OK\r\n\r\nok", false, 2, shard.Confirmed, ""},
		"truncated body":     {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", false, 2, shard.Confirmed, ""},
		"endless body":       {"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n" + strings.Repeat("x", 400_000), false, 2, shard.Confirmed, ""},
		"no HTTP":            {"SSH-2.0-OpenSSH\r\n\r\n", false, 2, shard.Open, "malformed HTTP"},
		"truncated head":     {"HTTP/1.1 200 OK\r\nX: 1\r\n", false, 2, shard.Open, "closed before the response"},
		"nothing":            {"", false, 2, shard.Open, "closed before the response"},
		"refused, truncated": {"HTTP/1.1 500 \x1b[31mOops\r\nContent-Length: 9\r\n\r\nfull\x1b[1m", false, 2, shard.Refused, "500 [31mOops: full [1m"},
		"nothing but 1xx":    {strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 20), false, 2, shard.Refused, "102 Processing"},
		"another protocol":   {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", false, 2, shard.Refused, "101 Switching Protocols"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base, dials := serveCounting(t, c.answer, c.keep)
			config := newConfig(t, base)
			config.Rate, config.For, config.Topics = 20, time.Second/10, []string{"a"}
			config.Report = func(sentence string) {
				assert.NotContains(t, sentence, "\x1b", "a terminal would interpret it")
			}
			p := publishAll(t, config)
			require.EqualValues(t, c.dials, dials.Load())
			require.Len(t, p.Topic(0), 2)
			for _, m := range p.Topic(0) {
				require.Equal(t, c.state, m.State)
			}
			for _, f := range append(p.Refusals(), p.Unanswered()...) {
				require.Contains(t, f.Text, c.text)
			}
		})
	}
}

// The templates of a request are tested in package service.
func TestRequestFollowsTheDescription(t *testing.T) {
	t.Parallel()
	got := make(chan *http.Request, 1)
	var body []byte
	base := serve(t, func(conn net.Conn, in *bufio.Reader) {
		r, text, err := request(in)
		if err == nil {
			body = text
			got <- r
			_, _ = io.WriteString(conn, okResponse)
		}
	})
	c := newConfig(t, base)
	c.Service = newService(t, `{"url":"{base}/hub?t={sentAt}","headers":{"Authorization":"Bearer {token}","Content-Type":"application/x-www-form-urlencoded"},`+
		`"body":"topic={topic}&data={\"seq\":{seq},\"run\":\"{run}\",\"t\":{sentAt}}"}`, "")
	c.Token, c.Topics, c.Run, c.Rate, c.For = "jwt", []string{"a b/c"}, fixedMarker(`r"1`), 100, time.Second/100
	require.EqualValues(t, 1, publishAll(t, c).Sums().Confirmed)
	r := <-got
	require.Equal(t, "POST /hub?t=0", r.Method+" "+timePattern.ReplaceAllString(r.RequestURI, "0"))
	require.Equal(t, `topic=a%20b%2Fc&data=%7B%22seq%22:1,%22run%22:%22r%5C%221%22,%22t%22:0%7D`, timePattern.ReplaceAllString(string(body), "0"))
	require.Equal(t, strings.TrimPrefix(base, "http://"), r.Host)
	require.Equal(t, http.Header{
		"Content-Type": {"application/x-www-form-urlencoded"}, "Authorization": {"Bearer jwt"}, "User-Agent": {"sse-soak"}, "Content-Length": {fmt.Sprint(len(body))},
	}, r.Header)
}

var timePattern = regexp.MustCompile(`[0-9]{16}`)

func TestOverTLS(t *testing.T) {
	t.Parallel()
	var dials atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			dials.Add(1)
		}
	}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	c := newConfig(t, server.URL)
	c.Topics, c.For = []string{"a"}, time.Second/20 // each message requires a handshake
	p := publishAll(t, c)
	require.EqualValues(t, 10, p.Sums().Refused)
	require.Contains(t, p.Refusals()[0].Text, "no connection: tls: failed to verify certificate")
	dials.Store(0)
	c.InsecureSkipVerify, c.Start, c.For = true, time.Now(), time.Second/2
	p = publishAll(t, c)
	require.EqualValues(t, 100, p.Sums().Confirmed)
	require.EqualValues(t, 1, dials.Load())
}

func TestConnectionClosedDuringTheHandshake(t *testing.T) {
	t.Parallel()
	base := serve(t, func(_ net.Conn, in *bufio.Reader) { _, _ = in.ReadByte() })
	c := newConfig(t, strings.Replace(base, "http://", "https://", 1))
	c.Topics, c.For = []string{"a"}, time.Second/20
	p := publishAll(t, c)
	require.EqualValues(t, 10, p.Sums().Refused)
	require.Equal(t, "no connection: the server closed the connection during the TLS handshake", p.Refusals()[0].Text)
}

func TestRefusalIsDescribedWithoutTheToken(t *testing.T) {
	t.Parallel()
	for want, handler := range map[string]http.HandlerFunc{
		"307 Temporary Redirect, to /else, which is not followed": http.RedirectHandler("/else", http.StatusTemporaryRedirect).ServeHTTP,
		"403 Forbidden: who is {token}?": func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "who is "+r.URL.Query().Get("k")+"?", http.StatusForbidden)
		},
	} {
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)
		c := newConfig(t, server.URL)
		c.Token, c.For = "a publisher", time.Second/20
		c.Service = newService(t, `{"url":"{base}/pub/{topic}?k={token}","body":"{\"run\":\"{run}\",\"seq\":{seq},\"t\":{sentAt}}"}`, "")
		p := publishAll(t, c)
		require.EqualValues(t, 10, p.Sums().Refused)
		require.Equal(t, want, p.Refusals()[0].Text)
	}
}

// The service did not refuse a message for which this machine had no port left.
func TestLackOfAPortIsLocal(t *testing.T) {
	t.Parallel()
	for errno, local := range map[syscall.Errno]bool{syscall.EADDRNOTAVAIL: true, syscall.EMFILE: true, syscall.ECONNREFUSED: false} {
		p := &Publisher{c: newConfig(t, "http://service.test"), base: time.Now(), ctx: t.Context(), pool: newPool(false, nil)}
		p.pool.dialer.Dial = func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", errno)}
		}
		o := p.exchange(&service.Values{Base: p.c.Base, Topic: "a"})
		require.Equal(t, shard.Refused, o.State)
		require.Equal(t, local, o.Local, "%v", errno)
	}
}

// Each message reaches an http or https service once, through an http or https proxy.
func TestMessagesGoThroughAProxy(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"http", "https"} {
		for _, secure := range []bool{false, true} {
			h := newHub(t, nil)
			service := httptest.NewUnstartedServer(h.Config.Handler)
			service.StartTLS()
			t.Cleanup(service.Close)
			o := forward.Options{User: url.UserPassword("us er", "pass"), Resolve: func(string) string {
				return strings.TrimPrefix(map[string]string{"http": h.URL, "https": service.URL}[scheme], scheme+"://")
			}}
			if secure {
				o.TLS = &tls.Config{Certificates: service.TLS.Certificates}
			}
			forwarder, err := forward.Start(o)
			require.NoError(t, err)
			t.Cleanup(forwarder.Stop)
			c := newConfig(t, scheme+"://joe:x@service.test")
			c.InsecureSkipVerify, c.For = true, time.Second/4
			c.Proxies = (&httpproxy.Config{HTTPProxy: forwarder.URL, HTTPSProxy: forwarder.URL}).ProxyFunc()
			p := publishAll(t, c)
			require.EqualValues(t, 50, p.Sums().Confirmed, p.Refusals())
			require.Equal(t, numbersUpTo(25), h.numbers("a"))
			requests := forwarder.Requests()
			if scheme == "http" {
				slices.Sort(requests)
				require.Len(t, requests, 50)
				require.Equal(t, []string{"POST http://service.test/pub/a", "POST http://service.test/pub/b"}, slices.Compact(requests))
				continue
			}
			require.LessOrEqual(t, len(requests), 2, "tunnels must be reused")
			require.Equal(t, []string{"CONNECT service.test:443"}, slices.Compact(requests))
		}
	}
}

func TestErrorsOfAProxyNameTheProxy(t *testing.T) {
	t.Parallel()
	forwarder, err := forward.Start(forward.Options{Refuse: func(*http.Request) string { return "not from here" }})
	require.NoError(t, err)
	t.Cleanup(forwarder.Stop)
	closed := httptest.NewServer(nil)
	closed.Close()
	for _, tt := range []struct{ proxy, base, want string }{
		{forwarder.URL, "https://service.test", "no connection: the proxy " + forwarder.URL + " refused CONNECT service.test:443 with 403 Forbidden: not from here"},
		{forwarder.URL, "http://service.test", "403 Forbidden (through the proxy " + forwarder.URL + "): not from here"},
		{strings.Replace(closed.URL, "//", "//joe:sesame@", 1), "http://service.test", "no connection: the proxy " + closed.URL + " cannot be reached: dial tcp "},
	} {
		c := newConfig(t, tt.base)
		c.For, c.Proxies = time.Second/20, (&httpproxy.Config{HTTPProxy: tt.proxy, HTTPSProxy: tt.proxy}).ProxyFunc()
		require.True(t, strings.HasPrefix(publishAll(t, c).Refusals()[0].Text, tt.want), publishAll(t, c).Refusals()[0].Text)
	}
}

// A server may close an idle connection at any time (RFC 9112, 9.5).
func TestConnectionIdleForASecondIsNotReused(t *testing.T) {
	t.Parallel()
	base, dials := serveCounting(t, okResponse, true)
	c := newConfig(t, base)
	c.Rate, c.For, c.Topics = 0.8, 2400*time.Millisecond, []string{"a"}
	p := publishAll(t, c)
	require.Equal(t, shard.PublishSums{Sent: 2, Confirmed: 2}, withoutLag(p.Sums()))
	require.EqualValues(t, 2, dials.Load())
}

// If the service closes an idle connection while a message is in transit, the publisher cannot determine whether the
// service received the message. The publisher does not send it again, and records that the connection had been idle.
func TestConnectionClosedAsIdleIsRecorded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rate float64
		part string // part of the response before the connection ends; "new": each connection ends without a response
		idle bool
	}{
		"idle for 300 ms":      {rate: 3.3, idle: true}, // between minIdle and maxIdle, far from both
		"part of a response":   {rate: 3.3, part: "HTTP/1.1 2"},
		"on a busy connection": {rate: shard.MaxRate}, // the second message is due before the first answer
		"on a new connection":  {rate: 3.3, part: "new"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int32
			base := serve(t, func(conn net.Conn, in *bufio.Reader) {
				for {
					if _, _, err := request(in); err != nil {
						return
					}
					if n := requests.Add(1); n == 2 || c.part == "new" {
						if c.part != "new" {
							_, _ = io.WriteString(conn, c.part)
						}
						return
					}
					_, _ = io.WriteString(conn, okResponse)
				}
			})
			config := newConfig(t, base)
			config.Rate, config.For, config.Topics = c.rate, time.Duration(2.9/c.rate*float64(time.Second)), []string{"a"}
			p := publishAll(t, config)
			require.EqualValues(t, 3, p.Sums().Sent)
			require.EqualValues(t, 3, requests.Load(), "each message must be sent once")
			require.Len(t, p.Unanswered(), 1)
			require.Equal(t, c.idle, p.Unanswered()[0].Idle)
			if c.idle {
				require.Contains(t, p.Unanswered()[0].Text, "the connection was closed before the response was complete; the connection had been idle for ")
			}
		})
	}
}

// The next message of a topic waits for the end of the body.
func TestTimeToTheEndOfABodyIsRecorded(t *testing.T) {
	t.Parallel()
	const late = 300 * time.Millisecond
	base := serve(t, func(c net.Conn, in *bufio.Reader) {
		for {
			if _, _, err := request(in); err != nil {
				return
			}
			_, _ = io.WriteString(c, okResponse[:len(okResponse)-2])
			time.Sleep(late)
			_, _ = io.WriteString(c, "ok")
		}
	})
	c := newConfig(t, base)
	c.Rate, c.Topics = 4, []string{"a"}
	p := publishAll(t, c)
	require.EqualValues(t, 2, p.Sums().Confirmed)
	require.GreaterOrEqual(t, p.MaxBodyUS, late.Microseconds())
	require.Less(t, p.MaxBodyUS, 10*late.Microseconds())
}

package handshake

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.k6.io/k6/v2/js/modulestest"
	"go.k6.io/k6/v2/lib"

	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/test/certificate"
	"github.com/sse-soak/sse-soak/test/sockets"
)

func TestEachConnectionMakesAFullHandshake(t *testing.T) {
	t.Parallel()
	ca := certificate.NewAuthority(t)
	var mu sync.Mutex
	clients := map[string]bool{}
	s := serve(t, ca, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		clients[r.RemoteAddr] = true
		if r.TLS.DidResume || len(r.TLS.PeerCertificates) != 1 || r.URL.RequestURI() != "/a?b" {
			w.WriteHeader(http.StatusTeapot)
		}
	})
	v := newVU(t, ca, ca.Client())
	require.Equal(t, true, v.js(fmt.Sprintf(`
		var complete = 0, c;
		for (var i = 0; i < 20; i++) {
			c = connect("%s/a?b");
			if (c.ok && c.status === 200 && c.cause === "" && c.tcpMs > 0 && c.tlsMs > 0 && c.answerMs > 0) complete++;
		}
		complete === 20 && c.version === "TLS 1.3" && c.group !== "" && c.cipher !== ""`, s.URL)))
	require.Len(t, clients, 20)
	require.Zero(t, v.root.openCount.Load())
	require.Equal(t, map[string]int{
		"handshake_tcp": 20, "handshake_tls": 20, "handshake_answer": 20, "handshake_open": 20,
		"handshake_sent": 20, "handshake_received": 20, "handshake_tls_sent": 20, "handshake_tls_received": 20,
	}, v.counts())
}

// In TLS 1.3 the client completes its handshake before the server has checked the certificate. Only the response
// shows that the server accepted the certificate.
func TestServerRefusesAWrongCertificate(t *testing.T) {
	t.Parallel()
	ca, other := certificate.NewAuthority(t), certificate.NewAuthority(t)
	s := serve(t, ca, respondOK)
	cert, key := certificate.PEM(t, other.Client())
	v := newVU(t, ca, ca.Client())
	require.NoError(t, v.VU.Runtime().Set("foreign", map[string]string{"cert": cert, "key": key}))
	for _, c := range []struct{ name, params string }{
		{"no certificate", "{certificate: null}"}, {"certificate of another authority", "{certificate: foreign}"},
	} {
		require.Equal(t, "client_certificate", v.js(fmt.Sprintf(`connect(%q, %s).cause`, s.URL, c.params)), c.name)
	}
	require.Equal(t, true, v.js(fmt.Sprintf(`connect(%q).ok`, s.URL)), "later connections must present the certificate of k6's options")
	require.Equal(t, true, v.js(fmt.Sprintf(`connect(%q, {certificate: undefined, timeout: undefined, hold: undefined, tags: undefined}).ok`, s.URL)),
		"an undefined parameter must count as absent")
	require.Equal(t, 2, v.counts()["handshake_failed client_certificate"])

	v = newVU(t, ca, nil)
	cert, key = certificate.PEM(t, ca.Client())
	require.NoError(t, v.VU.Runtime().Set("mine", map[string]string{"cert": cert, "key": key}))
	require.Equal(t, true, v.js(fmt.Sprintf(`connect(%q, {certificate: mine}).ok && connect(%q, {certificate: mine}).ok`, s.URL, s.URL)))
}

func TestCausesOfFailures(t *testing.T) {
	t.Parallel()
	ca := certificate.NewAuthority(t)
	client := ca.Client()
	closedListener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closedListener.Close())
	for _, c := range []struct {
		name string
		url  func(t *testing.T) string
		want Cause
	}{
		{"no listener", func(*testing.T) string { return "https://" + closedListener.Addr().String() }, causeRefused},
		{"unknown host name", func(*testing.T) string { return "https://nowhere.invalid" }, causeDNS},
		{"certificate of an unknown authority", func(t *testing.T) string { return serve(t, certificate.NewAuthority(t), respondOK).URL }, causeServerCert},
		{"unsupported version of TLS", func(t *testing.T) string {
			return serveRaw(t, func(conn net.Conn) {
				_ = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{*ca.Server()}, MaxVersion: tls.VersionTLS12}).Handshake()
			})
		}, causeTLSAlert},
		{"plain HTTP", func(t *testing.T) string {
			return serveRaw(t, func(conn net.Conn) { _, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) })
		}, causeTLS},
		{"silent server", func(t *testing.T) string {
			return serveRaw(t, func(conn net.Conn) { _, _ = conn.Read(make([]byte, 1<<16)); <-t.Context().Done() })
		}, causeTLSTimeout},
		{"closed connection", func(t *testing.T) string { return serveRaw(t, func(net.Conn) {}) }, causeTLSReset},
		{"reset connection", func(t *testing.T) string {
			return serveRaw(t, func(conn net.Conn) {
				_, _ = conn.Read(make([]byte, 1))
				_ = conn.(*net.TCPConn).SetLinger(0)
			})
		}, causeTLSReset},
		{"error status", func(t *testing.T) string {
			return serve(t, ca, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }).URL
		}, causeStatus},
		{"no response", func(t *testing.T) string {
			return serve(t, ca, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }).URL
		}, causeAnswerTimeout},
		{"truncated response", func(t *testing.T) string {
			return serve(t, ca, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }).URL
		}, causeAnswerReset},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v := newVU(t, ca, client)
			if c.want == causeTLSAlert {
				v.state.TLSConfig.MinVersion = tls.VersionTLS13
			}
			got := v.js(fmt.Sprintf(`var c = connect(%q, {timeout: 3000}); [c.ok, c.cause, c.message !== "", c.status].join(" ")`, c.url(t)))
			status := 0
			if c.want == causeStatus {
				status = http.StatusServiceUnavailable
			}
			require.Equal(t, fmt.Sprintf("false %s true %d", c.want, status), got, v.js(`c.message`))
			require.Zero(t, v.root.openCount.Load(), "every connection must be closed")
			require.Equal(t, 1, v.counts()["handshake_failed "+string(c.want)])
		})
	}
}

// A failed dial must not reset the gauge of open connections.
func TestFailedDialKeepsTheGauge(t *testing.T) {
	t.Parallel()
	ca := certificate.NewAuthority(t)
	v := newVU(t, ca, ca.Client())
	v.js(fmt.Sprintf(`connect(%q, {hold: true})`, serve(t, ca, respondOK).URL))
	require.Equal(t, 1, v.counts()["handshake_open"])
	require.Equal(t, "dns", v.js(`connect("https://nowhere.invalid").cause`))
	require.NotContains(t, v.counts(), "handshake_open")
}

// serveRaw starts a server that calls handle with each connection and then closes it.
func serveRaw(t *testing.T, handle func(net.Conn)) string {
	return "https://" + sockets.Serve(t, handle)
}

func TestOpenConnectionsAreReused(t *testing.T) {
	t.Parallel()
	ca := certificate.NewAuthority(t)
	var broken atomic.Bool
	s := serve(t, ca, func(w http.ResponseWriter, _ *http.Request) {
		if broken.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	v := newVU(t, ca, ca.Client())
	require.NoError(t, v.VU.Runtime().Set("break", func() { broken.Store(true) }))
	v.js(fmt.Sprintf(`var conns = []; for (var i = 0; i < 5; i++) conns.push(connect(%q, {hold: true}))`, s.URL))
	require.EqualValues(t, 5, v.root.openCount.Load())
	require.Equal(t, true, v.js(`conns.every((c) => c.ok && c.ask() && c.ask())`))
	require.Equal(t, 15, v.counts()["handshake_answer"])
	v.js(`conns[0].close(); conns[0].close()`)
	require.EqualValues(t, 4, v.root.openCount.Load())
	require.Equal(t, "false answer", v.js(`[conns[0].ask(), conns[0].cause].join(" ")`), "a closed connection must make no request")
	v.js(`globalThis["break"]()`)
	require.Equal(t, "false status false", v.js(`[conns[1].ask(), conns[1].cause, conns[1].ask()].join(" ")`))
	require.EqualValues(t, 3, v.root.openCount.Load())
	require.Equal(t, 1, v.counts()["handshake_answer"], "each response must count, whatever its status")
	v.CancelContext()
	require.Eventually(t, func() bool { return v.root.openCount.Load() == 0 }, time.Minute, time.Millisecond, "every connection must be closed when its iteration ends")
}

// Certificates and name servers use the ASCII form of a host name.
func TestHostNameIsConvertedToASCII(t *testing.T) {
	t.Parallel()
	r, err := new(module).parse("https://bücher.test/", nil)
	require.NoError(t, err)
	require.Equal(t, "xn--bcher-kva.test:443", r.address)
	require.Equal(t, "xn--bcher-kva.test", (&Connection{request: r}).tlsConfig(new(lib.State)).ServerName)
}

// A cancelingConn cancels the context of an exchange while the client reads the response.
type cancelingConn struct {
	net.Conn
	response *strings.Reader
	cancel   func()
}

func (cancelingConn) Write(p []byte) (int, error) { return len(p), nil }
func (cancelingConn) SetDeadline(time.Time) error { return nil }
func (c cancelingConn) Read(p []byte) (int, error) {
	defer c.cancel()
	return c.response.Read(p)
}

// The end of its context makes a connection unusable, even if the response arrives at that moment.
func TestResponseDuringTheCancellationFails(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	u, err := url.Parse("https://h/")
	require.NoError(t, err)
	c := &Connection{request: &request{url: u, hold: true}, conn: cancelingConn{response: strings.NewReader("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), cancel: cancel}}
	require.False(t, c.exchange(ctx))
	require.EqualValues(t, causeInterrupted, c.Cause)
}

func TestInterruptedConnectionReturnsAtOnce(t *testing.T) {
	t.Parallel()
	ca := certificate.NewAuthority(t)
	requests := make(chan struct{}, 1)
	s := serve(t, ca, func(_ http.ResponseWriter, r *http.Request) { requests <- struct{}{}; <-r.Context().Done() })
	v := newVU(t, ca, ca.Client())
	go func() {
		<-requests
		v.CancelContext()
	}()
	start := time.Now()
	require.Equal(t, "interrupted", v.js(fmt.Sprintf(`connect(%q, {timeout: "10m"}).cause`, s.URL)))
	require.Less(t, time.Since(start), time.Minute)
}

func TestWrongArgumentsThrow(t *testing.T) {
	t.Parallel()
	ca := certificate.NewAuthority(t)
	v := newVU(t, ca, nil)
	for script, message := range map[string]string{
		`connect("http://h")`:                                              "must start with https://",
		`connect("https://")`:                                              "must start with https://",
		`connect("https://h", {timeout: "soon"})`:                          "timeout must be a positive number",
		`connect("https://h", {timeout: 0})`:                               "timeout must be a positive number",
		`connect("https://h", {kept: true})`:                               `unknown parameter "kept"`,
		`connect("https://h", {certificate: {cert: "x", key: "y"}})`:       "must contain a certificate and its key",
		`connect("https://h", {certificate: {cert: undefined, key: "y"}})`: "must contain a certificate and its key",
	} {
		_, err := v.VU.Runtime().RunString(script)
		require.ErrorContains(t, err, message, script)
	}
	rt := modulestest.NewRuntime(t)
	exports := new(rootModule).NewModuleInstance(rt.VU).Exports()
	require.NoError(t, rt.VU.Runtime().Set("connect", exports.Named["connect"]))
	_, err := rt.VU.Runtime().RunString(`connect("https://h")`)
	require.ErrorContains(t, err, "only inside a VU")
}

// isCertificateAlert depends on these texts of crypto/tls.
func TestCertificateAlertsHaveTexts(t *testing.T) {
	t.Parallel()
	for _, a := range certificateAlerts {
		require.NotContains(t, a.Error(), "alert(", "crypto/tls has no text for alert %d", uint8(a))
	}
}

func TestWrongHostNameIsAServerCertificateFailure(t *testing.T) {
	t.Parallel()
	require.Equal(t, causeServerCert, tlsCause(context.Background(), x509.HostnameError{Certificate: &x509.Certificate{}, Host: "h"}, causeTLSTimeout, causeTLSReset, causeTLS))
}

// The byte counts of the client must match the server's counts.
func TestMetricsCountBytesOnTheWire(t *testing.T) {
	t.Parallel()
	ca := certificate.NewAuthority(t)
	s := newUnstartedServer(ca, respondOK)
	listener := &countingListener{Listener: s.Listener, conns: make(chan *sseclient.Conn, 10)}
	s.Listener = listener
	s.StartTLS()
	t.Cleanup(s.Close)
	v := newVU(t, ca, ca.Client())

	require.Equal(t, true, v.js(fmt.Sprintf(`connect(%q).ok`, s.URL)))
	peer, sums := <-listener.conns, v.sums()
	const closeNotify = 24 // size in bytes of the TLS record close_notify, which may arrive after the receiver has closed the connection
	require.InDelta(t, float64(trafficOf(peer).received)+closeNotify/2, sums["handshake_sent"], closeNotify/2)
	requireSent(t, peer, sums["handshake_received"], closeNotify)
	require.Greater(t, sums["handshake_tls_sent"], 500., "the client must present a certificate")
	require.Less(t, sums["handshake_tls_sent"], sums["handshake_sent"])
	require.Less(t, sums["handshake_tls_received"], sums["handshake_received"])

	require.Equal(t, true, v.js(fmt.Sprintf(`var c = connect(%q, {hold: true}); c.ask() && c.ask()`, s.URL)))
	peer, sums = <-listener.conns, v.sums()
	require.InDelta(t, trafficOf(peer).received, sums["handshake_sent"], 0, "requests on an open connection must be counted once")
	requireSent(t, peer, sums["handshake_received"], 0)
}

// requireSent waits until the server has counted the bytes that the client received, because the server counts bytes
// after it sends them. The client may have received up to tolerance bytes fewer than the server sent.
func requireSent(t *testing.T, peer *sseclient.Conn, received float64, tolerance int64) {
	t.Helper()
	require.Eventually(t, func() bool {
		missing := trafficOf(peer).sent - int64(received)
		return missing >= 0 && missing <= tolerance
	}, time.Minute, time.Millisecond, "the client received %v bytes, the server sent %d", received, trafficOf(peer).sent)
}

// A countingListener counts the bytes of each connection that it accepts.
type countingListener struct {
	net.Listener
	conns chan *sseclient.Conn
}

func (l *countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err //nolint:wrapcheck // a net.Listener
	}
	w := &sseclient.Conn{Conn: conn, Received: new(int64), Sent: new(int64)}
	l.conns <- w
	return w, nil
}

package handshake

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.k6.io/k6/v2/js/modulestest"

	"github.com/sse-soak/sse-soak/test/certificate"
	"github.com/sse-soak/sse-soak/test/sockets"
)

func TestEachConnectionIsAFullHandshakeOfItsOwn(t *testing.T) {
	t.Parallel()
	ca := certificate.NewAuthority(t)
	var mu sync.Mutex
	seen := map[string]bool{}
	s := serve(t, ca, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen[r.RemoteAddr] = true
		if r.TLS.DidResume || len(r.TLS.PeerCertificates) != 1 || r.URL.RequestURI() != "/a?b" {
			w.WriteHeader(http.StatusTeapot)
		}
	})
	v := newVU(t, ca, ca.Client())
	require.Equal(t, true, v.js(fmt.Sprintf(`
		var good = 0, c;
		for (var i = 0; i < 20; i++) {
			c = connect("%s/a?b");
			if (c.ok && c.status === 200 && c.cause === "" && c.tcpMs > 0 && c.tlsMs > 0 && c.answerMs > 0) good++;
		}
		good === 20 && c.version === "TLS 1.3" && c.group !== "" && c.cipher !== ""`, s.URL)))
	require.Len(t, seen, 20)
	require.Zero(t, v.root.open.Load())
	require.Equal(t, map[string]int{
		"handshake_tcp": 20, "handshake_tls": 20, "handshake_answer": 20, "handshake_open": 20,
		"handshake_sent": 20, "handshake_received": 20, "handshake_tls_sent": 20, "handshake_tls_received": 20,
	}, v.drained())
}

// In TLS 1.3 a client is done before the server has checked its certificate: only the answer shows that it was
// accepted.
func TestWithoutTheRightCertificateTheServerRefuses(t *testing.T) {
	t.Parallel()
	ca, other := certificate.NewAuthority(t), certificate.NewAuthority(t)
	s := serve(t, ca, fine)
	cert, key := certificate.PEM(t, other.Client())
	v := newVU(t, ca, ca.Client())
	require.NoError(t, v.VU.Runtime().Set("foreign", map[string]string{"cert": cert, "key": key}))
	for _, c := range []struct{ name, params string }{
		{"none", "{certificate: null}"}, {"a foreign one", "{certificate: foreign}"},
	} {
		require.Equal(t, "client_certificate", v.js(fmt.Sprintf(`connect(%q, %s).cause`, s.URL, c.params)), c.name)
	}
	require.Equal(t, true, v.js(fmt.Sprintf(`connect(%q).ok`, s.URL)), "with the one of k6's options it goes on")
	require.Equal(t, 2, v.drained()["handshake_failed client_certificate"])

	v = newVU(t, ca, nil)
	cert, key = certificate.PEM(t, ca.Client())
	require.NoError(t, v.VU.Runtime().Set("mine", map[string]string{"cert": cert, "key": key}))
	require.Equal(t, true, v.js(fmt.Sprintf(`connect(%q, {certificate: mine}).ok && connect(%q, {certificate: mine}).ok`, s.URL, s.URL)))
}

func TestCauses(t *testing.T) {
	t.Parallel()
	ca := certificate.NewAuthority(t)
	client := ca.Client()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	for _, c := range []struct {
		name string
		url  func(t *testing.T) string
		want Cause
	}{
		{"nobody listens", func(*testing.T) string { return "https://" + gone.Addr().String() }, causeRefused},
		{"no such name", func(*testing.T) string { return "https://nowhere.invalid" }, causeDNS},
		{"a server of another authority", func(t *testing.T) string { return serve(t, certificate.NewAuthority(t), fine).URL }, causeServerCert},
		{"another version of TLS", func(t *testing.T) string {
			return raw(t, func(conn net.Conn) {
				_ = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{*ca.Server()}, MaxVersion: tls.VersionTLS12}).Handshake()
			})
		}, causeTLSAlert},
		{"no TLS at all", func(t *testing.T) string {
			return raw(t, func(conn net.Conn) { _, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) })
		}, causeTLS},
		{"silence", func(t *testing.T) string {
			return raw(t, func(conn net.Conn) { _, _ = conn.Read(make([]byte, 1<<16)); <-t.Context().Done() })
		}, causeTLSTimeout},
		{"hung up", func(t *testing.T) string { return raw(t, func(net.Conn) {}) }, causeTLSReset},
		{"reset", func(t *testing.T) string {
			return raw(t, func(conn net.Conn) {
				_, _ = conn.Read(make([]byte, 1))
				_ = conn.(*net.TCPConn).SetLinger(0)
			})
		}, causeTLSReset},
		{"an error status", func(t *testing.T) string {
			return serve(t, ca, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }).URL
		}, causeStatus},
		{"no answer", func(t *testing.T) string {
			return serve(t, ca, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }).URL
		}, causeTimeout},
		{"half an answer", func(t *testing.T) string {
			return serve(t, ca, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }).URL
		}, causeReset},
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
			require.Zero(t, v.root.open.Load(), "nothing stays open")
			require.Equal(t, 1, v.drained()["handshake_failed "+string(c.want)])
		})
	}
}

// raw starts a server that calls with on a connection, then closes it.
func raw(t *testing.T, with func(net.Conn)) string { return "https://" + sockets.Serve(t, with) }

func TestConnectionsThatStayOpen(t *testing.T) {
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
	v.js(fmt.Sprintf(`var held = []; for (var i = 0; i < 5; i++) held.push(connect(%q, {hold: true}))`, s.URL))
	require.EqualValues(t, 5, v.root.open.Load())
	require.Equal(t, true, v.js(`held.every((c) => c.ok && c.ask() && c.ask())`))
	require.Equal(t, 15, v.drained()["handshake_answer"])
	v.js(`held[0].close(); held[0].close()`)
	require.EqualValues(t, 4, v.root.open.Load())
	require.Equal(t, "false answer", v.js(`[held[0].ask(), held[0].cause].join(" ")`), "it is closed")
	v.js(`globalThis["break"]()`)
	require.Equal(t, "false status false", v.js(`[held[1].ask(), held[1].cause, held[1].ask()].join(" ")`))
	require.EqualValues(t, 3, v.root.open.Load())
	v.CancelContext()
	require.Eventually(t, func() bool { return v.root.open.Load() == 0 }, time.Minute, time.Millisecond, "an iteration leaves nothing open")
}

func TestInterruptedConnectionReturnsAtOnce(t *testing.T) {
	t.Parallel()
	ca := certificate.NewAuthority(t)
	asked := make(chan struct{}, 1)
	s := serve(t, ca, func(_ http.ResponseWriter, r *http.Request) { asked <- struct{}{}; <-r.Context().Done() })
	v := newVU(t, ca, ca.Client())
	go func() {
		<-asked
		v.CancelContext()
	}()
	began := time.Now()
	require.Equal(t, "interrupted", v.js(fmt.Sprintf(`connect(%q, {timeout: "10m"}).cause`, s.URL)))
	require.Less(t, time.Since(began), time.Minute)
}

func TestWrongUsageThrows(t *testing.T) {
	t.Parallel()
	ca := certificate.NewAuthority(t)
	v := newVU(t, ca, nil)
	for script, says := range map[string]string{
		`connect("http://h")`:                                              "must begin with https://",
		`connect("https://")`:                                              "must begin with https://",
		`connect("https://h", {timeout: "soon"})`:                          "timeout is soon",
		`connect("https://h", {timeout: 0})`:                               "timeout is 0",
		`connect("https://h", {kept: true})`:                               `there is no parameter "kept"`,
		`connect("https://h", {certificate: {cert: "x", key: "y"}})`:       "no pair of certificate and key",
		`connect("https://h", {certificate: {cert: undefined, key: "y"}})`: "no pair of certificate and key",
	} {
		_, err := v.VU.Runtime().RunString(script)
		require.ErrorContains(t, err, says, script)
	}
	rt := modulestest.NewRuntime(t)
	exports := New().NewModuleInstance(rt.VU).Exports()
	require.NoError(t, rt.VU.Runtime().Set("connect", exports.Named["connect"]))
	_, err := rt.VU.Runtime().RunString(`connect("https://h")`)
	require.ErrorContains(t, err, "only inside a VU")
}

// The words of crypto/tls are what isCertificateAlert compares with.
func TestAlertsHaveWords(t *testing.T) {
	t.Parallel()
	for _, a := range certificateAlerts {
		require.NotContains(t, a.Error(), "alert(", "crypto/tls has no words for %d", uint8(a))
	}
	require.Equal(t, causeServerCert, tlsCause(context.Background(), x509.HostnameError{Certificate: &x509.Certificate{}, Host: "h"}, causeTLSTimeout, causeTLSReset, causeTLS))
}

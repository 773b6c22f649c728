package proxy

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http/httpproxy"

	"github.com/sse-soak/sse-soak/test/sockets"
)

func mustParse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	require.NoError(t, err)
	return u
}

// The tests of package httpproxy cover NO_PROXY. This test covers the values that are passed to the package.
func TestForChoosesTheProxyByTheURL(t *testing.T) {
	t.Parallel()
	choose := Chooser((&httpproxy.Config{
		HTTPProxy: "joe:sesame@cache.test:3128", HTTPSProxy: "https://secure.test", NoProxy: "inside.test,10.0.0.0/8",
	}).ProxyFunc())
	for target, want := range map[string]struct {
		address, name string
		forwards      bool
	}{
		"http://a.test":           {"cache.test:3128", "http://cache.test:3128", true},
		"https://a.test":          {"secure.test:443", "https://secure.test", false},
		"http://x.inside.test":    {"x.inside.test:80", "", false},
		"https://10.1.2.3":        {"10.1.2.3:443", "", false},
		"http://localhost:8080":   {"localhost:8080", "", false},
		"https://127.0.0.1":       {"127.0.0.1:443", "", false},
		"http://[::1]":            {"[::1]:80", "", false},
		"http://bücher.test:8080": {"cache.test:3128", "http://cache.test:3128", true},
	} {
		p, err := choose.For(mustParse(t, target))
		require.NoError(t, err)
		assert.Equal(t, want.address, p.Address(mustParse(t, target)), target)
		assert.Equal(t, want.forwards, p.Forwards(), target)
		if want.name == "" {
			assert.Nil(t, p, target)
			assert.Empty(t, p.ErrorSuffix())
			continue
		}
		assert.Equal(t, want.name, p.String(), target)
	}
	for _, kind := range []string{"ftp://x", "socks4://x", "http:x"} {
		_, err := Chooser(func(*url.URL) (*url.URL, error) { return mustParse(t, kind), nil }).For(mustParse(t, "https://a.test"))
		require.ErrorContains(t, err, "set HTTPS_PROXY to http://HOST:PORT, or to https:// or socks5:// with a host")
	}
}

// For a variable that is not a URL, net/http would connect directly or to a host that is a part of the value.
func TestInvalidProxyVariableIsAnError(t *testing.T) {
	t.Parallel()
	for _, invalid := range []string{"http://joe:pass/word@cache.test:3128", "http://cache.test:31x", "http://", "joe:p%@cache.test"} {
		err := checkVariable(&httpproxy.Config{HTTPProxy: invalid, NoProxy: "inside.test"}, mustParse(t, "http://a.test"))
		require.ErrorContains(t, err, "HTTP_PROXY must be the URL of a proxy", invalid)
		require.NotContains(t, err.Error(), "joe")
		for _, target := range []string{"https://a.test", "http://inside.test", "http://localhost:8080"} {
			require.NoError(t, checkVariable(&httpproxy.Config{HTTPProxy: invalid, NoProxy: "inside.test"}, mustParse(t, target)), target)
		}
	}
	for _, valid := range []string{"", "cache.test:3128", "http://joe:pass%2Fword@cache.test", "socks5://cache.test"} {
		require.NoError(t, checkVariable(&httpproxy.Config{HTTPSProxy: valid}, mustParse(t, "https://a.test")), valid)
	}
}

// serveSOCKS starts a SOCKS 5 proxy (RFC 1928, 1929). The proxy sends the user and the destination of each request on
// the channel requests.
func serveSOCKS(t *testing.T, password string) (address string, requests <-chan string) {
	t.Helper()
	out := make(chan string, 1)
	return sockets.Serve(t, func(c net.Conn) {
		b := make([]byte, 300)
		read := func(n int) []byte { _, _ = io.ReadFull(c, b[:n]); return b[:n] }
		read(int(read(2)[1]))
		_, _ = c.Write([]byte{5, 2})
		user := string(read(int(read(2)[1])))
		if got := string(read(int(read(1)[0]))); got != password {
			_, _ = c.Write([]byte{1, 1})
			return
		}
		_, _ = c.Write([]byte{1, 0})
		host := string(read(int(read(5)[4])))
		port := read(2)
		_, _ = c.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
		out <- user + "@" + host + ":" + string('0'+port[1]/10) + string('0'+port[1]%10)
		_, _ = c.Write([]byte("hello"))
	}), out
}

func reach(t *testing.T, proxyURL, target string) (net.Conn, error) {
	t.Helper()
	p, err := Chooser(func(*url.URL) (*url.URL, error) { return mustParse(t, proxyURL), nil }).For(mustParse(t, target))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	raw, err := new(net.Dialer).DialContext(ctx, "tcp", p.Address(mustParse(t, target)))
	require.NoError(t, err)
	t.Cleanup(func() { _ = raw.Close() })
	return p.Reach(ctx, raw, func(c net.Conn, name string) *tls.Conn { return tls.Client(c, &tls.Config{ServerName: name}) })
}

// The connection must be the dialed one, so that the poller can read it.
func TestSOCKSProxyResolvesTheNameOfTheServer(t *testing.T) {
	t.Parallel()
	address, requests := serveSOCKS(t, "pass")
	conn, err := reach(t, "socks5://joe:pass@"+address, "http://service.test/")
	require.NoError(t, err)
	require.IsType(t, (*net.TCPConn)(nil), conn)
	require.Equal(t, "joe@service.test:80", <-requests)
	response, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Equal(t, "hello", string(response))

	address, _ = serveSOCKS(t, "another")
	_, err = reach(t, "socks5h://joe:pass@"+address, "http://service.test/")
	var fault *Error
	require.ErrorAs(t, err, &fault)
	require.ErrorContains(t, err, "the proxy socks5h://"+address+" did not connect to service.test:80: ")
	require.NotContains(t, err.Error(), "joe")
}

// serveCONNECT starts a proxy that responds to CONNECT with a status and optional header fields. If the status is a
// success, it forwards data.
func serveCONNECT(t *testing.T, status string) (address string) {
	t.Helper()
	return sockets.Serve(t, func(c net.Conn) {
		r, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 "+status+"\r\n\r\n")
		if status[0] != '2' {
			return
		}
		server, err := net.Dial("tcp", r.Host)
		if err != nil {
			return
		}
		go func() { _, _ = io.Copy(c, server) }()
		_, _ = io.Copy(server, c)
		_ = server.Close()
	})
}

// RFC 9110, section 9.3.6: any 2xx means that the tunnel exists.
func TestStatusOfCONNECT(t *testing.T) {
	t.Parallel()
	service := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(service.Close)
	for status, accepted := range map[string]bool{"200 OK": true, "201 Created": true, "204 No Content": true, "299 Fine": true, "300 Many": false, "403 Forbidden": false} {
		proxyURL := "http://" + serveCONNECT(t, status)
		_, reachErr := reach(t, proxyURL, service.URL)
		transport := Chooser(func(*url.URL) (*url.URL, error) { return mustParse(t, proxyURL), nil }).Transport(service.Client().Transport.(*http.Transport).Clone())
		resp, err := (&http.Client{Transport: transport, Timeout: 5 * time.Second}).Get(service.URL)
		if err == nil {
			_ = resp.Body.Close()
		}
		for _, err := range []error{reachErr, err} {
			if accepted {
				assert.NoError(t, err, status)
			} else {
				assert.ErrorContains(t, err, "refused CONNECT "+service.Listener.Addr().String()+" with "+status)
			}
		}
	}
}

// A client ignores Content-Length and Transfer-Encoding in a successful response to CONNECT (RFC 9110, section 9.3.6).
func TestTunnelHasNoFraming(t *testing.T) {
	t.Parallel()
	service := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(service.Close)
	for _, field := range []string{"Content-Length: 5", "Transfer-Encoding: chunked"} {
		conn, err := reach(t, "http://"+serveCONNECT(t, "200 OK\r\n"+field), service.URL)
		require.NoError(t, err, field)
		require.NoError(t, tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(t.Context()), field) // #nosec G402 -- a test server
	}
	address := serveCONNECT(t, "200 OK\r\nX-Long: "+strings.Repeat("x", maxHead))
	_, err := reach(t, "http://"+address, service.URL)
	require.ErrorContains(t, err, "the proxy http://"+address+" answered CONNECT "+service.Listener.Addr().String()+" with a header of over 65536 bytes")
}

func TestReasonOfARefusal(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		"":                           "",
		"  no\nmore":                 "no",
		`{"title":"t"}`:              "t",
		`{"title":"t","detail":"d"}`: "d",
		"<html><head><TITLE>\n ERROR: no\n  way </TITLE>": "ERROR: no way",
		"<html><title>403 forbidden</title>":              "",
		"<html>":                                          "",
		strings.Repeat("x", 400):                          strings.Repeat("x", 300) + "…",
	} {
		assert.Equal(t, want, reasonOf(strings.NewReader(body), "403 Forbidden"), body)
		if strings.HasPrefix(body, "<") {
			assert.Empty(t, Sentence(strings.NewReader(body)), body)
		}
	}
}

func TestErrorsOfAConnectedProxyNameTheProxy(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	client := &http.Client{Transport: Chooser(func(*url.URL) (*url.URL, error) { return mustParse(t, "http://p.test:1"), nil }).Transport(&http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			local, remote := net.Pipe()
			_ = remote.Close()
			return local, nil
		},
	})}
	_, err := client.Get("http://service.test/")
	require.ErrorContains(t, err, "(through the proxy http://p.test:1)")
	client.Transport = Chooser(func(*url.URL) (*url.URL, error) { return nil, broken }).Transport(&http.Transport{})
	_, err = client.Get("http://service.test/")
	require.ErrorIs(t, err, broken)
}

// A remedy must fit the fault: --ca makes neither an expired certificate nor one of another host valid.
func TestRemediesForCertificates(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"pass --ca FILE with the certificate of the issuing CA, or --insecure": &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}},
		"; renew the certificate, use its host in the URL, or pass --insecure": &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired}},
		"); renew the certificate, use its host in the URL, or pass":           &tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{}, Host: "a"}},
		"the server requires a client certificate (remote error":               errors.New("remote error: tls: certificate required"),
	} {
		require.ErrorContains(t, WithRemedy(err), want)
	}
}

// On a machine without IPv6 addresses a dial to [::1] fails with the same error as a dial without free ports.
func TestLackOfIPv6IsNotALackOfPorts(t *testing.T) {
	previous := HasIPv6
	t.Cleanup(func() { HasIPv6 = previous })
	for _, c := range []struct {
		hasIPv6 bool
		address string
		errno   syscall.Errno
		want    bool
	}{
		{false, "::1", syscall.EADDRNOTAVAIL, true},
		{true, "::1", syscall.EADDRNOTAVAIL, false},
		{false, "127.0.0.1", syscall.EADDRNOTAVAIL, false},
		{false, "::1", syscall.ECONNREFUSED, false},
	} {
		HasIPv6 = func() bool { return c.hasIPv6 }
		err := error(&net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.ParseIP(c.address), Port: 80}, Err: os.NewSyscallError("connect", c.errno)})
		require.Equal(t, c.want, LacksIPv6(err), c)
	}
	HasIPv6 = func() bool { return false }
	err := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv6loopback, Port: 80}, Err: os.NewSyscallError("connect", syscall.EADDRNOTAVAIL)}
	require.EqualError(t, WithRemedy(err), "this machine has no IPv6 address (dial tcp [::1]:80: connect: cannot assign requested address); "+
		"use an IPv4 address of the service, or enable IPv6")
}

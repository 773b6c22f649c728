package main

import (
	"crypto/tls"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/certificate"
)

// tlsFlags returns the flags of a backend with the certificates of an authority.
func tlsFlags(t *testing.T, ca *certificate.Authority) []string {
	t.Helper()
	dir := t.TempDir()
	cert, key := certificate.PEM(t, ca.Server())
	authority, _ := certificate.PEM(t, ca.Certificate)
	for name, text := range map[string]string{"cert": cert, "key": key, "ca": authority} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return []string{"--tls-cert=" + dir + "/cert", "--tls-key=" + dir + "/key", "--tls-client-ca=" + dir + "/ca"}
}

// Over TLS the service supports noops, forcedisconnect with the terminator, resume and takeover. It detects disconnects
// and slow clients, and rejects a client without a certificate.
func TestTLS(t *testing.T) {
	t.Parallel()
	ca := certificate.NewAuthority(t)
	s := startTest(t, append(tlsFlags(t, ca), "--noop-interval=50ms", "--write-timeout=300ms", "--max-pending=1000", "--backend-fault=truncate:id=cut")...)
	client := &tls.Config{RootCAs: ca.Pool, Certificates: []tls.Certificate{*ca.Client()}, ServerName: "127.0.0.1", NextProtos: []string{"h2", "http/1.1"}}
	open := func(id string, headers ...string) *stream {
		conn := tls.Client(dial(t, s.addr), client)
		c := openOn(t, conn, id, headers...)
		require.Equal(t, 200, c.resp.StatusCode)
		require.Equal(t, "http/1.1", conn.ConnectionState().NegotiatedProtocol)
		return c
	}
	a := open("a")
	require.Equal(t, numbersFrom(1, 4), a.numbers(4))
	var row ledgerRow
	s.hub.call(func() { row, _ = s.hub.forceDisconnect("a") })
	events, err := a.readAll()
	require.NoError(t, err)
	require.Equal(t, row.Sent, uint64(4+len(events)))

	b := open("b")
	b.numbers(2)
	b.conn.Close()
	eventually(t, "the stream has ended", func() bool { return s.hub.openStreams() == 0 })
	require.Equal(t, []uint64{3, 4, 5}, open("b", resumeAfter(2)).numbers(3))
	require.Equal(t, []uint64{5, 6, 7}, open("b", resumeAfter(4)).numbers(3), "a resume must replace the open stream")

	cut := open("cut")
	require.Equal(t, []uint64{1, 2}, cut.numbers(2))
	_, err = cut.readAll()
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)

	open("unread")
	eventually(t, "the slow stream is closed", func() (closed bool) {
		s.hub.call(func() {
			d := s.hub.devices["unread"]
			if closed = !d.open; !closed && d.queue == nil {
				s.hub.send("unread", eventBody("", make([]byte, maxBody)))
			}
		})
		return closed
	})
	s.hub.call(func() { row = s.hub.devices["unread"].row() })
	require.Equal(t, "slow", row.Closed)

	untrusted := tls.Client(dial(t, s.addr), &tls.Config{RootCAs: ca.Pool, ServerName: "127.0.0.1"})
	_, err = untrusted.Write([]byte("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"))
	if err == nil {
		_, err = untrusted.Read(make([]byte, 1))
	}
	require.ErrorContains(t, err, "certificate")
	require.NoError(t, s.drain(t.Context()))
}

// With TLS, the service requests a client certificate. The health check has no certificate, and succeeds as soon as the
// service requests one.
func TestHealthcheckReportsTheService(t *testing.T) {
	t.Parallel()
	for _, secure := range []bool{false, true} {
		dir := t.TempDir()
		settings := []string{"--listen=unix:" + filepath.Join(dir, "backend.sock")}
		if secure {
			settings = append(settings, tlsFlags(t, certificate.NewAuthority(t))...)
		}
		check := func() (code int, output string) {
			var errs strings.Builder
			return run(append(settings, "--healthcheck"), noEnv, nil, io.Discard, &errs), errs.String()
		}
		code, output := check()
		require.Equal(t, exitError, code, "the health check must fail without a service")
		require.Contains(t, output, "check the health of unix:"+dir)
		signals := make(chan os.Signal, 1)
		exitCodes := make(chan int)
		go func() { exitCodes <- run(settings, noEnv, signals, io.Discard, io.Discard) }()
		eventually(t, "the service is healthy", func() bool { code, _ := check(); return code == exitOK })
		signals <- os.Interrupt
		require.Equal(t, exitOK, <-exitCodes)
	}
}

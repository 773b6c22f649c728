package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// certificate makes a self-signed certificate that is its own authority, and writes it to files that flags can name.
func certificate(t *testing.T) (certFile, keyFile string, pair tls.Certificate, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
	dir := t.TempDir()
	certFile, keyFile = dir+"/cert.pem", dir+"/key.pem"
	require.NoError(t, os.WriteFile(certFile, certPEM, 0o600))
	require.NoError(t, os.WriteFile(keyFile, keyPEM, 0o600))
	pair, err = tls.X509KeyPair(certPEM, keyPEM)
	require.NoError(t, err)
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(certPEM)
	return certFile, keyFile, pair, pool
}

// Under TLS the service behaves the same: noops, forcedisconnect with the terminator, a client that disconnects,
// resume, and a client that never reads.
func TestTLS(t *testing.T) {
	t.Parallel()
	cert, key, pair, pool := certificate(t)
	s := startTest(t, "--tls-cert="+cert, "--tls-key="+key, "--tls-client-ca="+cert,
		"--noop-interval=50ms", "--write-timeout=300ms", "--max-pending=1000",
		"--backend-fault=truncate:id=cut")
	client := &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}, ServerName: "127.0.0.1", NextProtos: []string{"h2", "http/1.1"}}
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
	eventually(t, "the client is gone", func() bool { return s.hub.openStreams() == 0 })
	require.Equal(t, []uint64{3, 4, 5}, open("b", resumeAfter(2)).numbers(3))
	require.Equal(t, []uint64{5, 6, 7}, open("b", resumeAfter(4)).numbers(3), "takeover")

	cut := open("cut")
	require.Equal(t, []uint64{1, 2}, cut.numbers(2))
	_, err = cut.readAll()
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)

	open("deaf")
	eventually(t, "it is cut off", func() (closed bool) {
		s.hub.call(func() {
			d := s.hub.devices["deaf"]
			if closed = !d.open; !closed && d.queue == nil {
				s.hub.send("deaf", eventBody("", make([]byte, maxBody)))
			}
		})
		return closed
	})
	s.hub.call(func() { row = s.hub.devices["deaf"].row() })
	require.Equal(t, "slow", row.Closed)

	untrusted := tls.Client(dial(t, s.addr), &tls.Config{RootCAs: pool, ServerName: "127.0.0.1"})
	_, err = untrusted.Write([]byte("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"))
	if err == nil {
		_, err = untrusted.Read(make([]byte, 1))
	}
	require.ErrorContains(t, err, "certificate")
	require.NoError(t, s.drain(t.Context()))
}

// Package certificate issues test certificates that are valid for one day.
package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"
)

// An Authority signs certificates.
type Authority struct {
	*tls.Certificate // certificate of the authority itself

	Pool *x509.CertPool // contains only the certificate of the authority
	t    testing.TB
}

// NewAuthority returns a new authority.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t, Pool: x509.NewCertPool()}
	a.Certificate = a.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	a.Pool.AddCert(a.Leaf)
	return a
}

// Client returns a new certificate for a client.
func (a *Authority) Client() *tls.Certificate {
	a.t.Helper()
	return a.issue(&x509.Certificate{Subject: pkix.Name{CommonName: "test client"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

// Server returns a new certificate for a server at 127.0.0.1 and at the given names.
func (a *Authority) Server(names ...string) *tls.Certificate {
	a.t.Helper()
	return a.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "test server"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: names,
	})
}

// issue returns a certificate with a new key. The first one belongs to the authority, which signs all later ones.
// Subjects must differ, because OpenSSL treats a certificate whose subject equals its issuer as self-signed.
func (a *Authority) issue(template *x509.Certificate) *tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	parent, signer := template, any(key)
	if a.Certificate != nil {
		parent, signer = a.Leaf, a.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// PEM returns a certificate and its key in PEM format.
func PEM(t testing.TB, pair *tls.Certificate) (cert, key string) {
	t.Helper()
	raw, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
}

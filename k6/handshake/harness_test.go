package handshake

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.k6.io/k6/v2/js/modulestest"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/lib/netext"
	"go.k6.io/k6/v2/lib/types"
	"go.k6.io/k6/v2/metrics"
)

// A vu is a virtual user with the module, as a script uses it.
type vu struct {
	*modulestest.Runtime
	t       *testing.T
	root    *rootModule
	state   *lib.State
	samples chan metrics.SampleContainer
}

// newVU returns a virtual user that trusts ca and, unless client is nil, presents that certificate.
func newVU(t *testing.T, ca *authority, client *tls.Certificate) *vu {
	t.Helper()
	rt := modulestest.NewRuntime(t)
	v := &vu{Runtime: rt, t: t, root: new(rootModule), samples: make(chan metrics.SampleContainer, 1000)}
	for name, value := range v.root.NewModuleInstance(rt.VU).Exports().Named {
		require.NoError(t, rt.VU.Runtime().Set(name, value))
	}
	conf := &tls.Config{RootCAs: ca.pool}
	if client != nil {
		conf.Certificates = []tls.Certificate{*client}
	}
	v.state = &lib.State{
		Dialer: netext.NewDialer(net.Dialer{}, netext.NewResolver(net.LookupIP, 0, types.DNSfirst, types.DNSpreferIPv4)),
		Tags:   lib.NewVUStateTags(rt.VU.InitEnvField.Registry.RootTagSet()), Samples: v.samples, TLSConfig: conf,
	}
	rt.MoveToVUContext(v.state)
	return v
}

func (v *vu) js(script string) any {
	v.t.Helper()
	value, err := v.VU.Runtime().RunString(script)
	require.NoError(v.t, err)
	return value.Export()
}

// drained counts the samples so far, by metric and, of failures, by cause.
func (v *vu) drained() map[string]int {
	out := map[string]int{}
	v.drain(func(name string, _ float64) { out[name]++ })
	return out
}

// sums adds up their values.
func (v *vu) sums() map[string]float64 {
	out := map[string]float64{}
	v.drain(func(name string, value float64) { out[name] += value })
	return out
}

func (v *vu) drain(each func(name string, value float64)) {
	for {
		select {
		case container := <-v.samples:
			for _, s := range container.GetSamples() {
				name := s.Metric.Name
				if cause, ok := s.Tags.Get("cause"); ok {
					name += " " + cause
				}
				each(name, s.Value)
			}
		default:
			return
		}
	}
}

// An authority signs certificates that are good for an hour.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, pool: x509.NewCertPool()}
	pair := a.issue(&x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	a.cert, a.key = pair.Leaf, pair.PrivateKey.(*ecdsa.PrivateKey)
	a.pool.AddCert(a.cert)
	return a
}

// issue signs a template; the first one, the authority's own, signs itself.
func (a *authority) issue(template *x509.Certificate) *tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	template.SerialNumber, template.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: "test"}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	require.NoError(a.t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(a.t, err)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func (a *authority) client() *tls.Certificate {
	return a.issue(&x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

func (a *authority) server() *tls.Certificate {
	return a.issue(&x509.Certificate{
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	})
}

// inPEM returns the pair as a script reads it from two files.
func inPEM(t *testing.T, pair *tls.Certificate) (cert, key string) {
	t.Helper()
	raw, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
}

// serve starts a server that wants a certificate of ca from its clients.
func serve(t *testing.T, ca *authority, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := unstarted(ca, handler)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func unstarted(ca *authority, handler http.HandlerFunc) *httptest.Server {
	s := httptest.NewUnstartedServer(handler)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{*ca.server()}, ClientCAs: ca.pool, ClientAuth: tls.RequireAndVerifyClientCert}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	return s
}

func fine(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("fine")) }

//go:build e2e

package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/untested"
)

// sharedCertificates creates the certificates of `make certs` once, and returns their folder. The server certificate is
// also valid for the server side of a wire.
var sharedCertificates = sync.OnceValues(func() (folder string, err error) {
	folder = filepath.Join(sharedFolder, "certs")
	if out, err := exec.Command(filepath.Join(root, "infra", "compose", "certs"), folder, serverAddress).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return folder, nil
})

func certificates(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		untested.SkipMissing(t, "openssl is not installed; run `apt-get install openssl`")
	}
	folder, err := sharedCertificates()
	require.NoError(t, err)
	return folder
}

func backendWithTLS(t *testing.T, certs string, env ...string) (url string) {
	t.Helper()
	url = backend(t, append(env, tlsVariables(certs)...)...)
	return strings.Replace(url, "http://127.0.0.1", "https://localhost", 1)
}

// tlsVariables returns the variables of a backend with TLS.
func tlsVariables(certs string) []string {
	return []string{"TLS_CERT=" + filepath.Join(certs, "server", "server.pem"), "TLS_KEY=" + filepath.Join(certs, "server", "server-key.pem")}
}

func TestHandshake(t *testing.T) {
	t.Parallel()
	r := smoke(t, "handshake", "--certs", certificates(t), "--connections", "20,80")
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.Equal(t, "100 tried, 100 good, 0 (0.00 %) failed", factOf(v, "connections"))
	require.Equal(t, "8 connections open at the same time", factOf(v, "peak"))
	scales := section(v, "Scales").Rows
	require.Equal(t, []string{"20", "80"}, []string{scales[0][0], scales[1][0]})
	phases := section(v, "Phases, ms").Rows
	for _, row := range section(v, "Bytes").Rows {
		share, err := strconv.ParseFloat(strings.TrimSuffix(row[4], " %"), 64)
		require.NoError(t, err)
		require.InDelta(t, 100, share, 2, "received share of the expected bytes in %%; a response needs one or two TLS records: %s", row)
	}
	require.Len(t, phases, 6, "each of the two scales must have the phases TCP, TLS and response")
	require.Equal(t, "80", phases[5][2])
}

func TestHandshakeLimitsItsRateAndMean(t *testing.T) {
	t.Parallel()
	v := smoke(t, "handshake", "--certs", certificates(t), "--connections", "60", "--rate-limit", "20", "--min-rate", "30", "--max-mean-ms", "0.01").verdict()
	require.NotEqual(t, verdict.Pass, v.Verdict)
	require.Regexp(t, `60 connections: (1?\d|20|21)(\.\d)?/s \(limit: at least 30\)`, reasons(v))
	require.Contains(t, reasons(v), "(limit: at most 0.01 ms)")
}

func TestHandshakeHoldsConnections(t *testing.T) {
	t.Parallel()
	r := smoke(t, "handshake", "--certs", certificates(t), "--connections", "50", "--hold-seconds", "3", "--ask-seconds", "1")
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.Equal(t, "50 connections open at the same time", factOf(v, "peak"))
	require.Equal(t, "50", section(v, "Bytes").Rows[0][0])
	memory := section(v, "Memory of open connections").Rows
	require.Equal(t, []string{"runners, together", "backend"}, []string{memory[0][0], memory[1][0]})
	require.NotEmpty(t, section(v, "Memory over time").Rows)
	for _, c := range v.ScriptChecks {
		if c.Name == "open to the end" {
			require.EqualValues(t, 50, c.Passes)
		}
	}
}

// mutualTLSService starts a service that accepts clients with a certificate of its authority. handler handles the
// requests of other clients.
func mutualTLSService(t *testing.T, certs string, auth tls.ClientAuthType, handler http.HandlerFunc) (url string) {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(certs, "server", "server.pem"), filepath.Join(certs, "server", "server-key.pem"))
	require.NoError(t, err)
	ca, err := os.ReadFile(filepath.Join(certs, "ca.pem"))
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(ca))
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if chain := r.TLS.PeerCertificates; len(chain) > 0 {
			if _, err := chain[0].Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err == nil {
				return
			}
		}
		handler(w, r)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: auth, ClientCAs: pool}
	s.StartTLS()
	t.Cleanup(s.Close)
	return strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
}

// refuseFirst returns a handler that refuses the first n requests.
func refuseFirst(n int64) http.HandlerFunc {
	var requests atomic.Int64
	return func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1) <= n {
			w.WriteHeader(http.StatusForbidden)
		}
	}
}

// An untrusted client counts as accepted if it receives a response with a status other than 400, 401 or 403. A
// connection without a response is inconclusive. The run also tries untrusted certificates while its connections are
// open.
func TestHandshakeReportsUntrustedClients(t *testing.T) {
	t.Parallel()
	certs := certificates(t)
	certificate, err := tls.LoadX509KeyPair(filepath.Join(certs, "clients", "client-1.pem"), filepath.Join(certs, "clients", "client-1-key.pem"))
	require.NoError(t, err)
	requireIssuerName := func(w http.ResponseWriter, r *http.Request) {
		if chain := r.TLS.PeerCertificates; len(chain) == 0 || chain[0].Issuer.String() != certificate.Leaf.Issuer.String() {
			w.WriteHeader(http.StatusForbidden)
		}
	}
	for name, c := range map[string]struct {
		auth     tls.ClientAuthType
		handler  http.HandlerFunc
		args     []string
		want     verdict.Outcome
		wantText string
	}{
		"reset":                               {tls.RequestClientCert, func(w http.ResponseWriter, _ *http.Request) { reset(w) }, nil, verdict.Invalid, "it is unknown whether a client without a certificate is refused: the server closed the connection before the response"},
		"accepted with 503":                   {tls.RequestClientCert, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, nil, verdict.Fail, "a client without a certificate received a response"},
		"accepted with a foreign certificate": {tls.RequireAnyClientCert, func(http.ResponseWriter, *http.Request) {}, nil, verdict.Fail, "a client with a foreign certificate received a response"},
		"accepted by the name of the issuer":  {tls.RequestClientCert, requireIssuerName, nil, verdict.Fail, "a client with a certificate of another authority of the same name received a response: "},
		"accepted during the hold":            {tls.RequestClientCert, refuseFirst(3), []string{"--connections", "50", "--hold-seconds", "2", "--ask-seconds", "1"}, verdict.Fail, "a client without a certificate received a response: "},
		"refused by 400":                      {tls.RequestClientCert, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(400) }, nil, verdict.Pass, "untrusted certificates were refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := mutualTLSService(t, certs, c.auth, c.handler)
			r := smoke(t, "handshake", append([]string{"--certs", certs, "--backend-url", url, "--connections", "20"}, c.args...)...)
			v := r.verdict()
			require.Equal(t, c.want, v.Verdict, r.out.String())
			require.Contains(t, reasons(v), c.wantText)
		})
	}
}

// If the certificates are missing, or the server has another authority, no connection succeeds, and soak reports the
// cause.
func TestHandshakeNamesTheCause(t *testing.T) {
	t.Parallel()
	certs := filepath.Join(t.TempDir(), "certs")
	out, err := exec.Command(filepath.Join(root, "infra", "compose", "certs"), certs).CombinedOutput()
	require.NoError(t, err, string(out))
	r := smoke(t, "handshake", "--certs", certs, "--backend-url", backendWithTLS(t, certificates(t)))
	require.Equal(t, 2, r.end())
	require.Contains(t, r.out.String(), "certificate signed by unknown authority")

	r = smoke(t, "handshake", "--certs", t.TempDir())
	require.Equal(t, 2, r.end())
	require.Contains(t, r.out.String(), "ca.pem is missing; create the certificates with `make certs`")
}

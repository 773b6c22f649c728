package nginx

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/address"
	"github.com/sse-soak/sse-soak/test/untested"
)

const token = "T0ken-._~+/="

// site returns the configuration of the stack's nginx. The backends, Grafana and Prometheus respond with their name,
// and the path and the token of the request.
func site(t *testing.T, backends int) Config {
	t.Helper()
	c := newConfig(t)
	c.addSockets(backends)
	c.Site = &Site{
		AccessLog: filepath.Join(c.Dir, "access.log"), Token: token, Internal: address.Reserve(t), Grafana: address.Reserve(t), Prometheus: address.Reserve(t),
		PasswordFile: filepath.Join(c.Dir, "htpasswd"),
	}
	require.NoError(t, os.WriteFile(c.Site.PasswordFile, []byte("prometheus:{PLAIN}secret\n"), 0o600))
	answer := func(name string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "%s %s %s", name, r.URL.Path, r.Header.Get("Authorization"))
		}
	}
	for n, socket := range c.Sockets {
		serve(t, "unix", socket, answer(fmt.Sprintf("backend-%d", n+1)))
	}
	serve(t, "tcp", c.Site.Grafana, answer("grafana"))
	serve(t, "tcp", c.Site.Prometheus, answer("prometheus"))
	return c
}

func request(t *testing.T, method, url, authorization string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	require.NoError(t, err)
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(b)
}

func TestPrivatePathsNeedTheToken(t *testing.T) {
	t.Parallel()
	c := site(t, 1)
	start(t, c)
	outside := "http://" + c.Listen
	for _, path := range []string{
		"/metrics", "/event/ledger", "/fault", "/event/send?id=a", "/event/broadcast", "/", "/nginx-status", "/backend-1/metrics",
		"/metrics/", "/%6detrics", "//metrics", "/x/../metrics", "/event/ledger?prefix=a", "/event//ledger", "/event/%6cedger",
		"/default/upload", "/default/services/x/status", "/httpbin/get",
	} {
		for _, wrongToken := range []string{"", "Bearer", "Bearer " + token + "x", "Bearer x" + token, "Bearer " + strings.ToUpper(token), "Basic " + token} {
			status, body := request(t, http.MethodGet, outside+path, wrongToken)
			require.Equal(t, http.StatusUnauthorized, status, "%s with %q: %s", path, wrongToken, body)
			require.Contains(t, body, "BACKEND_TOKEN", "the response must name the setting")
		}
	}
	status, body := request(t, http.MethodGet, outside+"/metrics", "bearer "+token)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "backend-1 /metrics bearer "+token, body)
	for _, path := range []string{"/default/upload", "/default/services/x/status", "/httpbin/get"} {
		status, _ := request(t, http.MethodGet, outside+path, "Bearer "+token)
		require.Equal(t, http.StatusOK, status, path)
	}
	for _, path := range []string{"/event/connect?id=a", "/healthz", "/readyz"} {
		status, _ := request(t, http.MethodGet, outside+path, "")
		require.Equal(t, http.StatusOK, status, path)
	}
}

func TestOpenDisconnectNeedsItsSetting(t *testing.T) {
	t.Parallel()
	for _, open := range []bool{false, true} {
		c := site(t, 1)
		c.Site.OpenDisconnect = open
		start(t, c)
		_, body := request(t, http.MethodDelete, "http://"+c.Listen+"/event/forcedisconnect?id=a", "")
		require.Equal(t, open, strings.HasSuffix(body, " Bearer "+token), body)
	}
}

func TestGrafanaAndPrometheusBehindNginx(t *testing.T) {
	t.Parallel()
	c := site(t, 1)
	start(t, c)
	outside := "http://" + c.Listen
	_, body := request(t, http.MethodGet, outside+"/grafana/d/soak", "")
	require.Equal(t, "grafana /grafana/d/soak ", body)
	status, _ := request(t, http.MethodGet, outside+"/prometheus/api/v1/query", "Bearer "+token)
	require.Equal(t, http.StatusUnauthorized, status)
	status, body = request(t, http.MethodGet, strings.Replace(outside, "//", "//prometheus:secret@", 1)+"/prometheus/api/v1/query", "")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "prometheus /prometheus/api/v1/query ", body, "nginx must not forward the password")

	inside := "http://" + c.Site.Internal
	_, body = request(t, http.MethodGet, inside+"/nginx-status", "")
	require.Contains(t, body, "Active connections")
	_, body = request(t, http.MethodGet, inside+"/backend-1/metrics", "")
	require.Equal(t, "backend-1 /metrics ", body)
	status, _ = request(t, http.MethodGet, inside+"/event/ledger", "")
	require.Equal(t, http.StatusNotFound, status)
}

func TestLogIsJSONWithBackendTimes(t *testing.T) {
	t.Parallel()
	c := site(t, 1)
	start(t, c)
	request(t, http.MethodGet, "http://"+c.Listen+`/event/connect?id=a"b`, "")
	var log []byte
	require.Eventually(t, func() bool {
		log, _ = os.ReadFile(c.Site.AccessLog)
		return len(log) > 0
	}, time.Minute, 50*time.Millisecond, "nginx must log the request")
	var line struct {
		Method, URI, ID string
		Status          int
		Seconds         float64
		Upstream        string `json:"upstream_seconds"`
	}
	require.NoError(t, json.Unmarshal(log, &line), "%s", log)
	require.Equal(t, "/event/connect", line.URI)
	require.Equal(t, http.StatusOK, line.Status)
	require.NotEmpty(t, line.Upstream)
	require.NotContains(t, string(log), token)
}

func TestIDStaysOnItsBackend(t *testing.T) {
	t.Parallel()
	c := site(t, 3)
	start(t, c)
	outside := "http://" + c.Listen
	share := map[string]int{}
	for n := range 300 {
		id := fmt.Sprintf("soak-%d", n)
		_, connected := request(t, http.MethodGet, outside+"/event/connect?id="+id, "")
		_, ended := request(t, http.MethodDelete, outside+"/event/forcedisconnect?id="+id, "")
		name, _, _ := strings.Cut(connected, " ")
		require.True(t, strings.HasPrefix(ended, name+" "), "%s connects to %q and ends at %q", id, connected, ended)
		share[name]++
	}
	for n := range 3 {
		require.Greater(t, share[fmt.Sprintf("backend-%d", n+1)], 50, "%v", share)
	}
	for _, path := range []string{"/metrics", "/event/ledger", "/event/broadcast"} {
		status, body := request(t, http.MethodGet, outside+path, "Bearer "+token)
		require.Equal(t, http.StatusNotFound, status, "one backend must not respond for all three: %s", body)
	}
	_, body := request(t, http.MethodGet, "http://"+c.Site.Internal+"/backend-3/metrics", "")
	require.Equal(t, "backend-3 /metrics ", body)
}

func TestTLS(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("openssl"); err != nil {
		untested.SkipMissing(t, "openssl is not installed")
	}
	c := site(t, 1)
	certs := filepath.Join(c.Dir, "certs")
	out, err := exec.Command("../infra/compose/certs", certs).CombinedOutput()
	require.NoError(t, err, "%s", out)
	c.Site.TLSListen = address.Reserve(t)
	c.Site.Certificate, c.Site.Key = filepath.Join(certs, "server", "server.pem"), filepath.Join(certs, "server", "server-key.pem")
	start(t, c)
	roots := x509.NewCertPool()
	ca, err := os.ReadFile(filepath.Join(certs, "ca.pem"))
	require.NoError(t, err)
	require.True(t, roots.AppendCertsFromPEM(ca), "ca.pem must contain a certificate")
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	resp, err := client.Get("https://" + c.Site.TLSListen + "/event/connect?id=a")
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
}

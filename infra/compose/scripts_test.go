package compose

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/untested"
)

func script(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command("./"+name, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

func read(t *testing.T, elements ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(elements...))
	require.NoError(t, err)
	return string(b)
}

var secret = regexp.MustCompile(`(?m)^(?:BACKEND_TOKEN|GRAFANA_PASSWORD|GRAFANA_VIEWER_PASSWORD|PROMETHEUS_PASSWORD)=(.*)$`)

func TestEnvIsCreatedOnceWithNewSecrets(t *testing.T) {
	t.Parallel()
	values := map[string]bool{}
	for range 2 {
		file := filepath.Join(t.TempDir(), ".env")
		script(t, "env", file)
		text := read(t, file)
		for _, m := range secret.FindAllStringSubmatch(text, -1) {
			require.Regexp(t, "^[0-9a-f]{48}$", m[1])
			values[m[1]] = true
		}
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode())
		script(t, "env", file)
		require.Equal(t, text, read(t, file), "a second run of the script must not change the file")
	}
	require.Len(t, values, 8)
	for _, m := range secret.FindAllStringSubmatch(read(t, "..", "..", ".env.example"), -1) {
		require.Empty(t, m[1], "the example must not contain secrets")
	}
}

func TestComposeUsesEachSetting(t *testing.T) {
	t.Parallel()
	compose := read(t, "..", "..", "compose.yaml")
	for _, m := range regexp.MustCompile(`(?m)^([A-Z_]+)=`).FindAllStringSubmatch(read(t, "..", "..", ".env.example"), -1) {
		require.Contains(t, compose+read(t, "refresh"), m[1], "compose.yaml or refresh must use each setting")
	}
}

func TestImagesHaveVersions(t *testing.T) {
	t.Parallel()
	compose := read(t, "..", "..", "compose.yaml")
	for _, m := range regexp.MustCompile(`(?m)^ +image: (\S+)$`).FindAllStringSubmatch(compose, -1) {
		require.Regexp(t, `:(v?[0-9]+\.[0-9]+\.[0-9]+(-alpine)?|local)$`, m[1], "the image must have a version")
	}
}

func TestPublishedPortsAreLocal(t *testing.T) {
	t.Parallel()
	compose := read(t, "..", "..", "compose.yaml")
	for _, m := range regexp.MustCompile(`(?m)^ +ports: \["?([^"\]]+)`).FindAllStringSubmatch(compose, -1) {
		require.True(t, strings.HasPrefix(m[1], "127.0.0.1:"), "%s must listen on 127.0.0.1, because docker-proxy would open it to the network", m[1])
	}
}

func certificate(t *testing.T, elements ...string) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode([]byte(read(t, elements...)))
	require.NotNil(t, block)
	c, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	return c
}

func TestCertificatesAreValidForTheirNames(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("openssl"); err != nil {
		untested.SkipMissing(t, "openssl is not installed")
	}
	folder := filepath.Join(t.TempDir(), "certs")
	script(t, "certs", folder, "soak.example", "10.1.2.3")
	roots := x509.NewCertPool()
	roots.AddCert(certificate(t, folder, "ca.pem"))
	server := certificate(t, folder, "server", "server.pem")
	for _, name := range []string{"localhost", "127.0.0.1", "soak.example", "10.1.2.3"} {
		_, err := server.Verify(x509.VerifyOptions{Roots: roots, DNSName: name})
		require.NoError(t, err)
	}
	_, err := server.Verify(x509.VerifyOptions{Roots: roots, DNSName: "other.example"})
	require.Error(t, err)
	entries, err := os.ReadDir(filepath.Join(folder, "server"))
	require.NoError(t, err)
	require.Len(t, entries, 2, "the folder that nginx can read must not contain the key of the authority")
	asClient := x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	for _, name := range []string{"client-1.pem", "client-4.pem"} {
		_, err = certificate(t, folder, "clients", name).Verify(asClient)
		require.NoError(t, err)
	}
	_, err = certificate(t, folder, "clients", "stranger.pem").Verify(asClient)
	require.Error(t, err, "a self-signed certificate must be rejected")
	impostor, client := certificate(t, folder, "clients", "impostor.pem"), certificate(t, folder, "clients", "client-1.pem")
	require.Equal(t, [2]string{client.Subject.String(), client.Issuer.String()}, [2]string{impostor.Subject.String(), impostor.Issuer.String()})
	_, err = impostor.Verify(asClient)
	require.Error(t, err, "a certificate of another authority with the same name must be rejected")
	_, err = server.Verify(asClient)
	require.Error(t, err, "a server certificate must not be valid for clients")
	require.Contains(t, script(t, "certs", folder), "exists", "a second run of the script must not change the files")
	// A folder of an earlier version gets the certificates for clients and keeps its other files.
	require.NoError(t, os.RemoveAll(filepath.Join(folder, "clients")))
	script(t, "certs", folder)
	require.Equal(t, server.Raw, certificate(t, folder, "server", "server.pem").Raw)
	_, err = certificate(t, folder, "clients", "client-1.pem").Verify(asClient)
	require.NoError(t, err)
}

package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/certificate"
)

func TestHealthcheckReportsTheService(t *testing.T) {
	t.Parallel()
	address := "unix:" + filepath.Join(t.TempDir(), "backend.sock")
	env := func(name string) (string, bool) { return map[string]string{"LISTEN": address}[name], name == "LISTEN" }
	check := func() (code int, output string) {
		var errs strings.Builder
		return run([]string{"--healthcheck"}, env, nil, io.Discard, &errs), errs.String()
	}
	code, output := check()
	require.Equal(t, exitError, code, "the health check must fail without a service")
	require.Contains(t, output, "check the health of "+address)
	signals := make(chan os.Signal, 1)
	ended := make(chan int)
	go func() { ended <- run([]string{"--listen", address}, noEnv, signals, io.Discard, io.Discard) }()
	eventually(t, "the service is healthy", func() bool { code, _ := check(); return code == exitOK })
	signals <- os.Interrupt
	require.Equal(t, exitOK, <-ended)
}

// The health check has no client certificate. A request for one shows that the service completes TLS handshakes.
func TestHealthcheckWithoutClientCertificate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := certificate.NewAuthority(t)
	cert, key := certificate.PEM(t, ca.Server())
	authority, _ := certificate.PEM(t, ca.Certificate)
	for name, text := range map[string]string{"cert": cert, "key": key, "ca": authority} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	settings := []string{"--listen=unix:" + filepath.Join(dir, "backend.sock"), "--tls-cert=" + dir + "/cert", "--tls-key=" + dir + "/key", "--tls-client-ca=" + dir + "/ca"}
	check := func() int { return run(append(settings, "--healthcheck"), noEnv, nil, io.Discard, io.Discard) }
	require.Equal(t, exitError, check(), "the health check must fail without a service")
	signals := make(chan os.Signal, 1)
	ended := make(chan int)
	go func() { ended <- run(settings, noEnv, signals, io.Discard, io.Discard) }()
	eventually(t, "the service is healthy", func() bool { return check() == exitOK })
	signals <- os.Interrupt
	require.Equal(t, exitOK, <-ended)
}

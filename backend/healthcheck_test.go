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

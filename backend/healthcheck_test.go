package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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

package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// health runs `backend --healthcheck` for a service at an address.
func health(t *testing.T, address string) (code int, output string) {
	t.Helper()
	env := func(name string) (string, bool) { return map[string]string{"LISTEN": address}[name], name == "LISTEN" }
	var errs strings.Builder
	return run([]string{"--healthcheck"}, env, nil, io.Discard, &errs), errs.String()
}

func TestHealthcheckReportsTheService(t *testing.T) {
	address := "unix:" + filepath.Join(t.TempDir(), "backend.sock")
	if code, output := health(t, address); code != exitError || !strings.Contains(output, "check the health of "+address) {
		t.Fatalf("without a service: exit %d, %q", code, output)
	}
	signals := make(chan os.Signal, 1)
	ended := make(chan int)
	go func() {
		ended <- run([]string{"--listen", address}, func(string) (string, bool) { return "", false }, signals, io.Discard, io.Discard)
	}()
	code, output := exitError, ""
	for range 3000 {
		if code, output = health(t, address); code == exitOK {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if code != exitOK {
		t.Errorf("healthcheck of a running service: got exit code %d, %q", code, output)
	}
	signals <- os.Interrupt
	<-ended
}

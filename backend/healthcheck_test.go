package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// health runs `backend --healthcheck` against a service at where.
func health(t *testing.T, where string) (code int, output string) {
	t.Helper()
	env := func(name string) (string, bool) { return map[string]string{"LISTEN": where}[name], name == "LISTEN" }
	var errs strings.Builder
	return run([]string{"--healthcheck"}, env, nil, io.Discard, &errs), errs.String()
}

func TestHealthcheckReportsTheService(t *testing.T) {
	where := "unix:" + filepath.Join(t.TempDir(), "backend.sock")
	if code, output := health(t, where); code != exitError || !strings.Contains(output, "no service answers on "+where) {
		t.Fatalf("without a service: exit %d, %q", code, output)
	}
	signals := make(chan os.Signal, 1)
	ended := make(chan int)
	go func() {
		ended <- run([]string{"--listen", where}, func(string) (string, bool) { return "", false }, signals, io.Discard, io.Discard)
	}()
	code, output := exitError, ""
	for range 3000 {
		if code, output = health(t, where); code == exitOK {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if code != exitOK {
		t.Errorf("with a service: exit %d, %q", code, output)
	}
	signals <- os.Interrupt
	<-ended
}

// Package untested lists the parts that could not be tested on a machine, so that an incomplete test is visible.
package untested

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
)

// listFile is the environment variable with the path of the list. `make test` prints the list when it ends, and uses
// a different path each time. Skipped tests read the variable, so go test does not reuse their cached results.
const listFile = "NOT_TESTED"

// SkipMissing skips a test because a tool that .ci/run installs is missing. In CI, it fails the test.
func SkipMissing(t testing.TB, reason string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("CI must not skip this test, because .ci/run installs its tools: %s", reason)
	}
	Skip(t, reason)
}

// Skip skips a test and records the reason. Unlike SkipMissing, it skips the test even in CI.
func Skip(t testing.TB, reason string) {
	t.Helper()
	Note(t, reason)
	t.SkipNow()
}

// RequireHangups skips a test if SIGHUP is ignored, as under nohup.
func RequireHangups(t testing.TB) {
	t.Helper()
	if signal.Ignored(syscall.SIGHUP) {
		Skip(t, "a closed terminal, because SIGHUP is ignored (nohup)")
	}
}

// Note records a part that a test omits.
func Note(t testing.TB, part string) {
	t.Helper()
	part = strings.Join(strings.Fields(part), " ")
	t.Log("NOT TESTED: " + part)
	path := os.Getenv(listFile)
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Errorf("write the list of untested parts: %v", err)
		return
	}
	defer f.Close()
	// A single write, because the tests of several packages append concurrently.
	if _, err := fmt.Fprintf(f, "%s\t%s\n", part, t.Name()); err != nil {
		t.Errorf("write the list of untested parts: %v", err)
	}
}

// Browser returns the path of a browser for playwright. It calls SkipMissing if no browser is installed.
func Browser(t testing.TB) string {
	t.Helper()
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	SkipMissing(t, "no browser is installed; run `apt-get install chromium`, or set CHROMIUM to the path of a browser")
	return ""
}

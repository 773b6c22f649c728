// Package untested lists the parts that could not be tested on a machine, so that such a run does not look like
// a complete one.
package untested

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// listFile names the file of the list, which `make test` prints at its end. A name that is new in each run also keeps
// go test from taking the result of a test that was skipped from its cache.
const listFile = "NOT_TESTED"

// SkipMissing skips a test because a tool is missing that .ci/run installs. In CI, after .ci/run, that is a failure.
func SkipMissing(t testing.TB, tool string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("CI must provide this (.ci/run): %s", tool)
	}
	Skip(t, tool)
}

// Skip skips a test that depends on something that cannot be installed, such as a reachable registry.
func Skip(t testing.TB, reason string) {
	t.Helper()
	Note(t, reason)
	t.SkipNow()
}

// Note records a part that a test leaves out.
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
		t.Errorf("the list of what is not tested: %v", err)
		return
	}
	defer f.Close()
	// One write, because the tests of several packages write at the same time.
	if _, err := fmt.Fprintf(f, "%s\t%s\n", part, t.Name()); err != nil {
		t.Errorf("the list of what is not tested: %v", err)
	}
}

// Browser finds a browser that playwright can drive.
func Browser(t testing.TB) string {
	t.Helper()
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	SkipMissing(t, "no browser is installed: apt-get install chromium, or set CHROMIUM to the path of a browser")
	return ""
}

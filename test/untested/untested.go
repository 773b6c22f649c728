// Package untested lists what the tests could not test on a machine, so that a run that passes does not look like one
// that tested everything.
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

// Missing skips a test for want of a tool that .ci/run installs. In CI, where .ci/run has been, that is a failure.
func Missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("CI has to provide this (.ci/run): %s", what)
	}
	Skip(t, what)
}

// Skip skips a test that needs something that cannot be installed, such as a registry that answers.
func Skip(t testing.TB, why string) {
	t.Helper()
	Note(t, why)
	t.SkipNow()
}

// Note records what a test leaves out while it tests the rest.
func Note(t testing.TB, what string) {
	t.Helper()
	what = strings.Join(strings.Fields(what), " ")
	t.Log("NOT TESTED: " + what)
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
	// One write, since the tests of several packages write at the same time.
	if _, err := fmt.Fprintf(f, "%s\t%s\n", what, t.Name()); err != nil {
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
	Missing(t, "there is no browser: apt-get install chromium, or set CHROMIUM to the path of one")
	return ""
}

//go:build browser

package report_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/report/html"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/untested"
)

func TestBrowser(t *testing.T) {
	t.Parallel()
	browser := untested.Browser(t)
	require.FileExists(t, "html/bundle/page.js", "run `make build`, which bundles the script of the page")
	dir := t.TempDir()
	hour, evil := report.SimulatedRun(1200, 3600), report.SimulatedRun(20, 600)
	injectMarkupInto(evil, `<img src=x onerror=alert(1)></script><script>alert(2)</script>`)
	for i, name := range []string{"deploy", "at-the-end"} { // one name fits to the right of its line, the other to the left
		hour.Verdict.Actions = append(hour.Verdict.Actions, verdict.Action{ActionResult: verdict.ActionResult{Action: plan.Action{Name: name}, StartedUnix: report.SimulatedStart + 1200 + 2390*float64(i)}})
	}
	passed := report.SimulatedRun(1200, 3600)
	passed.Verdict.Verdict = verdict.Pass
	empty := shard.Merge(plan.Default(), nil)
	for name, run := range map[string]*report.Run{
		"hour.html": hour, "passed.html": passed, "evil.html": evil, "days.html": report.SimulatedRun(1200, 72*3600),
		"nothing.html": {Merged: empty, Verdict: report.NewVerdict(t, empty)},
	} {
		f, err := os.Create(filepath.Join(dir, name))
		require.NoError(t, err)
		require.NoError(t, html.Write(f, report.Full(run)))
		require.NoError(t, f.Close())
	}
	for _, f := range hour.Files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, f.Name), f.Content, 0o600))
	}
	cmd := exec.CommandContext(t.Context(), "node", "--test", "--test-reporter=spec", "html/browser/page.test.js")
	cmd.Env = append(os.Environ(), "PAGES="+dir, "CHROMIUM="+browser)
	out, err := cmd.CombinedOutput()
	t.Log(string(out))
	require.NoError(t, err)
}

//go:build dashboards

package dashboards

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/grafana"
)

// Only a killed runner causes the alert RunnerSilent, which reaches the webhook within 30 s. Runners that are
// interrupted or end by themselves cause no alert.
func TestKilledRunnerAlerts(t *testing.T) {
	t.Parallel()
	url, notifications := webhook(t)
	s := startStackWithAlerts(t, url)
	s.soak(30)
	interruptedRunner := s.runner("interrupted", 30, 1, "--execution-segment", "0:1/2", "--execution-segment-sequence", "0,1/2,1")
	s.await(fmt.Sprintf(`sum(runner:soak_streams:open) == %d`, streams+streams/2))
	s.runners[1].Stop(context.Background(), syscall.SIGKILL, 10*time.Second)
	killTime := time.Now()
	interruptedRunner.Stop(context.Background(), syscall.SIGINT, 30*time.Second)
	select {
	case a := <-notifications:
		assert.Less(t, time.Since(killTime), 30*time.Second)
		assert.Equal(t, "firing", a.Status)
		assert.Equal(t, testID+" 2", a.Labels["testid"]+" "+a.Labels["runner"])
		assert.Contains(t, a.Annotations["summary"], fmt.Sprintf("open streams in its last report: %d", streams/2))
	case <-time.After(time.Minute):
		require.Fail(t, "the webhook must receive a request", s.logs())
	}
	s.requireExit(s.runners[0], 0)
	// The alert fires after 20 s of silence in the recording rules, so all three runners must be silent for longer.
	s.await(`count(runner:soak_reports:newest == runner:soak_reports:newest offset 24s) == 3`)
	a := s.querier(time.Second)
	a.Range.Start = killTime
	alerts := a.series(t, `ALERTS{alertname="RunnerSilent"}`)
	assert.NotEmpty(t, alerts)
	for _, alert := range alerts {
		assert.Equal(t, testID+" 2", string(alert.Metric["testid"]+" "+alert.Metric["runner"]))
	}
	a.requireValues(t, map[string]float64{"Runners missing": 1})
}

type alert struct {
	Status              string
	Labels, Annotations map[string]string
}

// webhook starts a webhook, and returns its URL and a channel that receives each alert RunnerSilent.
func webhook(t *testing.T) (url string, notifications chan alert) {
	t.Helper()
	notifications = make(chan alert, 100)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var message struct{ Alerts []alert }
		if !assert.NoError(t, json.NewDecoder(r.Body).Decode(&message)) {
			return
		}
		for _, a := range message.Alerts {
			if a.Labels["alertname"] == "RunnerSilent" {
				notifications <- a
			}
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, notifications
}

// Every query of every dashboard returns the same values from an opened archive as from the original Prometheus. The
// backend was killed after the run.
func TestArchiveShowsTheSameDashboards(t *testing.T) {
	t.Parallel()
	s := startStack(t)
	var folder string
	a := s.watch(func() {
		out := filepath.Join(s.dir, "results")
		run := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "soak"), "run", "--backend-url", "http://"+s.nginx, "--connections", "40", "--seconds", "18",
			"--noop-interval", strconv.Itoa(interval), "--testid", testID, "--out", out)
		run.Env = append(os.Environ(), "K6_PROMETHEUS_RW_SERVER_URL=http://"+s.prom+"/api/v1/write", "K6_NO_USAGE_REPORT=true")
		output, err := run.CombinedOutput()
		require.FileExists(t, filepath.Join(out, testID, "verdict.json"), "%v: %s", err, output)
		folder = filepath.Join(out, testID)
		s.service.Stop(context.Background(), syscall.SIGKILL, 10*time.Second)
		s.await(`up{job="backend"} == 0`)
	})
	file := filepath.Join(s.dir, "run.tar.gz")
	output, err := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "soak"), "archive", folder, file, "--prometheus", "http://"+s.prom).CombinedOutput()
	require.NoError(t, err, "%s", output)
	t.Logf("%s", output)
	require.Regexp(t, `data +[\d,]+ samples in \d+ series`, string(output))

	archive := a
	archive.Prometheus = openArchive(t, file)
	archive.Range.End, a.Range.End = a.Range.End.Add(-time.Second), a.Range.End.Add(-time.Second) // later samples are not in the archive
	queries, withData := 0, 0
	for _, board := range grafana.Boards(t, root) {
		for _, panel := range board.Panels {
			for _, q := range panel.Targets {
				want := a.series(t, q.Expr)
				assert.Equal(t, want, archive.series(t, q.Expr), "%s/%s: %s", board.Name, panel.Title, q.Expr)
				queries++
				if len(want) > 0 {
					withData++
				}
			}
		}
	}
	t.Logf("%d queries, %d of them with data", queries, withData)
	assert.Greater(t, withData, queries/2)
}

// prometheusLine matches the line with the URL of Prometheus in the output of soak open.
var prometheusLine = regexp.MustCompile(`(?m)^prometheus +(http://127\.0\.0\.1:\d+)/`)

// openArchive opens an archive with `soak open`, and returns the URL of the Prometheus server. At the end of the test,
// it stops soak with SIGINT, and asserts that the server does not respond and no file is left.
func openArchive(t *testing.T, file string) (prometheus string) {
	t.Helper()
	tmp := t.TempDir()
	open := exec.Command(filepath.Join(root, "bin", "soak"), "open", file)
	open.Env = append(os.Environ(), "TMPDIR="+tmp)
	open.Stderr = os.Stderr
	out, err := open.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, open.Start())
	var output strings.Builder
	t.Cleanup(func() {
		require.NoError(t, open.Process.Signal(os.Interrupt))
		assert.NoError(t, open.Wait())
		files, err := os.ReadDir(tmp)
		assert.NoError(t, err)
		assert.Empty(t, files)
		_, err = http.Get(prometheus)
		assert.Error(t, err, "%s must be closed", prometheus)
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		output.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(lines.Text(), "Ctrl-C stops") {
			break
		}
	}
	found := prometheusLine.FindStringSubmatch(output.String())
	require.NotEmpty(t, found, output.String())
	return found[1]
}

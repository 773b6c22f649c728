//go:build dashboards

package live

import (
	"bufio"
	"context"
	"net/http"
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

// A soak with remote write, its archive, and the archive opened: every query of every dashboard has the same values at
// the same times, to the last digit, also of a backend that died meanwhile.
func TestArchiveShowsTheSameDashboards(t *testing.T) {
	t.Parallel()
	s := startStack(t)
	var file, folder string
	a := s.watch(func() {
		out := filepath.Join(s.dir, "results")
		run := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "soak"), "run", "--backend-url", "http://"+s.nginx, "--connections", "40", "--seconds", "18",
			"--noop-interval", strconv.Itoa(interval), "--testid", testID, "--out", out)
		run.Env = append(os.Environ(), "K6_PROMETHEUS_RW_SERVER_URL=http://"+s.watcher+"/api/v1/write", "K6_NO_USAGE_REPORT=true")
		said, err := run.CombinedOutput()
		require.FileExists(t, filepath.Join(out, testID, "verdict.json"), "%v: %s", err, said)
		folder = filepath.Join(out, testID)
		s.service.Stop(context.Background(), syscall.SIGKILL, 10*time.Second)
		s.await(`up{job="backend"} == 0`)
	})
	file = filepath.Join(s.dir, "it.tar.gz")
	said, err := exec.CommandContext(t.Context(), filepath.Join(root, "bin", "soak"), "archive", folder, file, "--prometheus", "http://"+s.watcher).CombinedOutput()
	require.NoError(t, err, "%s", said)
	t.Logf("%s", said)
	require.Regexp(t, `data +[\d,]+ samples in \d+ series`, string(said))

	again := a
	again.Prometheus = openedArchive(t, file)
	again.Range.End, a.Range.End = a.Range.End.Add(-time.Second), a.Range.End.Add(-time.Second) // later samples are not in the archive
	asked, answered := 0, 0
	for _, board := range grafana.Boards(t, root) {
		for _, panel := range board.Panels {
			for _, q := range panel.Targets {
				want := a.series(t, q.Expr)
				assert.Equal(t, want, again.series(t, q.Expr), "%s/%s: %s", board.Name, panel.Title, q.Expr)
				asked++
				if len(want) > 0 {
					answered++
				}
			}
		}
	}
	t.Logf("%d queries, %d of them with data", asked, answered)
	assert.Greater(t, answered, asked/2)
}

var atAddress = regexp.MustCompile(`(?m)^prometheus +(http://127\.0\.0\.1:\d+)/`)

// openedArchive opens an archive as a person does, and ends it with the test as a person does: by Ctrl-C, after which
// nothing answers and nothing is left.
func openedArchive(t *testing.T, file string) (prometheus string) {
	t.Helper()
	tmp := t.TempDir()
	open := exec.Command(filepath.Join(root, "bin", "soak"), "open", file)
	open.Env = append(os.Environ(), "TMPDIR="+tmp)
	open.Stderr = os.Stderr
	out, err := open.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, open.Start())
	var said strings.Builder
	t.Cleanup(func() {
		require.NoError(t, open.Process.Signal(os.Interrupt))
		assert.NoError(t, open.Wait())
		left, err := os.ReadDir(tmp)
		assert.NoError(t, err)
		assert.Empty(t, left)
		_, err = http.Get(prometheus)
		assert.Error(t, err, "%s still answers", prometheus)
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if strings.HasPrefix(lines.Text(), "Ctrl-C ends") {
			break
		}
	}
	found := atAddress.FindStringSubmatch(said.String())
	require.NotEmpty(t, found, said.String())
	return found[1]
}

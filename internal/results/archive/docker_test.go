package archive

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/untested"
)

// TestMain makes this program docker where it is called by that name.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "docker" {
		os.Exit(fakeDocker(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// fakeDocker has no images, only what they hold: Debian's Prometheus, and something that answers as Grafana does. It notes
// what it is asked.
func fakeDocker(args []string) int {
	if f, err := os.OpenFile(os.Getenv("FAKE_DOCKER_LOG"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
		_, _ = fmt.Fprintln(f, strings.Join(args, " "))
		_ = f.Close()
	}
	after := func(image string) []string {
		if i := slices.Index(args, image); args[0] == "run" && i > 0 {
			return args[i+1:]
		}
		return nil
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if inner := after(PrometheusImage); inner != nil {
		config, _, _ := strings.Cut(args[slices.Index(args, "--volume")+1], ":")
		inner = slices.Concat(inner, []string{"--config.file=" + config, "--storage.tsdb.path=" + filepath.Join(filepath.Dir(config), "tsdb")})
		inner = slices.DeleteFunc(inner, func(arg string) bool {
			return strings.HasPrefix(arg, "--config.file=/etc/") || strings.HasPrefix(arg, "--storage.tsdb.path=/prometheus")
		})
		cmd := exec.CommandContext(ctx, os.Getenv("FAKE_DOCKER_PROMETHEUS"), inner...)
		cmd.Stderr = os.Stderr
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		_ = cmd.Run()
		return 0
	}
	if after(GrafanaImage) != nil {
		if os.Getenv("FAKE_DOCKER_REFUSES") != "" {
			fmt.Fprintln(os.Stderr, "Unable to find image")
			return 125
		}
		port := ""
		for _, arg := range args {
			if value, ok := strings.CutPrefix(arg, "GF_SERVER_HTTP_PORT="); ok {
				port = value
			}
		}
		server := &http.Server{Addr: "127.0.0.1:" + port, ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/api/health" {
				http.NotFound(w, r)
			}
		})}
		defer context.AfterFunc(ctx, func() { _ = server.Close() })()
		_ = server.ListenAndServe()
	}
	return 0
}

// Without the program prometheus Docker has one; Grafana finds in its folders what it is to show.
func TestInDocker(t *testing.T) {
	if runtime.GOOS != "linux" {
		untested.Skip(t, "the stand-in for docker is on the host's network")
	}
	real, err := exec.LookPath("prometheus")
	if err != nil {
		untested.Missing(t, "prometheus is not installed: apt-get install prometheus")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	bin := t.TempDir()
	require.NoError(t, os.Symlink(self, filepath.Join(bin, "docker")))
	log := filepath.Join(bin, "log")
	for name, value := range map[string]string{"PATH": bin, "FAKE_DOCKER_LOG": log, "FAKE_DOCKER_PROMETHEUS": real} {
		t.Setenv(name, value)
	}
	dir, boards := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(boards, "soak.json"), []byte(`{"uid": "sse-soak", "title": "Soak", "time": {"from": "now-1h"}, "refresh": "5s"}`), 0o600))
	prometheus, err := StartPrometheus(t.Context(), dir)
	require.NoError(t, err)
	t.Cleanup(prometheus.Stop)
	shown := Span{From: time.Unix(1_700_000_000, 0).UTC(), To: time.Unix(1_700_003_600, 0).UTC()}
	grafana, links, err := StartGrafana(t.Context(), dir, boards, prometheus, shown, "run-1")
	require.NoError(t, err)
	require.Equal(t, []Board{{"Soak", grafana.URL + "/d/sse-soak?from=1700000000000&to=1700003600000&var-testid=run-1"}}, links)

	var board struct {
		Time    map[string]string
		Refresh string
	}
	text, err := os.ReadFile(filepath.Join(dir, "boards", "soak.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &board))
	require.Equal(t, map[string]string{"from": "2023-11-14T22:13:20Z", "to": "2023-11-14T23:13:20Z"}, board.Time)
	require.Empty(t, board.Refresh)
	text, err = os.ReadFile(filepath.Join(dir, "provisioning", "datasources", "prometheus.yaml"))
	require.NoError(t, err)
	require.Contains(t, string(text), prometheus.URL)

	grafana.Stop()
	prometheus.Stop()
	for _, s := range []*Server{grafana, prometheus} {
		_, err := http.Get(s.URL)
		require.Error(t, err, "nothing listens any more")
	}
	text, err = os.ReadFile(log)
	require.NoError(t, err)
	asked := string(text)
	for _, s := range []*Server{grafana, prometheus} {
		require.Contains(t, asked, "run --rm --name "+s.container+" --network host")
		require.Contains(t, asked, "rm --force --volumes "+s.container)
	}
	require.Contains(t, asked, "--volume "+filepath.Join(dir, "boards")+":/var/lib/grafana/dashboards:ro")

	// An image that cannot be had ends it at once, with what Docker says.
	t.Setenv("FAKE_DOCKER_REFUSES", "1")
	_, _, err = StartGrafana(t.Context(), t.TempDir(), boards, prometheus, shown, "run-1")
	require.ErrorContains(t, err, "Grafana ended: Unable to find image")

	t.Setenv("PATH", t.TempDir())
	_, err = StartPrometheus(t.Context(), t.TempDir())
	require.ErrorContains(t, err, "neither the program prometheus")
	_, _, err = StartGrafana(t.Context(), t.TempDir(), boards, prometheus, shown, "run-1")
	require.ErrorIs(t, err, ErrNoDocker)
}

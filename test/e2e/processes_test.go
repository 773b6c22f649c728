//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/run/target"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/reverse"
	"github.com/sse-soak/sse-soak/test/services"
	"github.com/sse-soak/sse-soak/test/terminal"
	"github.com/sse-soak/sse-soak/test/untested"
)

// hangUp sends SIGHUP twice, because the kernel and the shell may both send it. The second signal must not kill soak.
func (r *soakRun) hangUp() {
	r.t.Helper()
	for range 2 {
		require.NoError(r.t, r.cmd.Process.Signal(syscall.SIGHUP))
	}
}

// soak writes a verdict even if its terminal is closed and all writes of the progress line fail.
func TestClosedTerminalLeavesAVerdict(t *testing.T) {
	untested.RequireHangups(t)
	t.Parallel()
	m := mark(t)
	window, program := terminal.Open(t)
	r := prepare(t, t.TempDir(), nil, []string{m}, "--connections", "20", "--seconds", "60", "--noop-interval", "1")
	r.cmd.Stdin, r.cmd.Stdout, r.cmd.Stderr = program, program, program
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	r.start()
	require.NoError(t, program.Close())
	await(t, "the runner must run", func() bool { return len(runnersOf(m)) == 1 })
	buffer := make([]byte, 1<<10)
	_, err := window.Read(buffer)
	require.NoError(t, err)
	require.NoError(t, window.Close())
	r.hangUp()
	v := r.verdict()
	require.Equal(t, verdict.Invalid, v.Verdict)
	require.Contains(t, reasons(v), "stopped by a signal")
	require.FileExists(t, r.dir.Path(results.PageFile))
	requireNoProcess(t, m)
}

// Neither a closed output, as with `soak run | head -1`, nor a closed terminal ends a soak under nohup.
func TestNohupSurvivesClosedOutputAndTerminal(t *testing.T) {
	t.Parallel()
	read, write, err := os.Pipe()
	require.NoError(t, err)
	r := prepare(t, t.TempDir(), []string{"nohup"}, nil, "--connections", "20", "--seconds", "9", "--noop-interval", "1")
	r.cmd.Stdout, r.cmd.Stderr = write, write
	r.start()
	require.NoError(t, write.Close())
	_, err = read.Read(make([]byte, 1))
	require.NoError(t, err)
	require.NoError(t, read.Close())
	r.hangUp()
	require.Equal(t, verdict.Pass, r.verdict().Verdict)
}

// A soak removes the folder of sockets that a killed soak left behind.
func TestNextSoakCleansUp(t *testing.T) {
	t.Parallel()
	m, tmp := mark(t), t.TempDir()
	env := []string{m, "TMPDIR=" + tmp}
	folders := func() []string {
		all, err := filepath.Glob(filepath.Join(tmp, "soak-*"))
		require.NoError(t, err)
		return all
	}
	killedSoak := begin(t, env, "--connections", "20", "--seconds", "60", "--noop-interval", "1")
	await(t, "the runner must run", func() bool { return len(runnersOf(m)) == 1 })
	require.NoError(t, killedSoak.cmd.Process.Kill())
	_ = killedSoak.cmd.Wait()
	requireNoProcess(t, m)
	require.Len(t, folders(), 1)
	nextSoak := begin(t, env, "--connections", "10", "--seconds", "8", "--noop-interval", "1")
	require.Equal(t, verdict.Pass, nextSoak.verdict().Verdict, nextSoak.out.String())
	require.Empty(t, folders())
}

// A reload of nginx interrupts no stream. A restart of nginx or of the backend interrupts all streams. The verdict
// reports each effect, even if the run is judged again.
func TestActionsAreReported(t *testing.T) {
	t.Parallel()
	reverse.Program(t)
	const streams = 40
	r := begin(t, nil, "--connections", "40", "--seconds", "28", "--noop-interval", "0.2", "--reconnect",
		"--at", "6s reload: PATH=$PATH:/usr/sbin nginx -c $SOAK_NGINX_CONF -s reload", "--at", "9s proxy: kill $SOAK_NGINX_PID", "--at", "16s backend: kill -KILL $SOAK_BACKEND_PID; echo killed")
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.Len(t, v.Actions, 3)
	reload, proxy, backend := v.Actions[0].Effect, v.Actions[1].Effect, v.Actions[2].Effect
	require.Equal(t, [2]int{0, 0}, [2]int{reload.Lost, reload.NotReconnected}, "old workers must keep their streams")
	for _, e := range []*verdict.Effect{proxy, backend} {
		require.Equal(t, [2]int{streams, 0}, [2]int{e.Lost, e.NotReconnected}, r.out.String())
		require.Less(t, *e.Reconnected50, *e.Reconnected100)
		require.LessOrEqual(t, e.Peak, streams)
		require.Positive(t, e.Slowest.Seconds)
		require.InDelta(t, *e.Reconnected100, e.Slowest.Seconds+*e.FirstLost, 1.5)
		require.Zero(t, e.Missed+e.Duplicated)
	}
	require.Greater(t, *proxy.Resumed, uint64(streams), "the backend must replay the noops of the outage, one every 0.2 s")
	require.Less(t, *backend.Resumed, uint64(streams/2), "a stopped backend must generate no noops; a few may be due after its restart")
	require.Equal(t, "killed", v.Actions[2].Output)
	require.Equal(t, v.Connections.Reconnected, v.Reconnect.Count)
	require.Greater(t, v.Reconnect.Max-v.Reconnect.P50, 200.0, "reconnects must be spread over time")

	page, err := os.ReadFile(r.dir.Path(results.PageFile))
	require.NoError(t, err)
	require.Contains(t, string(page), `"lines":[{"name":"reload",`)
	require.NoError(t, os.Remove(r.dir.Path(results.VerdictFile)))
	text, err := exec.Command(filepath.Join(root, "bin", "soak"), "report", string(r.dir)).CombinedOutput()
	require.NoError(t, err, string(text))
	require.Equal(t, v.Actions, readVerdict(t, r.dir).Actions)
}

// nchan stores the messages that are published while its clients are disconnected, and each client receives them once
// after its reconnect.
func TestActionOnADescribedService(t *testing.T) {
	t.Parallel()
	nchan := startService(t, "nchan", services.Options{})
	target, err := url.Parse(nchan.URL)
	require.NoError(t, err)
	outage, disconnect := context.WithCancel(t.Context())
	forwarder := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, FlushInterval: -1}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && outage.Err() == nil { // a stream that opened before the outage
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			defer context.AfterFunc(outage, cancel)()
			r = r.WithContext(ctx)
		}
		forwarder.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { proxy.CloseClientConnections(); proxy.Close() })
	file := filepath.Join(t.TempDir(), "cut")
	r := begin(t, nil, "--service", nchan.Service, "--backend-url", proxy.URL, "--connections", "12", "--topics", "3", "--publish-rate", "30",
		"--seconds", "17", "--reconnect", "--prefix", "act-", "--at", "5s cut: touch "+file)
	var watcher sync.WaitGroup
	watcher.Go(func() {
		for range 3000 {
			if _, err := os.Stat(file); err == nil {
				disconnect()
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	v := r.verdict()
	watcher.Wait()
	disconnect()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	e := v.Actions[0].Effect
	require.Equal(t, [2]int{12, 0}, [2]int{e.Lost, e.NotReconnected}, r.out.String())
	require.Zero(t, e.Missed+e.Duplicated)
	require.Greater(t, *e.Resumed, uint64(12), "each client must receive the messages of the outage: 10 per second, for at least 1 s")
}

// If soak is killed, the kernel sends a signal only to the shell of an action. The children of the shell must end, too.
func TestKilledSoakEndsItsActions(t *testing.T) {
	t.Parallel()
	m := mark(t)
	r := begin(t, []string{m}, "--connections", "4", "--seconds", "60", "--noop-interval", "1",
		"--at", "0s both: sleep 300 & sleep 300; true", "--at", "0s left: sleep 300 &", "--at-env", "SOAK_E2E_MARK")
	sleepCount := func() (n int) {
		for _, pid := range processes(m) {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			if strings.HasPrefix(string(line), "sleep\x00300") {
				n++
			}
		}
		return n
	}
	await(t, "all actions must run", func() bool { return sleepCount() == 3 })
	require.NoError(t, r.cmd.Process.Kill())
	_ = r.cmd.Wait()
	await(t, "all processes of the actions must end", func() bool { return sleepCount() == 0 })
	requireNoProcess(t, m)
}

// attachCommand returns the command that attaches to a run whose soak was killed.
func attachCommand(killedSoak *soakRun) *exec.Cmd {
	cmd := exec.Command(filepath.Join(root, "bin", "soak"), "attach", "t", "--out", filepath.Dir(string(killedSoak.dir)))
	cmd.Env = append(os.Environ(), "KUBECONFIG=/dev/null") // so that soak does not search a cluster for the run
	return cmd
}

// attach runs `soak attach` for a run whose soak was killed, and returns the verdict and the output.
func attach(t *testing.T, killedSoak *soakRun) (v *verdict.Verdict, out string) {
	t.Helper()
	text, err := attachCommand(killedSoak).CombinedOutput()
	if _, ok := err.(*exec.ExitError); !ok { //nolint:errorlint // not wrapped
		require.NoError(t, err, string(text))
	}
	return readVerdict(t, killedSoak.dir), string(text)
}

// beginAndKill starts a soak with two runners, and kills the soak process. It returns the run and the ids of the
// runners, which continue.
func beginAndKill(t *testing.T, mark string) (killedSoak *soakRun, runners []int) {
	t.Helper()
	killedSoak = begin(t, []string{mark}, "--backend-url", backend(t, "NOOP_INTERVAL=1s"), "--connections", "20", "--seconds", "24", "--noop-interval", "1", "--min-coverage", "40", "--runners", "2")
	killedSoak.awaitStreams("20")
	require.NoError(t, killedSoak.cmd.Process.Kill())
	_ = killedSoak.cmd.Wait()
	await(t, "the reference server of the control group must end", func() bool { return len(processes(mark)) == 2 })
	return killedSoak, runnersOf(mark)
}

// readFolder returns the files of a folder, with the time of their last change.
func readFolder(t *testing.T, dir string) map[string]time.Time {
	t.Helper()
	files := map[string]time.Time{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		files[path] = info.ModTime()
		return err
	}))
	return files
}

// `soak attach` follows the runner that still runs, and replaces the one that ended early. A second attach finds no
// runner and changes no file.
func TestAttachFollowsAndReplacesRunners(t *testing.T) {
	t.Parallel()
	m := mark(t)
	killedSoak, runners := beginAndKill(t, m)
	require.Len(t, runners, 2)
	require.NoError(t, syscall.Kill(runners[0], syscall.SIGTERM))
	await(t, "the runner must end", func() bool { return len(runnersOf(m)) == 1 })
	v, text := attach(t, killedSoak)
	require.Equal(t, verdict.Pass, v.Verdict, text)
	require.Equal(t, 1, strings.Count(text, "is still running"), text)
	require.Contains(t, text, "its clients continue for")
	require.Contains(t, text, "20/20 open", "the progress of the runners must be shown")
	require.Equal(t, []int{20, 20, 0}, []int{v.Connections.Opened, v.Connections.Completed, v.Connections.Unwatched}, text)
	require.Less(t, v.Watched.Share, 1.)
	require.Len(t, v.Runners, 3)
	requireNoProcess(t, m)

	files := readFolder(t, filepath.Dir(string(killedSoak.dir)))
	for id, want := range map[string]string{"t": "it has ended; judge it with `soak merge ", "unknown": "this machine has no run "} {
		cmd := attachCommand(killedSoak)
		cmd.Args[2] = id
		text, err := cmd.CombinedOutput()
		require.ErrorContains(t, err, "exit status 64", string(text))
		require.Contains(t, string(text), want)
	}
	require.Equal(t, files, readFolder(t, filepath.Dir(string(killedSoak.dir))))
}

func TestAttachRefusesARunWhoseBackendEndedWithSoak(t *testing.T) {
	t.Parallel()
	m := mark(t)
	killedSoak := begin(t, []string{m}, "--connections", "4", "--seconds", "60", "--noop-interval", "1")
	await(t, "the runner must run", func() bool { return len(runnersOf(m)) == 1 })
	require.NoError(t, killedSoak.cmd.Process.Kill())
	_ = killedSoak.cmd.Wait()
	requireNoProcess(t, m)
	text, err := attachCommand(killedSoak).CombinedOutput()
	require.ErrorContains(t, err, "exit status 64", string(text))
	require.Contains(t, string(text), "ended with soak, because soak started their target, had actions (--at), started only some of the runners (--runner), or ran another suite")
}

// Three backends run behind one nginx, which selects a backend by the client id. An action restarts the backends one
// after the other.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	reverse.Program(t)
	backend, err := filepath.Abs(filepath.Join(root, "bin", "backend"))
	require.NoError(t, err)
	cluster, err := target.StartLocal(t.Context(), target.LocalConfig{Backend: backend, Connections: 60, NoopInterval: time.Second, LogDir: t.TempDir(), Backends: 3})
	require.NoError(t, err)
	t.Cleanup(func() { cluster.Local.Stop(t.Context()) })
	var kills []string
	for _, pid := range cluster.Local.BackendPIDs() {
		kills = append(kills, fmt.Sprintf("kill %d", pid))
	}
	r := begin(t, []string{"BACKEND_TOKEN=" + cluster.Token}, "--backend-url", cluster.URL, "--connections", "60", "--seconds", "30", "--noop-interval", "1", "--reconnect",
		"--at", "6s deploy: "+strings.Join(kills, "; sleep 4; "))
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	e := v.Actions[0].Effect
	require.Equal(t, [2]int{60, 0}, [2]int{e.Lost, e.NotReconnected})
	require.Zero(t, e.Missed+e.Duplicated)
	require.Less(t, e.Peak, 60, "no more than one backend may be down at a time")
	require.Equal(t, verdict.ByNumbers, v.Evidence.Kind, "the ledger of one backend must not be used for all")
}

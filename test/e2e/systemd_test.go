//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
	"github.com/sse-soak/sse-soak/test/netns"
	"github.com/sse-soak/sse-soak/test/untested"
)

// bootSystemd is a script that becomes a systemd with the units in $1/units. startSystemd separates its processes,
// mounts and control groups from the machine.
const bootSystemd = `mount -t tmpfs none /run && mount -t cgroup2 none /sys/fs/cgroup &&
exec env -i PATH="$PATH" container=other SYSTEMD_UNIT_PATH="$1/units" SYSTEMD_GENERATOR_PATH=/nonexistent \
	/lib/systemd/systemd --system --unit=basic.target --log-target=console --show-status=0`

// startSystemd starts a systemd in a network namespace, and returns a function that runs systemctl there.
func startSystemd(t *testing.T, namespace, dir string) (systemctl func(args ...string) (string, error)) {
	t.Helper()
	group := "/sys/fs/cgroup/unified/" + namespace
	if _, err := os.Stat(filepath.Dir(group)); err != nil {
		group = "/sys/fs/cgroup/" + namespace
	}
	if err := os.Mkdir(group, 0o755); err != nil {
		untested.Skip(t, "a control group of version 2 cannot be created: "+err.Error())
	}
	t.Cleanup(func() { // succeeds when the processes of the group have ended
		await(t, "the control group must become empty", func() bool { return exec.Command("find", group, "-depth", "-type", "d", "-delete").Run() == nil })
	})
	cmd := exec.CommandContext(context.Background(), "nsenter", "--net=/run/netns/"+namespace, "sh", "-c", `echo $$ >"$1/cgroup.procs" &&
		exec unshare --fork --kill-child --pid --mount-proc --mount --cgroup --uts sh -c "$2" sh "$3"`, "sh", group, bootSystemd, dir)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	systemctl = func(args ...string) (string, error) {
		child, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", cmd.Process.Pid))
		if err != nil {
			return "", err
		}
		out, err := exec.Command("nsenter", append([]string{"--all", "--target", strings.TrimSpace(string(child)), "systemctl"}, args...)...).CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	await(t, "systemd must run", func() bool { out, _ := systemctl("is-system-running"); return out == "running" })
	return systemctl
}

// A runner under systemd is stopped, killed, and ended by a spot interruption notice. After each end, the next start of
// the unit continues the run.
func TestUnitsOfSystemd(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/lib/systemd/systemd"); err != nil {
		untested.Skip(t, "systemd is not installed; run `apt-get install systemd`")
	}
	namespace, dir := netns.New(t), t.TempDir()
	var notice atomic.Bool
	metadata := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPut:
			fmt.Fprint(w, "token")
		case !notice.Load() || r.URL.Path != "/latest/meta-data/spot/instance-action":
			http.NotFound(w, r)
		default:
			fmt.Fprint(w, `{"action": "terminate", "time": "2026-09-18T08:22:00Z"}`)
		}
	})}
	require.NoError(t, exec.Command("ip", "-n", namespace, "address", "add", "169.254.169.254/32", "dev", "lo").Run())
	var aws, target net.Listener
	require.NoError(t, netns.Do(namespace, func() (err error) {
		if aws, err = net.Listen("tcp", "169.254.169.254:80"); err == nil {
			target, err = net.Listen("tcp", "127.0.0.1:0")
		}
		return err
	}))
	go func() { _ = metadata.Serve(aws) }()
	t.Cleanup(func() { _ = metadata.Close() })
	service := fakeservice.StartService(bareService(time.Second), fakeservice.Strike{}, target)
	t.Cleanup(service.Stop)

	folder := func(path string) string {
		path, err := filepath.Abs(filepath.Join(root, path))
		require.NoError(t, err)
		return path
	}
	for _, unit := range []string{folder("infra/systemd/soak-runner@.service"), folder("infra/systemd/soak-spot.service"),
		"/lib/systemd/system/basic.target", "/lib/systemd/system/sysinit.target", "/lib/systemd/system/shutdown.target"} {
		text, err := os.ReadFile(unit)
		require.NoError(t, err)
		installed := strings.NewReplacer("%h", dir, "/usr/local/lib", folder("infra/systemd")).Replace(string(text))
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "units"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "units", filepath.Base(unit)), []byte(installed), 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "soak.env"), fmt.Appendf(nil,
		"PATH=%s:%s\nTESTID=t\nRUNNERS=1\nBACKEND_URL=http://%s\nCONNECTIONS=20\nSECONDS=80\nNOOP_INTERVAL=1\nMIN_COVERAGE=20\nWINDOW=20\n",
		folder("bin"), os.Getenv("PATH"), target.Addr()), 0o600))
	systemctl := startSystemd(t, namespace, dir)
	run := func(args ...string) string {
		out, err := systemctl(args...)
		require.NoError(t, err, out)
		return out
	}
	isOpen := func(n int) func() bool {
		return func() bool { _, open := service.ClientCounts(); return open == n }
	}

	hasEnded := func() bool {
		out, _ := systemctl("is-active", "soak-runner@1")
		return out == "inactive" || out == "failed"
	}

	run("start", "soak-spot", "soak-runner@1")
	await(t, "the streams must be open", isOpen(20))
	run("stop", "soak-runner@1")
	require.True(t, isOpen(0)())
	run("start", "soak-runner@1")
	await(t, "the streams of the second start must be open", isOpen(20))
	run("kill", "--signal=KILL", "soak-runner@1")
	await(t, "the killed streams must end", isOpen(0))
	await(t, "the streams of the restarted runner must be open", isOpen(20))
	notice.Store(true)
	await(t, "the notice must end the runner", hasEnded)
	require.True(t, isOpen(0)())
	run("start", "soak-runner@1")
	await(t, "the streams of the last start must be open", isOpen(20))
	await(t, "the run must end", hasEnded)
	require.Equal(t, "success", run("show", "--value", "--property=Result", "soak-runner@1"))

	v, text := mergeFolder(t, filepath.Join(dir, "results", "t"))
	require.Equal(t, verdict.Pass, v.Verdict, text)
	require.Equal(t, []int{20, 20, 0}, []int{v.Connections.Opened, v.Connections.Completed, v.Connections.Unwatched})
	var received uint64
	for _, w := range v.Windows {
		received += uint64(w.Messages)
	}
	require.GreaterOrEqual(t, len(v.Windows), 4)
	require.Equal(t, v.Messages.Received, received)
	states := make([]string, len(v.Runners))
	for i, r := range v.Runners {
		states[i] = r.State
	}
	require.Equal(t, []string{string(shard.Interrupted), string(shard.Running), string(shard.Interrupted), string(shard.Finished)}, states)
	t.Log(v.Sentence)
}

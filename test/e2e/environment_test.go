//go:build e2e

package e2e

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
	"github.com/sse-soak/sse-soak/test/reverse"
	"github.com/sse-soak/sse-soak/test/suspension"
	"github.com/sse-soak/sse-soak/test/untested"
)

// find returns the id of a process whose command line contains a text. mark identifies the processes of the run.
func find(t *testing.T, mark, text string) int {
	t.Helper()
	for _, pid := range processes(mark) {
		line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		if err == nil && bytes.Contains(bytes.ReplaceAll(line, []byte{0}, []byte{' '}), []byte(text)) {
			return pid
		}
	}
	require.Fail(t, "the run must have the process", text)
	return 0
}

// nginxMaster returns the id of the master process of nginx. The title of the process hides its environment, so the
// path of the log identifies the process.
func (r *soakRun) nginxMaster() int { return find(r.t, string(r.dir), "nginx: master") }

// awaitStreams waits until the progress reports that all streams are open and noops arrive.
func (r *soakRun) awaitStreams(connections string) {
	r.t.Helper()
	await(r.t, "all streams must be open", func() bool {
		i := strings.LastIndex(r.out.String(), connections+"/"+connections+" open")
		return i >= 0 && !strings.Contains(r.out.String()[i:], " 0/")
	})
}

func TestNginxRestartDropsEveryStream(t *testing.T) {
	t.Parallel()
	reverse.Program(t)
	r := begin(t, nil, "--connections", "20", "--seconds", "11", "--noop-interval", "1")
	r.awaitStreams("20")
	require.NoError(t, syscall.Kill(r.nginxMaster(), syscall.SIGTERM))
	v := r.verdict()
	require.Equal(t, verdict.Fail, v.Verdict, r.out.String())
	require.Equal(t, 20, v.Connections.Dropped)
	require.Contains(t, reasons(v), "nginx died at")
}

// A stopped runner reads all data later, so noops are late, but not lost. The verdict names the cause.
func TestStoppedRunnerIsLate(t *testing.T) {
	t.Parallel()
	m := mark(t)
	r := begin(t, []string{m}, "--connections", "20", "--seconds", "18", "--noop-interval", "1")
	r.awaitStreams("20")
	suspension.Stop(t.Context(), runnersOf(m), 5*time.Second, func() {}) // the fault: longer than the idle timeout
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.Zero(t, v.Messages.Missed)
	require.Positive(t, v.Messages.Late)
	require.True(t, v.Generator.Saturated)
	require.Contains(t, strings.Join(v.Warnings, "\n"), "the load generator was saturated")
}

// If the whole machine stalls, its server sends nothing. Clients that continue before the server do not close their
// streams as idle.
func TestStalledMachineDropsNothing(t *testing.T) {
	t.Parallel()
	m := mark(t)
	r := begin(t, []string{m}, "--connections", "20", "--seconds", "16", "--noop-interval", "1")
	r.awaitStreams("20")
	all := append(runnersOf(m), find(t, m, "bin/backend"))
	for _, pid := range all {
		require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	}
	time.Sleep(4 * time.Second) // the fault: longer than the idle timeout
	for _, pid := range all {
		require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
		time.Sleep(200 * time.Millisecond) // the server continues last
	}
	v := r.verdict()
	require.Equal(t, 20, v.Connections.Completed, r.out.String())
	require.Zero(t, v.Connections.Dropped)
	require.True(t, v.Generator.Saturated)
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
}

// Other processes use all cores. The test does not run in parallel, because it leaves no core for other tests.
func TestBusyCores(t *testing.T) {
	for range 8 * runtime.NumCPU() { // enough that runners wait for a core for over 5 % of the time
		burner := exec.Command("sh", "-c", "while :; do :; done")
		burner.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		require.NoError(t, burner.Start())
		t.Cleanup(func() {
			_ = burner.Process.Kill()
			_ = burner.Wait()
		})
	}
	t.Run("no message is lost", func(t *testing.T) {
		t.Parallel()
		v := begin(t, nil, "--connections", "50", "--seconds", "9", "--noop-interval", "1").verdict()
		require.Equal(t, verdict.Pass, v.Verdict, reasons(v))
		require.Zero(t, v.Messages.Missed)
		require.True(t, v.Generator.Saturated, "%+v", v.Generator)
	})
	t.Run("slowness is not attributed to the service", func(t *testing.T) {
		t.Parallel()
		url := backend(t, "NOOP_INTERVAL=1s")
		// Each response takes more than a microsecond, so the stages fail on any machine.
		r := smoke(t, "rampup", "--stages", "20,50", "--stage-seconds", "3", "--warmup-seconds", "0", "--max-p95-ms", "0.001", "--backend-url", url)
		v := r.verdict()
		rows := section(v, "Resource usage").Rows
		require.NotEmpty(t, rows, r.out.String())
		for _, row := range rows {
			if row[0] == "CPU of the service" {
				require.Equal(t, "–", row[3], "the CPU of the service must not be full: %v", rows)
				require.NotEqual(t, "not known", row[2], "the listening process must be found: %v", rows)
			}
		}
		require.NotContains(t, factOf(v, "bottleneck"), "CPU of the service: full")
	})
}

func TestUnwritableResults(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		untested.Skip(t, "mounting needs root")
	}
	mount := func(t *testing.T, options string) string {
		t.Helper()
		dir := t.TempDir()
		text, err := exec.Command("mount", "-t", "tmpfs", "-o", options, "tmpfs", dir).CombinedOutput()
		if err != nil {
			untested.Skip(t, "tmpfs cannot be mounted: "+string(text))
		}
		t.Cleanup(func() { _ = exec.Command("umount", "-l", dir).Run() })
		return dir
	}
	args := []string{"--connections", "20", "--seconds", "10", "--noop-interval", "1"}
	t.Run("read-only", func(t *testing.T) {
		t.Parallel()
		r := beginIn(t, mount(t, "ro"), nil, args...)
		require.Equal(t, 2, r.end(), r.out.String())
		require.Contains(t, r.out.String(), "read-only file system")
	})
	t.Run("full from the start", func(t *testing.T) {
		t.Parallel()
		r := beginIn(t, mount(t, "size=16k"), nil, args...)
		require.Equal(t, 2, r.end(), r.out.String())
		require.Contains(t, r.out.String(), "no space left on device")
	})
	t.Run("full in the middle", func(t *testing.T) {
		t.Parallel()
		out := mount(t, "size=256k")
		r := beginIn(t, out, nil, args...)
		r.awaitStreams("20")
		filler, err := os.Create(filepath.Join(out, "fill"))
		require.NoError(t, err)
		_, err = filler.Write(make([]byte, 1<<20))
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.NoError(t, filler.Close())
		require.Equal(t, 2, r.end(), r.out.String())
		require.Contains(t, r.out.String(), "no space left on device")
	})
}

// A stopped runner also reads its control group late, so the run is invalid. A stopped service does not delay the
// control group, so the lateness is a fault of the service.
func TestControlGroupAttributesLateness(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stop     string // path of the program that is stopped
		want     verdict.Outcome
		wantText string
	}{
		"runner":  {"bin/k6", verdict.Invalid, "while the control group was late too"},
		"backend": {"bin/backend", verdict.Fail, "the load generator did not delay them"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := mark(t)
			r := begin(t, []string{m}, "--connections", "20", "--seconds", "16", "--noop-interval", "2", "--max-late", "0")
			r.awaitStreams("20")
			suspension.Stop(t.Context(), []int{find(t, m, c.stop)}, 3*time.Second, func() {}) // the fault: longer than LATE_MS, shorter than the idle timeout
			v := r.verdict()
			require.Equal(t, c.want, v.Verdict, r.out.String())
			require.Contains(t, v.Reasons[0], c.wantText)
			require.True(t, v.Control.Decides)
			require.Zero(t, v.Control.Lost)
			require.Equal(t, 20, v.Connections.Opened, "streams of the control group must not be counted")
			require.Zero(t, v.Messages.Missed)
			require.Equal(t, c.want == verdict.Invalid, v.Control.LateWithoutGroup == 0, "%+v", v.Control)
		})
	}
}

// A suspended machine receives nothing, which is not a fault of the service. So a run whose machine was suspended is
// invalid.
func TestSuspendedMachineIsNotAFaultOfTheService(t *testing.T) {
	t.Parallel()
	type load func(t *testing.T) (args []string, isOpen func() bool)
	hasMetric := func(t *testing.T, url, metric string) func() bool {
		return func() bool {
			resp, err := http.Get(url + "/metrics")
			require.NoError(t, err)
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			return err == nil && regexp.MustCompile(metric).Match(text)
		}
	}
	noops := func(args ...string) load {
		return func(t *testing.T) ([]string, func() bool) {
			url := backend(t, "NOOP_INTERVAL=1s")
			return append(args, "--backend-url", url), hasMetric(t, url, "backend_streams_open [1-9][0-9]")
		}
	}
	published := func(args ...string) load {
		return func(t *testing.T) ([]string, func() bool) {
			h := &fakeservice.Hub{ID: fakeservice.DecimalID, History: true, HeartbeatInterval: time.Second, Heartbeat: ":\n\n"}
			args := append(args, publishFlags(describeHub(t, ""), h.Start(t).URL)...)
			return append(args, "--connections", "16", "--seconds", "20"), func() bool {
				_, peak := h.StreamCounts()
				return peak == 16
			}
		}
	}
	finite := func(t *testing.T) ([]string, func() bool) {
		_, url := startModel(t)
		return []string{"finite", "--profile", "smoke", "--seconds", "15", "--backend-url", url}, hasMetric(t, url, `model_requests_total.* [1-9][0-9]`)
	}
	for name, load := range map[string]load{
		"soak":   noops("--connections", "20", "--seconds", "20", "--noop-interval", "1"),
		"resume": published("resume", "--cuts-per-second", "2"),
		"churn":  noops("churn", "--profile", "smoke"),
		"finite": finite,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args, isOpen := load(t)
			m := mark(t)
			r := prepare(t, t.TempDir(), nil, []string{m}, args...)
			clock, err := suspension.Start(r.cmd)
			require.NoError(t, err)
			await(t, "streams must be open", isOpen)
			clock.Suspend(t.Context(), processes(m), 5*time.Second)
			v := r.verdict()
			require.Equal(t, verdict.Invalid, v.Verdict, r.out.String())
			require.Contains(t, v.Sentence, "its machine was suspended for 5", r.out.String())
			t.Log(v.Sentence)
		})
	}
}

//go:build e2e

// Package e2e tests soaks from end to end with the programs in bin/ and nginx.
package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/process"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/suspension"
	"github.com/sse-soak/sse-soak/test/terminal"
)

const root = "../.."

// sharedFolder has the files that several tests share.
var sharedFolder string

func TestMain(m *testing.M) {
	suspension.Main()
	for _, program := range []string{"soak", "k6", "backend"} {
		if _, err := os.Stat(filepath.Join(root, "bin", program)); err != nil {
			fmt.Fprintf(os.Stderr, "bin/%s is missing; run `make build`\n", program)
			os.Exit(1)
		}
	}
	if _, err := process.Find("nginx"); err != nil {
		fmt.Println("nginx is not installed; soaks connect to the backend directly")
	}
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} { // for tests of buckets, because a parallel test cannot call t.Setenv
		if err := os.Setenv(name, "test"); err != nil {
			panic(err)
		}
	}
	var err error
	if sharedFolder, err = os.MkdirTemp("", "soak-e2e-"); err != nil {
		panic(err)
	}
	code := m.Run()
	stopSharedServices()
	_ = os.RemoveAll(sharedFolder)
	os.Exit(code)
}

// A soakRun is a running `soak run`.
type soakRun struct {
	t      *testing.T
	cmd    *exec.Cmd
	out    terminal.Output
	dir    results.Dir
	cancel context.CancelFunc
}

// begin starts `soak run` with further arguments. env has variables as NAME=value.
func begin(t *testing.T, env []string, args ...string) *soakRun {
	t.Helper()
	return beginIn(t, t.TempDir(), env, args...)
}

// beginIn is like begin, with the results in the folder out.
func beginIn(t *testing.T, out string, env []string, args ...string) *soakRun {
	t.Helper()
	return beginWith(t, out, nil, env, args...)
}

// beginWith is like beginIn, with a wrapper command that starts soak, such as `ip netns exec`.
func beginWith(t *testing.T, out string, wrapper, env []string, args ...string) *soakRun {
	t.Helper()
	r := prepare(t, out, wrapper, env, args...)
	r.start()
	return r
}

// prepare is like beginWith, but does not start the run.
func prepare(t *testing.T, out string, wrapper, env []string, args ...string) *soakRun {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 6*time.Minute)
	r := &soakRun{t: t, dir: results.Dir(filepath.Join(out, "t")), cancel: cancel}
	line := append(append([]string(nil), wrapper...), filepath.Join(root, "bin", "soak"), "run", "--out", out, "--testid", "t")
	if !slices.Contains(args, "--runner") {
		line = append(line, "--runners", "1") // the default, 2, uses a quarter more CPU; a later flag overrides this one
	}
	line = append(line, args...)
	r.cmd = exec.CommandContext(ctx, line[0], line[1:]...)
	r.cmd.Env = append(os.Environ(), env...)
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.out
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	t.Cleanup(func() {
		cancel()
		requireNoProcess(t, out)
	})
	return r
}

func (r *soakRun) start() {
	r.t.Helper()
	require.NoError(r.t, r.cmd.Start())
}

// end waits for the run and returns its exit code.
func (r *soakRun) end() int {
	defer r.cancel()
	err := r.cmd.Wait()
	if exit, ok := err.(*exec.ExitError); ok {
		return exit.ExitCode()
	}
	require.NoError(r.t, err, r.out.String())
	return 0
}

// verdict waits for the run and returns its verdict, which must match the exit code.
func (r *soakRun) verdict() *verdict.Verdict {
	r.t.Helper()
	code := r.end()
	require.FileExists(r.t, r.dir.Path(results.VerdictFile), r.out.String())
	v := readVerdict(r.t, r.dir)
	require.Equal(r.t, v.Verdict.ExitCode(), code, r.out.String())
	require.NotEmpty(r.t, v.Reasons)
	return v
}

// readVerdict returns the verdict in a folder, which must match its JSON Schema.
func readVerdict(t *testing.T, dir results.Dir) *verdict.Verdict {
	t.Helper()
	b, err := os.ReadFile(dir.Path(results.VerdictFile))
	require.NoError(t, err)
	var v verdict.Verdict
	require.NoError(t, json.Unmarshal(b, &v))
	schema, err := jsonschema.NewCompiler().Compile("../../docs/reference/verdict.schema.json")
	require.NoError(t, err)
	file, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	require.NoError(t, err)
	require.NoError(t, schema.Validate(file))
	return &v
}

// requireNarrowReport requires that no line of report.txt has over 80 characters.
func (r *soakRun) requireNarrowReport() {
	r.t.Helper()
	text, err := os.ReadFile(r.dir.Path("report.txt"))
	require.NoError(r.t, err)
	for line := range strings.Lines(string(text)) {
		require.LessOrEqual(r.t, len([]rune(strings.TrimSuffix(line, "\n"))), 80, line)
	}
}

func await(t *testing.T, condition string, done func() bool) {
	t.Helper()
	require.Eventually(t, done, 2*time.Minute, 20*time.Millisecond, condition)
}

// processes returns the ids of the other processes whose command line or environment contains mark. It does not list
// the folders of processes, because a process exits more slowly when the kernel has cached the names of its files.
func processes(mark string) (pids []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		line, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))    // an error if it has just ended
		environ, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ")) // or if it belongs to another user
		if bytes.Contains(line, []byte(mark)) || bytes.Contains(environ, []byte(mark)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func requireNoProcess(t *testing.T, mark string) {
	t.Helper()
	await(t, "no process of the soak must remain", func() bool { return len(processes(mark)) == 0 })
}

// mark returns an environment variable that identifies the processes of a run.
func mark(t *testing.T) string {
	return "SOAK_E2E_MARK=" + strings.NewReplacer("/", "-", " ", "-").Replace(t.Name()) + fmt.Sprint(os.Getpid())
}

func reasons(v *verdict.Verdict) string { return strings.Join(v.Reasons, "\n") }

// backend starts bin/backend on a free port, and returns its URL.
func backend(t *testing.T, env ...string) string {
	t.Helper()
	log := startBackend(t, nil, append(env, "LISTEN=127.0.0.1:0")...)
	address := ""
	await(t, "the backend must listen", func() bool {
		text, err := os.ReadFile(log)
		if err != nil {
			return false
		}
		for line := range strings.Lines(string(text)) {
			var entry struct{ Msg, Addr string }
			if json.Unmarshal([]byte(line), &entry) == nil && entry.Msg == "listening" {
				address = entry.Addr
			}
		}
		return address != ""
	})
	return "http://" + address
}

// backend starts a backend on the server side of the wire. env has the variables for clients of the backend.
func (w *wire) backend(t *testing.T, interval string) (url string, env []string) {
	t.Helper()
	args := []string{"LISTEN=" + serverAddress + ":8080", "NOOP_INTERVAL=" + interval}
	scheme := "http"
	if w.secure {
		certs := certificates(t)
		scheme, args, env = "https", append(args, tlsVariables(certs)...), []string{"SSL_CERT_FILE=" + filepath.Join(certs, "ca.pem")}
	}
	startBackend(t, []string{"ip", "netns", "exec", w.server}, args...)
	await(t, "the backend must be ready", func() bool {
		text, err := exec.Command("ip", "netns", "exec", w.server, "ss", "-Hltn", "sport", "=", "8080").Output()
		return err == nil && len(text) > 0
	})
	return scheme + "://" + serverAddress + ":8080", env
}

// startBackend starts bin/backend, with wrapper before its command line, and returns its log file.
func startBackend(t *testing.T, wrapper []string, env ...string) string {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "backend.log"))
	require.NoError(t, err)
	defer log.Close()
	line := append(append([]string(nil), wrapper...), filepath.Join(root, "bin", "backend"))
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	return log.Name()
}

// writeFile writes a file to a new folder, and returns its path.
func writeFile(t *testing.T, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

//go:build stack

package stack

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/netns"
)

// request sends a request to the stack. credentials are NAME:PASSWORD, a bearer token, or "". After an error, status is
// 0 and body is the error.
func (s *stack) request(method, path, credentials string) (status int, body string) {
	s.t.Helper()
	req, err := http.NewRequest(method, s.url+path, nil)
	require.NoError(s.t, err)
	if name, password, ok := strings.Cut(credentials, ":"); ok {
		req.SetBasicAuth(name, password)
	} else if credentials != "" {
		req.Header.Set("Authorization", "Bearer "+credentials)
	}
	client := http.Client{Timeout: 20 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return resp.StatusCode, string(b)
}

type sample struct {
	Metric map[string]string
	Value  [2]any
}

// query evaluates a query in Prometheus, through nginx. It returns no rows while Prometheus or nginx is down.
func (s *stack) query(expr string) []sample {
	s.t.Helper()
	status, body := s.request(http.MethodGet, "/prometheus/api/v1/query?query="+url.QueryEscape(expr), "prometheus:"+s.env["PROMETHEUS_PASSWORD"])
	if status != http.StatusOK {
		return nil
	}
	var response struct{ Data struct{ Result []sample } }
	require.NoError(s.t, json.Unmarshal([]byte(body), &response))
	return response.Data.Result
}

// value returns the value of a query with one row, or "".
func (s *stack) value(expr string) string {
	s.t.Helper()
	rows := s.query(expr)
	if len(rows) != 1 {
		return ""
	}
	return fmt.Sprint(rows[0].Value[1])
}

// await waits until done returns true, for up to a minute. requirement is the message of a failure.
func await(t *testing.T, requirement string, done func() bool) {
	t.Helper()
	for start := time.Now(); !done(); time.Sleep(500 * time.Millisecond) {
		require.Less(t, time.Since(start), time.Minute, requirement)
	}
}

// This test has the topology of a soak on AWS: the stack with all its monitoring, and two machines with one runner
// each. A machine is a network namespace with its own counters, ports and address. The runners write their metrics to
// the Prometheus of the stack, and use the reference server of the stack for their control groups. With
// STACK_SECONDS=3600, the run takes an hour (docs/stack.md).
func TestTwoMachines(t *testing.T) {
	folder := os.Getenv("STACK_KEEP")
	if folder != "" {
		folder = filepath.Join(root, folder)
		require.NoDirExists(t, folder, "the test writes its results to this folder; move the folder away")
	}
	streams, seconds, interval := setting("STACK_CONNECTIONS", "100"), setting("STACK_SECONDS", "20"), setting("STACK_NOOP_INTERVAL", "1")
	s := start(t, map[string]string{"CONNECTIONS": streams, "NOOP_INTERVAL": interval, "COMPOSE_PROFILES": "reference"})
	s.requireScrape(1)
	prometheusURL := "http://prometheus:" + url.QueryEscape(s.env["PROMETHEUS_PASSWORD"]) + "@" + strings.TrimPrefix(s.url, "http://") + "/prometheus"
	env := s.remoteWrite("BACKEND_TOKEN="+s.env["BACKEND_TOKEN"], "PROMETHEUS_URL="+prometheusURL)

	reference := "http://" + net.JoinHostPort(hostAddress(t), "7070")
	out, start := t.TempDir(), time.Now()
	var parts sync.WaitGroup
	for n, machine := range []string{newMachine(t, 1), newMachine(t, 2)} {
		parts.Go(func() {
			// Both runners start at the same time, after they have inspected their machines.
			output, err := runInMachine(t, machine, env, "bin/soak", "run", "--runner", fmt.Sprintf("%d/2", n+1), "--testid", "machines", "--out", out,
				"--start-at", start.Add(10*time.Second).UTC().Format(time.RFC3339), "--backend-url", s.url,
				"--control-url", reference, "--connections", streams, "--seconds", seconds, "--noop-interval", interval)
			t.Log(output)
			if err != nil {
				t.Errorf("runner %d: %v", n+1, err)
			}
		})
	}
	parts.Wait()
	dir := results.Dir(filepath.Join(out, "machines"))
	if folder != "" {
		defer func() { require.NoError(t, os.CopyFS(folder, os.DirFS(string(dir)))) }()
	}
	output := run(t, time.Minute, "bin/soak", "merge", string(dir))
	t.Log(output)

	b, err := os.ReadFile(dir.Path(results.VerdictFile))
	require.NoError(t, err)
	var v verdict.Verdict
	require.NoError(t, json.Unmarshal(b, &v))
	require.Equal(t, verdict.Pass, v.Verdict)
	require.Len(t, v.Runners, 2)
	require.Contains(t, output, "control      40 streams")
	require.Equal(t, reference, v.Control.URL)
	require.True(t, v.Control.Remote && v.Control.Decides, "the control group must use the reference of the stack: %+v", v.Control)
	require.True(t, v.Server.Known && v.Server.Agrees, "the ledger of the backend must match: %+v", v.Server)
	for expr, want := range map[string]string{
		`sum(k6_soak_noops_total{testid="machines"})`:             fmt.Sprint(v.Messages.Received),
		`sum(k6_soak_streams_completed{testid="machines"})`:       streams,
		`count(k6_soak_streams_completed{testid="machines"} > 0)`: "2", // each runner with its own series
	} {
		await(t, expr+" must be "+want, func() bool { return s.value(expr) == want })
	}
}

// setting returns an environment variable, or the fallback if it is empty.
func setting(name, fallback string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return fallback
}

// newMachine returns a network namespace with its own link to the host.
func newMachine(t *testing.T, n int) (name string) {
	t.Helper()
	name = netns.New(t)
	link, network := fmt.Sprintf("soak%d", n), fmt.Sprintf("10.78.%d.", n)
	for _, command := range []string{
		"ip link add " + link + " type veth peer name eth0 netns " + name,
		"ip addr add " + network + "1/30 dev " + link,
		"ip link set " + link + " up",
		"ip -n " + name + " addr add " + network + "2/30 dev eth0",
		"ip -n " + name + " link set eth0 up",
		"ip -n " + name + " route add default via " + network + "1",
	} {
		fields := strings.Fields(command)
		run(t, time.Minute, fields[0], fields[1:]...)
	}
	return name
}

// runInMachine runs a program in a machine until the program or the test ends.
func runInMachine(t *testing.T, machine string, env []string, program string, args ...string) (output string, err error) {
	path, err := filepath.Abs(filepath.Join(root, program))
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(t.Context(), "ip", append([]string{"netns", "exec", machine, path}, args...)...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), env...)
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, time.Minute
	text, err := cmd.CombinedOutput()
	return string(text), err
}

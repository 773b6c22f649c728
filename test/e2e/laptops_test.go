//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/services/faulty"
)

// startLaptop starts a k6 process with the command in README.md, and with further variables. fmt.Sprint of its Stdout is
// its output.
func startLaptop(t *testing.T, url, prefix string, connections int, shards string, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(filepath.Join(root, "bin", "k6"), "run", filepath.Join(root, "load-tests", "sse", "connectionTest.js"),
		"--vus", fmt.Sprint(connections), "--iterations", fmt.Sprint(connections), "--duration", "60m", "--out", "soak="+shards)
	for _, variable := range append([]string{"BACKEND_URL=" + url, "PREFIX=" + prefix}, env...) {
		cmd.Args = append(cmd.Args, "--env", variable)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd
}

// The shards of two laptops are merged into one verdict.
func TestTwoLaptopsMakeOneVerdict(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault, second string
		exits         [2]int
		want          verdict.Outcome
		wantText      []string
	}{
		"a loss":                           {"drop:id=laptop-a-2,noop=3", "laptop-b-", [2]int{99, 0}, verdict.Fail, []string{"laptop-a-2 missed noop 3", "PREFIX laptop-a-)"}},
		"one PREFIX":                       {"", "laptop-a-", [2]int{0, 0}, verdict.Invalid, []string{`two runs have the PREFIX "laptop-a-"`}},
		"one PREFIX starts with the other": {"", "laptop-a-1", [2]int{0, 0}, verdict.Pass, []string{"10 streams open to the end"}}, // the first laptop has no laptop-a-10
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, shards, env := backend(t, "NOOP_INTERVAL=1s", "BACKEND_FAULT="+c.fault), t.TempDir(), []string{"NOOP_INTERVAL=1", "SECONDS=9"}
			first := startLaptop(t, url, "laptop-a-", 6, shards, env...)
			if c.second == "laptop-a-" { // both have the same ids, so each needs its own service
				url = backend(t, "NOOP_INTERVAL=1s")
			}
			for i, l := range []*exec.Cmd{first, startLaptop(t, url, c.second, 4, shards, env...)} {
				_ = l.Wait()
				require.Equal(t, c.exits[i], l.ProcessState.ExitCode(), fmt.Sprint(l.Stdout))
			}
			v, text := mergeFolder(t, shards)
			require.Equal(t, c.want, v.Verdict, text)
			for _, wantText := range c.wantText {
				require.Contains(t, reasons(v), wantText)
			}
			if v.Verdict == verdict.Pass {
				require.Equal(t, 10, v.Connections.Completed)
				require.Equal(t, 10, v.Plan.Connections)
				require.Len(t, v.Runners, 2)
				for _, name := range []string{"Get status was 200", "Delete status was 200", "Received all messages"} {
					require.Contains(t, fmt.Sprint(first.Stdout), "✓ "+name)
				}
				requireExpectedLaptops(t, shards)
			}
		})
	}
}

// requireExpectedLaptops removes the shard of the second laptop. A merge then passes, with a note, unless --expect
// states that there were two laptops.
func requireExpectedLaptops(t *testing.T, shards string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(shards, "runner-1-*.json.gz"))
	require.NoError(t, err)
	require.Len(t, files, 2)
	for _, file := range files {
		s, err := shard.ReadFile(file)
		require.NoError(t, err)
		if s.Plan.Prefix != "laptop-a-" {
			require.NoError(t, os.Remove(file))
		}
	}
	v, text := mergeFolder(t, shards)
	require.Equal(t, verdict.Pass, v.Verdict, text)
	require.Contains(t, reasons(v), `the shards are from 1 laptop (PREFIX "laptop-a-")`)

	v, text = mergeFolder(t, shards, "--expect", "2")
	require.Equal(t, verdict.Invalid, v.Verdict, text)
	require.Contains(t, reasons(v), `the shards of 1 of 2 laptops are missing: 2 expected (--expect), 1 found (PREFIX "laptop-a-")`)
	v, text = mergeFolder(t, shards)
	require.Equal(t, verdict.Invalid, v.Verdict, "the merge must still expect two laptops: %s", text)
	require.Contains(t, reasons(v), "pass --expect 0 to remove it")
	v, text = mergeFolder(t, shards, "--expect", "0")
	require.Equal(t, verdict.Pass, v.Verdict, text)
}

// If all clients of one laptop miss a message without a number, the comparison with the clients of the other laptop
// shows the loss.
func TestLaptopsCompareTheClientsOfAFeed(t *testing.T) {
	t.Parallel()
	var faults []faulty.Fault
	for n := range 4 {
		faults = append(faults, faulty.Fault{Kind: faulty.Lose, Client: fmt.Sprint("laptop-b-", n), Message: 45})
	}
	proxy := startProxy(t, pricesHub(t, nil), faulty.Options{Marker: "event: price", Faults: faults})
	shards, service := t.TempDir(), "SERVICE="+describePrices(t)
	a := startLaptop(t, proxy.URL, "laptop-a-", 6, shards, service, "SECONDS=14")
	b := startLaptop(t, proxy.URL, "laptop-b-", 4, shards, service, "SECONDS=14")
	require.NoError(t, a.Wait(), fmt.Sprint(a.Stdout))
	require.NoError(t, b.Wait(), fmt.Sprint(b.Stdout))
	v, text := mergeFolder(t, shards)
	require.Equal(t, verdict.Fail, v.Verdict, text)
	require.Equal(t, [3]uint64{4, 0, 0}, [3]uint64{v.Messages.Missed, v.Messages.Duplicated, v.Messages.Reordered}, text)
	require.Regexp(t, `laptop-b-\d missed message \d+, which .* of 10 clients received`, reasons(v))
	require.NotContains(t, reasons(v), "laptop-a-")
	require.Len(t, proxy.Actions(), 4)
}

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

	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/services/faulty"
)

// A laptop is a k6 process that was started by the command in README.md.
type laptop struct {
	cmd *exec.Cmd
	out bytes.Buffer
}

// startLaptop starts k6 with further variables.
func startLaptop(t *testing.T, url, prefix, connections, shards string, env ...string) *laptop {
	t.Helper()
	l := &laptop{cmd: exec.Command(filepath.Join(root, "bin", "k6"), "run", filepath.Join(root, "load-tests", "sse", "connectionTest.js"),
		"--vus", connections, "--iterations", connections, "--duration", "60m",
		"--env", "BACKEND_URL="+url, "--env", "NOOP_INTERVAL=1", "--env", "SECONDS=9", "--env", "PREFIX="+prefix, "--out", "soak="+shards)}
	for _, variable := range env {
		l.cmd.Args = append(l.cmd.Args, "--env", variable)
	}
	l.cmd.Stdout, l.cmd.Stderr = &l.out, &l.out
	require.NoError(t, l.cmd.Start())
	t.Cleanup(func() { _ = l.cmd.Process.Kill() })
	return l
}

// twoLaptops starts two laptops that write their shards to one folder. second is the prefix of the second one.
func twoLaptops(t *testing.T, fault, second string) (shards string, laptops [2]*laptop) {
	t.Helper()
	url, shards := backend(t, "NOOP_INTERVAL=1s", "BACKEND_FAULT="+fault), t.TempDir()
	laptops[0] = startLaptop(t, url, "laptop-a-", "6", shards)
	if second == "laptop-a-" { // both have the same ids, so each needs its own service
		url = backend(t, "NOOP_INTERVAL=1s")
	}
	laptops[1] = startLaptop(t, url, second, "4", shards)
	return shards, laptops
}

// mergeLaptops runs `soak merge` on the shards of laptops.
func mergeLaptops(t *testing.T, shards string, args ...string) (v *verdict.Verdict, text string) {
	t.Helper()
	code, text := merge(t, shards, "unused", args...)
	v = readVerdict(t, results.Dir(shards))
	require.Equal(t, v.Verdict.ExitCode(), code, text)
	return v, text
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
			shards, laptops := twoLaptops(t, c.fault, c.second)
			for _, l := range laptops {
				_ = l.cmd.Wait()
			}
			for i, l := range laptops {
				require.Equal(t, c.exits[i], l.cmd.ProcessState.ExitCode(), l.out.String())
			}
			v, text := mergeLaptops(t, shards)
			require.Equal(t, c.want, v.Verdict, text)
			for _, wantText := range c.wantText {
				require.Contains(t, reasons(v), wantText)
			}
			if v.Verdict == verdict.Pass {
				require.Equal(t, 10, v.Connections.Completed)
				require.Equal(t, 10, v.Plan.Connections)
				require.Len(t, v.Runners, 2)
				for _, name := range []string{"Get status was 200", "Delete status was 200", "Received all messages"} {
					require.Contains(t, laptops[0].out.String(), "✓ "+name)
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
	v, text := mergeLaptops(t, shards)
	require.Equal(t, verdict.Pass, v.Verdict, text)
	require.Contains(t, reasons(v), `the shards are from 1 laptop (PREFIX "laptop-a-")`)

	v, text = mergeLaptops(t, shards, "--expect", "2")
	require.Equal(t, verdict.Invalid, v.Verdict, text)
	require.Contains(t, reasons(v), `the shards of 1 of 2 laptops are missing: 2 expected (--expect), 1 found (PREFIX "laptop-a-")`)
	v, text = mergeLaptops(t, shards)
	require.Equal(t, verdict.Invalid, v.Verdict, "the merge must still expect two laptops: %s", text)
	require.Contains(t, reasons(v), "pass --expect 0 to remove it")
	v, text = mergeLaptops(t, shards, "--expect", "0")
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
	proxy, err := faulty.Start(pricesHub(t, nil), faulty.Options{Marker: "event: price", Faults: faults})
	require.NoError(t, err)
	t.Cleanup(proxy.Stop)
	shards, service := t.TempDir(), "SERVICE="+describePrices(t)
	a := startLaptop(t, proxy.URL, "laptop-a-", "6", shards, service, "SECONDS=14")
	b := startLaptop(t, proxy.URL, "laptop-b-", "4", shards, service, "SECONDS=14")
	require.NoError(t, a.cmd.Wait(), a.out.String())
	require.NoError(t, b.cmd.Wait(), b.out.String())
	v, text := mergeLaptops(t, shards)
	require.Equal(t, verdict.Fail, v.Verdict, text)
	require.Equal(t, [3]uint64{4, 0, 0}, [3]uint64{v.Messages.Missed, v.Messages.Duplicated, v.Messages.Reordered}, text)
	require.Regexp(t, `laptop-b-\d missed message \d+, which .* of 10 clients received`, reasons(v))
	require.NotContains(t, reasons(v), "laptop-a-")
	require.Len(t, proxy.Actions(), 4)
}

func TestKilledLaptopIsInvalid(t *testing.T) {
	t.Parallel()
	shards, laptops := twoLaptops(t, "", "laptop-b-")
	await(t, "both laptops must write their first shards", func() bool {
		files, err := filepath.Glob(filepath.Join(shards, "runner-1-*.json.gz"))
		return err == nil && len(files) == 2
	})
	require.NoError(t, laptops[1].cmd.Process.Kill())
	_ = laptops[1].cmd.Wait()
	require.NoError(t, laptops[0].cmd.Wait(), laptops[0].out.String())
	v, text := mergeLaptops(t, shards)
	require.Equal(t, verdict.Invalid, v.Verdict, text)
	require.Contains(t, reasons(v), "runner 1 of laptop-b- on ")
	require.Contains(t, reasons(v), "it left no final shard")
}

//go:build e2e

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/address"
	"github.com/sse-soak/sse-soak/test/services/faulty"
)

// merge runs `soak merge` on a folder or a bucket, and returns its exit code and output.
func merge(t *testing.T, location, out string, args ...string) (code int, text string) {
	t.Helper()
	b, err := exec.Command(filepath.Join(root, "bin", "soak"), append([]string{"merge", location, "--out", out}, args...)...).CombinedOutput()
	if exit, ok := err.(*exec.ExitError); ok {
		return exit.ExitCode(), string(b)
	}
	require.NoError(t, err, string(b))
	return 0, string(b)
}

// mergeFolder runs `soak merge` on the shards in a folder, and returns the verdict and the output.
func mergeFolder(t *testing.T, shards string, args ...string) (v *verdict.Verdict, text string) {
	t.Helper()
	code, text := merge(t, shards, "unused", args...)
	v = readVerdict(t, results.Dir(shards))
	require.Equal(t, v.Verdict.ExitCode(), code, text)
	return v, text
}

// stablePart returns the parts of a verdict that do not depend on the speed of the machine.
func stablePart(v *verdict.Verdict) map[string]any {
	checks := map[string]bool{}
	for _, c := range v.Checks {
		checks[string(c.ID)] = c.Pass || c.Severity == verdict.SeverityWarning
	}
	delete(checks, string(verdict.CheckInterval)) // the interval is measured
	runners := []string{}
	for _, r := range v.Runners {
		runners = append(runners, fmt.Sprint(r.Index, r.Segment, r.State, r.Connections, r.Received > 0, r.Missed))
	}
	return map[string]any{
		"verdict": v.Verdict, "connections": v.Connections, "floor": v.Messages.Floor, "missed": v.Messages.Missed,
		"faults": v.Messages.Duplicated + v.Messages.Reordered + v.Messages.Corrupted, "server": []bool{v.Server.Known, v.Server.Agrees},
		"checks": checks, "script_checks": v.ScriptChecks, "runners": runners,
	}
}

// A run of two machines with one runner each has the same verdict as a run of one machine with two runners.
func TestPartsOfARunMakeOneVerdict(t *testing.T) {
	t.Parallel()
	url := backend(t, "NOOP_INTERVAL=1s")
	flags := func(prefix string) []string {
		return []string{"--backend-url", url, "--prefix", prefix, "--connections", "31", "--seconds", "8", "--noop-interval", "1"}
	}
	oneMachine := begin(t, nil, append(flags("one-"), "--runners", "2")...)
	want := oneMachine.verdict()
	require.Equal(t, verdict.Pass, want.Verdict, oneMachine.out.String())

	b := startBucket(t)
	start := time.Now().Add(2 * time.Second).UTC().Format(time.RFC3339)
	var parts []*soakRun
	references := []string{address.Reserve(t), address.Reserve(t)}
	for i, runner := range []string{"1/2", "2/2"} { // the control group of each runner uses the reference of the other one
		parts = append(parts, begin(t, nil, append(flags("bucket-"), "--runner", runner, "--shards", b.location, "--start-at", start,
			"--control-listen", references[i], "--control-url", "http://"+references[1-i])...))
	}
	for i, p := range parts {
		require.Equal(t, 0, p.end(), p.out.String())
		require.Contains(t, p.out.String(), fmt.Sprintf("part %d of 2 is finished", i+1))
		require.Contains(t, p.out.String(), "no verdict yet")
		require.Contains(t, p.out.String(), b.run())
	}
	v, text := b.merge(t)
	require.Equal(t, verdict.Pass, v.Verdict, text)
	require.Equal(t, stablePart(want), stablePart(v), text)
	require.True(t, v.Control.Decides && v.Control.URL == "", "%+v", v.Control)
	require.Equal(t, 40, v.Control.Streams)
	requireDamageIsFound(t, b)
}

// A runner replaces an interrupted runner, and continues with the clients of that runner.
func TestReplacedRunner(t *testing.T) {
	t.Parallel()
	url, shared := backend(t, "NOOP_INTERVAL=1s"), t.TempDir()
	part := func(runner string, args ...string) *soakRun {
		return begin(t, nil, append([]string{"--backend-url", url, "--connections", "20", "--seconds", "24", "--noop-interval", "1",
			"--min-coverage", "40", "--runner", runner, "--shards", shared}, args...)...)
	}
	complete, first := part("1/2"), part("2/2")
	complete.awaitStreams("10")
	first.awaitStreams("10")
	require.NoError(t, first.cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 2, first.end(), first.out.String())
	second := part("2/2", "--continue")
	require.Equal(t, 0, second.end(), second.out.String())
	require.Contains(t, second.out.String(), "its clients continue for")
	require.Equal(t, 0, complete.end(), complete.out.String())
	v, text := mergeFolder(t, filepath.Join(shared, "t"))
	require.Equal(t, verdict.Pass, v.Verdict, text)
	require.Equal(t, []int{20, 20, 0}, []int{v.Connections.Opened, v.Connections.Completed, v.Connections.Unwatched})
	require.Len(t, v.Runners, 3)
	require.Greater(t, v.Watched.Share, .5, "the other runner must have watched half of the run")
	require.Less(t, v.Watched.Share, 1.)
	require.Equal(t, 24, v.Plan.Seconds)

	third := part("2/2", "--continue")
	require.Equal(t, 64, third.end())
	require.Contains(t, third.out.String(), "continue runner 2: it has finished")
}

// A final shard that cannot be stored in the bucket is saved locally. After it is copied to the other shards, the run
// is complete.
func TestDeniedShardIsSavedLocally(t *testing.T) {
	t.Parallel()
	b := startBucket(t)
	url := backend(t, "NOOP_INTERVAL=1s")
	r := begin(t, nil, "--backend-url", url, "--connections", "20", "--seconds", "8", "--noop-interval", "1", "--shards", b.location)
	r.awaitStreams("20")
	b.readOnly.Store(true)
	require.Equal(t, 2, r.end(), r.out.String())
	require.Contains(t, strings.Join(strings.Fields(r.out.String()), " "), "left no final shard") // the text is wrapped
	require.Contains(t, r.out.String(), "access denied")
	files := regexp.MustCompile(`saved as (\S+\.json\.gz)\); copy it to s3://soaks/all/t/(runner-1-\S+\.json\.gz) and`).FindStringSubmatch(r.out.String())
	require.NotNil(t, files, r.out.String())
	t.Cleanup(func() {
		for _, match := range regexp.MustCompile(`saved as (\S+\.json\.gz)\);`).FindAllStringSubmatch(r.out.String(), -1) {
			_ = os.Remove(match[1])
		}
	})
	require.NoError(t, exec.Command("cp", files[1], r.dir.Path(filepath.Join(results.ShardsDir, files[2]))).Run())
	v, text := mergeFolder(t, string(r.dir))
	require.Equal(t, verdict.Pass, v.Verdict, text)
}

// The runners share several backends, whose ledgers are added up.
func TestSeveralBackends(t *testing.T) {
	t.Parallel()
	r := begin(t, nil, "--backends", "2", "--runners", "3", "--connections", "95", "--connections-per-vu", "10", "--seconds", "8", "--noop-interval", "1", "--no-nginx")
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.Contains(t, r.out.String(), "2 backends started here, without nginx")
	require.True(t, v.Server.Known && v.Server.Agrees)
	require.Equal(t, v.Messages.Received, v.Server.Sent)
	require.EqualValues(t, 95, v.EndRequests.Count, "the count must be the sum of three shards")
	require.Len(t, v.EndRequests.Servers, 2)
	require.EqualValues(t, 95, v.EndRequests.Servers[0].Count+v.EndRequests.Servers[1].Count)
	require.FileExists(t, r.dir.Path("requests-that-end-the-streams.csv"))
	require.FileExists(t, r.dir.Path("backend-1.log"))
	require.FileExists(t, r.dir.Path("backend-2.log"))
}

// startLaptop starts a k6 process with the command in README.md, and with further variables. fmt.Sprint of its Stdout
// is its output.
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

func TestKilledLaptopIsInvalid(t *testing.T) {
	t.Parallel()
	url, shards, env := backend(t, "NOOP_INTERVAL=1s"), t.TempDir(), []string{"NOOP_INTERVAL=1", "SECONDS=9"}
	first, second := startLaptop(t, url, "laptop-a-", 6, shards, env...), startLaptop(t, url, "laptop-b-", 4, shards, env...)
	await(t, "both laptops must write their first shards", func() bool {
		files, err := filepath.Glob(filepath.Join(shards, "runner-1-*.json.gz"))
		return err == nil && len(files) == 2
	})
	require.NoError(t, second.Process.Kill())
	_ = second.Wait()
	require.NoError(t, first.Wait(), fmt.Sprint(first.Stdout))
	v, text := mergeFolder(t, shards)
	require.Equal(t, verdict.Invalid, v.Verdict, text)
	require.Contains(t, reasons(v), "runner 1 of laptop-b- on ")
	require.Contains(t, reasons(v), "it left no final shard")
}

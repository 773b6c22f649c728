//go:build e2e

package e2e

import (
	"encoding/csv"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

func TestSoak(t *testing.T) {
	t.Parallel()
	r := begin(t, nil, "--connections", "50", "--seconds", "12", "--noop-interval", "1", "--runners", "2", "--prefix", "e2e-")
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.Equal(t, verdict.Connections{Planned: 50, Opened: 50, Completed: 50}, v.Connections)
	require.EqualValues(t, 350, v.Messages.Floor)
	require.InDelta(t, 350, v.Messages.Expected, 50, "each client must expect floor(open / interval) noops, or one more")
	require.Equal(t, v.Messages.Expected, v.Messages.Received)
	require.True(t, v.Server.Known)
	require.True(t, v.Server.Agrees)
	require.Equal(t, v.Messages.Received, v.Server.Sent)
	require.Positive(t, v.Resources.BackendRSSMax)
	require.Positive(t, v.Resources.RunnerRSSMax)
	require.Positive(t, v.ConnectMS.P50)
	require.NotNil(t, v.LatencyMS)
	require.Equal(t, "send", v.LatencyMS.Above)
	for _, c := range v.ScriptChecks {
		require.EqualValues(t, 50, c.Passes, c.Name)
	}

	for _, name := range []string{
		results.PlanFile, results.LedgerFile, results.PageFile, "report.md", "report.txt", "connections.csv", "series.csv", "k6-runner-1.log", "k6-runner-2.log",
	} {
		require.FileExists(t, r.dir.Path(name))
	}
	require.FileExists(t, filepath.Join(filepath.Dir(string(r.dir)), "latest", results.VerdictFile))
	f, err := os.Open(r.dir.Path("connections.csv"))
	require.NoError(t, err)
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 51)
	r.requireNarrowReport()
}

// cleanRuns returns the number of clean runs that must pass: CLEAN_RUNS, or 3 by default.
func cleanRuns(t *testing.T) int {
	n, err := strconv.Atoi(os.Getenv("CLEAN_RUNS"))
	if err != nil {
		return 3
	}
	t.Logf("%d clean runs", n)
	return n
}

// Clean runs must pass even on busy cores, in parallel with all other tests.
func TestCleanRunsPass(t *testing.T) {
	t.Parallel()
	for n := range cleanRuns(t) {
		t.Run(strconv.Itoa(n+1), func(t *testing.T) {
			t.Parallel()
			r := begin(t, nil, "--connections", "100", "--seconds", "10", "--noop-interval", "1")
			v := r.verdict()
			require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
			require.Zero(t, v.Messages.Missed)
		})
	}
}

func TestKilledRunnerIsInvalid(t *testing.T) {
	t.Parallel()
	m := mark(t)
	r := begin(t, []string{m}, "--connections", "20", "--seconds", "10", "--noop-interval", "1", "--runners", "2")
	await(t, "the runners must start", func() bool {
		return strings.Contains(r.log("k6-runner-1.log", "backend.log"), "listening") && len(runnersOf(m)) == 2
	})
	require.NoError(t, syscall.Kill(runnersOf(m)[0], syscall.SIGKILL))
	v := r.verdict()
	require.Equal(t, verdict.Invalid, v.Verdict, r.out.String())
	require.Contains(t, reasons(v), "killed")
}

// The clients of an interrupted runner, for example on a drained host, are judged up to the interruption. Messages
// after the interruption do not count as missing.
func TestRunnerThatEndsEarly(t *testing.T) {
	t.Parallel()
	m := mark(t)
	r := begin(t, []string{m}, "--connections", "20", "--seconds", "16", "--noop-interval", "0.5", "--min-coverage", "40", "--runners", "2")
	await(t, "all streams must be open", func() bool { return strings.Contains(r.out.String(), "20/20 open") })
	require.NoError(t, syscall.Kill(runnersOf(m)[0], syscall.SIGTERM))
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.Equal(t, 10, v.Connections.Unwatched)
	require.Equal(t, 10, v.Connections.Completed)
	require.Contains(t, v.Sentence, "client-seconds that were watched; ")
}

// log returns the content of files of the run. It skips files that do not exist.
func (r *soakRun) log(names ...string) (all string) {
	for _, n := range names {
		b, err := os.ReadFile(r.dir.Path(n))
		if err == nil {
			all += string(b)
		}
	}
	return all
}

// runnersOf returns the ids of the k6 processes of a run.
func runnersOf(mark string) (pids []int) {
	for _, pid := range processes(mark) {
		line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		if err == nil && strings.Contains(string(line), "--execution-segment") {
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestCtrlCStopsInOrderAndIsInvalid(t *testing.T) {
	t.Parallel()
	m := mark(t)
	r := begin(t, []string{m}, "--connections", "20", "--seconds", "60", "--noop-interval", "1")
	await(t, "the runner must start", func() bool { return len(runnersOf(m)) == 1 })
	start := time.Now()
	require.NoError(t, r.cmd.Process.Signal(os.Interrupt))
	v := r.verdict()
	require.Less(t, time.Since(start), 40*time.Second)
	require.Equal(t, verdict.Invalid, v.Verdict, r.out.String())
	require.Contains(t, reasons(v), "stopped by a signal")
	requireNoProcess(t, m)
}

func TestSecondCtrlCKills(t *testing.T) {
	t.Parallel()
	m := mark(t)
	r := begin(t, []string{m}, "--connections", "20", "--seconds", "60", "--noop-interval", "1", "--runners", "2")
	await(t, "the runners must start", func() bool { return len(runnersOf(m)) == 2 })
	for _, pid := range runnersOf(m) {
		require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP)) // so that the runners cannot stop gracefully
	}
	require.NoError(t, r.cmd.Process.Signal(os.Interrupt))
	await(t, "soak must notice the first signal", func() bool { return strings.Contains(r.out.String(), "stopping") })
	await(t, "a later signal must kill the runners", func() bool { // soak ignores a signal immediately after the first
		_ = r.cmd.Process.Signal(os.Interrupt) // fails if soak has ended
		return strings.Contains(r.out.String(), "killing everything")
	})
	require.Equal(t, 2, r.end())
	requireNoProcess(t, m)
}

func TestPortableScript(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault, wantText string
		fails           bool
	}{
		"all messages arrive": {"", "90 out of 90", false},
		"a loss":              {"stall:noop=2", "✗ Received all messages", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := exec.Command(filepath.Join(root, "bin", "k6"), "run", "--quiet", filepath.Join(root, "load-tests/sse/portable.js"),
				"--env", "BACKEND_URL="+backend(t, "NOOP_INTERVAL=1", "BACKEND_FAULT="+c.fault), "--env", "NOOP_INTERVAL=1", "--env", "SECONDS=10", "--env", "CONNECTIONS=30").CombinedOutput()
			require.Equal(t, c.fails, err != nil, string(out))
			require.Contains(t, string(out), c.wantText)
		})
	}
}

// faultCounts has the counts of a verdict that a fault changes.
type faultCounts struct {
	missed, duplicated, reordered, corrupted, late uint64
	dropped, refused                               int
}

func faultCountsOf(v *verdict.Verdict) faultCounts {
	n := v.Messages
	return faultCounts{n.Missed, n.Duplicated, n.Reordered, n.Corrupted, n.Late, v.Connections.Dropped, v.Connections.Refused}
}

// A knownFault is a fault of the backend on one stream, with the expected counts and finding.
type knownFault struct {
	name, fault string
	want        faultCounts
	reason      string
}

var (
	knownFaults = []knownFault{
		{"drop", "drop:id=ID,noop=3", faultCounts{missed: 1}, `ID missed noop 3: the number was skipped \(noticed at \d\d:\d\d:\d\d`},
		{"drop first", "drop:id=ID,noop=1", faultCounts{missed: 1}, `ID missed noop 1: the number was skipped`},
		{"duplicate", "duplicate:id=ID,noop=3", faultCounts{duplicated: 1}, `ID received noop 3 twice, the second time at \d\d:\d\d:\d\d`},
		{"reorder", "reorder:id=ID,noop=3", faultCounts{reordered: 1}, `ID received noop 3 out of order, at \d\d:\d\d:\d\d`},
		{"corrupt", "corrupt:id=ID,noop=3", faultCounts{corrupted: 1}, `ID received noop 3 corrupted at \d\d:\d\d:\d\d\S* UTC: "x" instead of "0"`},
		{"truncate", "truncate:id=ID,noop=3", faultCounts{missed: 1, dropped: 1}, `ID was closed by the server in the middle of a response after 2 noops, at \d\d:\d\d:\d\d\S* UTC`},
		{"stall", "stall:id=ID,noop=3", faultCounts{missed: 2, dropped: 1}, `ID went silent after 2 noops; closed by soak after \S+ s without data, at \d\d:\d\d:\d\d\S* UTC`},
		{"reset", "reset:id=ID,noop=3", faultCounts{dropped: 1}, `ID was disconnected \(reset\) after 2 noops, at \d\d:\d\d:\d\d\S* UTC`},
		{"refuse", "refuse:id=ID", faultCounts{refused: 1}, `ID was refused at \d\d:\d\d:\d\d\S* UTC \(status 503: refused by an injected fault; connect again\)`},
		{"wrong type", "wrong-type:id=ID", faultCounts{refused: 1}, `ID was refused at \d\d:\d\d:\d\d\S* UTC \(content_type: the response has the type "text/html; charset=utf-8", not text/event-stream\)`},
		{"slow headers", "slow-headers=14s:id=ID", faultCounts{refused: 1}, `ID was refused at \d\d:\d\d:\d\d\S* UTC \(connect_timeout: no complete response header\b.*\)`},
	}
	// delayFault needs a longer interval, because a stream is closed after 2.5 intervals without data.
	delayFault = knownFault{"delay", "delay=1500ms:id=ID,noop=3", faultCounts{late: 1}, `ID received noop 3 late by 1\.[45]\d* s, at \d\d:\d\d:\d\d`}
)

// allFindings returns the texts of all findings. Reasons group equal findings.
func allFindings(v *verdict.Verdict) string {
	var all strings.Builder
	for _, f := range v.Findings {
		fmt.Fprintln(&all, f.Text)
	}
	return all.String()
}

// A faultGroup has the faults of one soak, each on its own stream.
type faultGroup struct {
	interval string // NOOP_INTERVAL
	faults   []knownFault
	args     []string
}

var faultGroups = []faultGroup{
	{"1", knownFaults, []string{"--seconds", "18"}},
	{"2", []knownFault{delayFault}, []string{"--max-late", "0", "--seconds", "15"}},
}

// idOf returns the id of the client with fault i. Only every second client has a fault, because adjacent clients may
// share an HTTP/2 connection.
func idOf(i int) string { return fmt.Sprintf("soak-%d", 2*i) }

// expected returns the variables of the backend, and the expected counts and findings.
func (g faultGroup) expected() (env []string, want faultCounts, findings []string) {
	var faults []string
	for i, f := range g.faults {
		faults, findings = append(faults, strings.ReplaceAll(f.fault, "ID", idOf(i))), append(findings, strings.ReplaceAll(f.reason, "ID", idOf(i)))
		want = faultCounts{
			want.missed + f.want.missed, want.duplicated + f.want.duplicated, want.reordered + f.want.reordered, want.corrupted + f.want.corrupted,
			want.late + f.want.late, want.dropped + f.want.dropped, want.refused + f.want.refused,
		}
	}
	return []string{"BACKEND_FAULT=" + strings.Join(faults, ";"), "NOOP_INTERVAL=" + g.interval, "BACKEND_TOKEN=secret"}, want, findings
}

// soak runs a soak of a backend with the faults, and asserts that it fails with the given counts and findings.
func (g faultGroup) soak(t *testing.T, want faultCounts, findings []string, url string, env ...string) *verdict.Verdict {
	t.Helper()
	r := begin(t, append(env, "BACKEND_TOKEN=secret"), append([]string{"--prefix", "soak-", "--connections", "24", "--noop-interval", g.interval, "--backend-url", url}, g.args...)...)
	v := r.verdict()
	require.Equal(t, verdict.Fail, v.Verdict, r.out.String())
	require.Equal(t, want, faultCountsOf(v), allFindings(v)+r.out.String())
	for _, finding := range findings {
		require.Regexp(t, finding, allFindings(v))
	}
	require.Equal(t, v.Messages.Expected, v.Messages.Received+v.Messages.Missed+v.Messages.Corrupted)
	return v
}

// Each fault on one of many streams is counted exactly. Its finding names the fault, the client and the time.
func TestFaultsAreFoundExactly(t *testing.T) {
	t.Parallel()
	for _, g := range faultGroups {
		env, want, findings := g.expected()
		v := g.soak(t, want, nil, backend(t, env...))
		for i, f := range g.faults {
			t.Run(f.name, func(t *testing.T) { require.Regexp(t, findings[i], allFindings(v)) })
		}
	}
}

// The same faults, except the delay, are counted exactly over TLS and over HTTP/2.
func TestFaultsAreFoundExactlyOverOtherTransports(t *testing.T) {
	t.Parallel()
	g := faultGroups[0]
	env, want, findings := g.expected()
	t.Run("TLS", func(t *testing.T) {
		t.Parallel()
		certs := certificates(t)
		g.soak(t, want, findings, backendWithTLS(t, certs, env...), "SSL_CERT_FILE="+filepath.Join(certs, "ca.pem"))
	})
	t.Run("HTTP/2", func(t *testing.T) {
		t.Parallel()
		text := strings.Join(findings, "\n") // over HTTP/2, nginx resets a stream whose response is truncated
		findings := strings.Split(strings.ReplaceAll(text, "closed by the server in the middle of a response", `disconnected \(reset\)`), "\n")
		v := g.soak(t, want, findings, http2Front(t, backend(t, env...)), "K6_INSECURE_SKIP_TLS_VERIFY=true")
		require.Positive(t, v.HTTP2.Connections)
	})
}

// The first reason is the cause, the crash. Equal findings form one line with their exact count, even if only 50 of
// them are listed.
func TestCrashingBackendFails(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	r := begin(t, []string{"BACKEND_FAULT=die:noop=3"}, "--connections", "60", "--seconds", "9", "--noop-interval", "1", "--runners", "2", "--junit", filepath.Join(folder, "junit.xml"))
	v := r.verdict()
	require.Equal(t, verdict.Fail, v.Verdict, r.out.String())
	require.Equal(t, 60, v.Connections.Dropped)
	require.Regexp(t, `^the backend died at `, v.Reasons[0])
	require.Equal(t, "target stayed up", v.Checks[0].Name)
	require.Equal(t, uint64(60), v.Total(ledger.KindDropped))
	dropped := 0
	for _, g := range v.Groups {
		if g.Kind == string(ledger.KindDropped) {
			dropped += g.Connections
			require.Contains(t, v.Reasons, g.Text)
		}
	}
	require.Equal(t, 60, dropped)
	require.Regexp(t, `streams (of runner \d )?were (closed by the server in the middle of a response|disconnected \(reset\)), (each after noop \d|after noops \d to \d), (at|from) `, reasons(v))
	page, err := os.ReadFile(r.dir.Path(results.PageFile))
	require.NoError(t, err)
	require.Regexp(t, `(?s)Incidents.*the backend died at .*60 × dropped`, string(page))
	require.Contains(t, string(page), "planned")
	junit, err := os.ReadFile(filepath.Join(folder, "junit.xml"))
	require.NoError(t, err)
	require.Regexp(t, `(?s)name="target stayed up".*the backend died at`, string(junit))
}

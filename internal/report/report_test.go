package report

import (
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/machine"
	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

var update = flag.Bool("update", false, "update the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run `go test ./internal/report -update` to write the file")
	require.Equal(t, string(want), string(got))
}

// newRun returns a run with results of each kind.
func newRun() (*shard.Merged, *verdict.Verdict, []resources.Sample) {
	const start = 1_700_000_000
	p := plan.Default()
	p.TestID, p.Prefix, p.Connections, p.BackendURL, p.MaxLate, p.Reconnect = "20231114-221320", "d-", 4, "http://127.0.0.1:41234", 3, true
	lateness, connect := shard.NewHistogram(), shard.NewHistogram()
	for ms := range 100 {
		lateness.Record(time.Duration(ms) * time.Millisecond)
		connect.Record(time.Duration(ms) * 50 * time.Microsecond)
	}
	m := &shard.Merged{
		Plan: p, Service: shard.ServiceOf(service.Noop(p.Interval())), Connect: connect, FirstNoop: shard.NewHistogram(), Lateness: lateness,
		Runners: []shard.Runner{
			{Index: 1, Host: "host-a", Segment: "0:1/2", State: shard.Finished, RSSMax: 120 << 20, CPUSeconds: 40.25, StartedUS: start * 1e6, EndedUS: (start + 3600) * 1e6},
			{Index: 2, Host: "host-b", Segment: "1/2:1", State: shard.Finished, RSSMax: 3 << 30, CPUSeconds: 36, StartedUS: start * 1e6, EndedUS: (start + 3601) * 1e6},
		},
		Checks: []shard.ScriptCheck{{Name: "Get status was 200", Passes: 4}, {Name: "Received all messages", Passes: 2, Fails: 2}},
	}
	complete := func(id string) ledger.Record {
		return ledger.Record{
			ID: id, State: ledger.Completed, Reason: "server", Numbered: true, Attempts: 1, Streams: 1, Connect: 3 * time.Millisecond,
			OpenedAt: time.Second, ClosedAt: 3596 * time.Second, StreamTime: 3595 * time.Second, OpenTime: 3595 * time.Second, Last: 239,
			MaxGap: 15010 * time.Millisecond, MaxLateness: 10 * time.Millisecond,
			Counts: ledger.Counts{Received: 239},
		}
	}
	lossy, corrupt, reconnected := complete("d-1"), complete("d-2"), complete("d-3")
	lossy.Received, lossy.Lost, lossy.Late = 238, 1, 1
	lossy.Findings = []ledger.Finding{
		{Kind: ledger.KindLost, From: 7, To: 7, Count: 1, At: 121 * time.Second},
		{Kind: ledger.KindLate, From: 9, At: 150 * time.Second, Lateness: 1200 * time.Millisecond},
	}
	lossy.Unlisted = 2
	corrupt.Received, corrupt.Corrupted = 238, 1
	corrupt.Findings = []ledger.Finding{{Kind: ledger.KindCorrupted, From: 3, At: 46 * time.Second, Note: "=HYPERLINK(\"http://x|<b>\"), *bold*\n# `head`"}}
	reconnected.Streams, reconnected.Attempts, reconnected.Outages = 2, 3, []ledger.Outage{{From: 100 * time.Second, To: 101500 * time.Millisecond}}
	reconnected.Survived, reconnected.Longest, reconnected.OutageTime, reconnected.OpenTime = 1, reconnected.Outages[0], 1503*time.Millisecond, 3593500*time.Millisecond
	reconnected.Refusals = []ledger.Refusal{{Reason: "status 503", Count: 1, First: 101 * time.Second, Last: 101 * time.Second}}
	for _, c := range []shard.Connection{{Record: complete("d-0")}, {Record: lossy}, {Record: corrupt, Runner: 1}, {Record: reconnected, Runner: 1}} {
		m.Connections.Add(&c)
	}
	m.Series = []shard.Bucket{
		{Unix: start, Open: 4, Opened: 4, ProcessUsage: shard.ProcessUsage{RSS: 100 << 20, HeapLive: 30 << 20, CPUPercent: 12.34, Goroutines: 40}},
		{Unix: start + 5, Open: 4, Noops: 4, Late: 1, Faults: 1, Lateness: lateness.Pack(), ProcessUsage: shard.ProcessUsage{RSS: 110 << 20, HeapLive: 31 << 20, CPUPercent: 2, Goroutines: 41, Threads: 11, GCPauseUS: 99, RunDelayMS: 3, StallMS: 4}},
		{Unix: start + 10, Closed: 4},
	}
	samples := []resources.Sample{
		{Unix: start + 1, BackendRSS: 20 << 20, BackendCPU: 1, Streams: 4, Goroutines: 9, Files: 12, NginxRSS: 8 << 20, NginxCPU: .5},
		{
			Unix: start + 6, BackendRSS: 21 << 20, BackendCPU: 1.5, Streams: 4, Goroutines: 9, Files: 12, BackendThreads: 7, NginxRSS: 8 << 20, NginxCPU: .6, NginxThreads: 3,
			Host: resources.Host{System: resources.System{Received: 5000, Transmitted: 7000, LookupMS: 1.5}},
		},
		{Unix: start + 11, BackendRSS: 19 << 20, BackendCPU: .1, NginxRSS: 8 << 20, NginxCPU: .6}, // a new backend
	}
	for i := range m.Runners { // each has its own machine; the conntrack table of the second one is almost full
		w := machine.NewRemote("", time.Second)
		w.Add(m.Runners[i].Started(), machine.Reading{machine.Steal: 0, machine.OutSegs: 0, machine.Retrans: 0, machine.Overflows: 7, machine.Drops: 7, "pps_allowance_exceeded": 0, machine.OOMKills: 2})
		w.Add(m.Runners[i].Started().Add(time.Hour), machine.Reading{
			machine.Steal: .25, machine.OutSegs: 100_000, machine.Retrans: 12, machine.Overflows: 7 + float64(i), machine.Drops: 8 + float64(i), "pps_allowance_exceeded": 14 * float64(i),
			machine.OOMKills: 2, machine.ConntrackEntries: 1000 + 950*float64(i), "nf_conntrack_max": 2000,
		})
		m.Runners[i].Machine = w.Record()
		m.Runners[i].Machine.Boot, m.Runners[i].Machine.Cores = fmt.Sprint("boot-", i), 2
	}
	group := shard.Control{URL: "http://host-b:7070", Remote: true, Streams: 20, LateMS: 1000, Opened: 20, ControlCounts: shard.ControlCounts{Expected: 72_000, Received: 72_000, Late: 20, LongestUS: 1_300_000}}
	m.Control = &group
	for i := range m.Runners {
		m.Runners[i].ControlGroup = &shard.RunnerControl{Control: group}
	}
	m.Runners[0].ControlGroup.Moments = []shard.ControlMoment{{At: time.Unix(start+150, 0), Longest: 1300 * time.Millisecond, Late: 1}}
	m.EndRequests = new(shard.EndRequests)
	for i, duration := range []time.Duration{8 * time.Millisecond, 21 * time.Millisecond, 1300 * time.Microsecond} {
		m.EndRequests.Add(fmt.Sprintf("backend-%d", 1+i%2), shard.CodeOK, time.Unix(start+3595, 0).Add(duration), duration)
	}
	m.EndRequests.Add("backend-2", shard.CodeStatus+"404", time.Unix(start+3596, 0), 2*time.Millisecond)
	m.Redirects = []shard.Redirect{{Origin: "http://127.0.0.1:41235", Streams: 1}}
	server := verdict.ServerLedger{}
	for _, c := range m.Connections.All() {
		server[c.ID] = verdict.ServerEntry{ID: c.ID, First: 1, Last: 239, Sent: 239}
	}
	v, err := suite.Judge(&verdict.Evidence{
		Rounds: []*shard.Merged{m}, Server: server, OneHost: true,
		Failures: []verdict.TargetFailure{{Unix: start + 400, Text: "the backend died at 22:20:00 UTC (signal: killed) and was restarted"}},
		Warnings: []string{"1000 MiB of memory is available, but the run may use 2000 MiB; raise CONNECTIONS_PER_VU to share virtual users, or lower CONNECTIONS"},
		RunInfo: &verdict.RunInfo{
			Command: []string{"env", "CONNECTIONS=4", "bin/soak", "run", "--at", "30m reload: true"}, Commit: "0123456789ab+dirty", Soak: "v1.2.3", Go: "go1.26.8", Backend: "devel", Nginx: "nginx/1.22.1",
			Machine: resources.Machine{Name: "host-a", System: "debian 12.11", Kernel: "6.1", CPU: "Some | CPU", Cores: 2, Memory: 8 << 30},
		},
	})
	if err != nil {
		panic(err)
	}
	v.Resources.SystemSummary = resources.SystemSummary{
		BackendThreads: 7, NginxThreads: 3, RunnerThreads: 11, Received: 40 << 20, Transmitted: 41 << 20, Lookups: 12, LookupP50: 1.5, LookupMax: 80,
	}
	v.Resources.BackendRSSMax, v.Resources.BackendCPUAverage, v.Resources.NginxRSSMax = 21<<20, 4.25, 8<<20
	return m, v, samples
}

func outputs() map[string]func(io.Writer) error {
	m, v, samples := newRun()
	return map[string]func(io.Writer) error{
		"report.txt":      func(w io.Writer) error { return Text(w, Brief(v)) },
		"report.md":       func(w io.Writer) error { return Markdown(w, Brief(v)) },
		"connections.csv": func(w io.Writer) error { return ConnectionsCSV(w, m, v) },
		"series.csv":      func(w io.Writer) error { return SeriesCSV(w, m, v, samples) },
	}
}

func TestFilesOfARun(t *testing.T) {
	t.Parallel()
	for name, write := range outputs() {
		golden(t, name, []byte(output(t, write)))
	}
	m, v, _ := newRun()
	require.NoError(t, SeriesCSV(io.Discard, m, v, nil), "without samples")
}

// Only a merge finds messages that are missing at the end of a stream, so no runner counts them in its buckets.
func TestSeriesCountsFaultsThatAMergeFound(t *testing.T) {
	t.Parallel()
	m, v, _ := newRun()
	column := func(name string) (cells []string) {
		rows, err := csv.NewReader(strings.NewReader(output(t, func(w io.Writer) error { return SeriesCSV(w, m, v, nil) }))).ReadAll()
		require.NoError(t, err)
		i := slices.Index(rows[0], name)
		for _, row := range rows {
			if i >= 0 {
				cells = append(cells, row[i])
			}
		}
		return cells
	}
	require.Equal(t, []string{"faults", "0", "1", "0"}, column("faults"))
	m.Connections.Edit(0).Findings = []ledger.Finding{{Kind: ledger.KindTail, From: 1, To: 2, Count: 2, At: 6 * time.Second}}
	require.Equal(t, []string{"faults", "0", "2", "0"}, column("faults"))

	m.Plan.Connections = 0
	for _, name := range []string{"open", "noops", "late", "faults", "lateness_p50_ms"} {
		require.Empty(t, column(name), "a run without clients must not have zeros for their messages")
	}
	require.Len(t, column("runner_rss_bytes"), 4)
}

// A row has no resources of the target if there was no sample for longer than a bucket.
func TestSeriesDoesNotRepeatOldSamples(t *testing.T) {
	t.Parallel()
	var m shard.Merged
	for n := range 8 {
		m.Series = append(m.Series, shard.Bucket{Unix: int64(1000 + 5*n)})
	}
	samples := []resources.Sample{
		{Unix: 1001, BackendRSS: 7, BackendCPU: 1}, {Unix: 1004, BackendRSS: 8, BackendCPU: 1.3},
		{Unix: 1010, BackendRSS: 9, BackendCPU: 1.9}, {Unix: 1031, BackendRSS: 10, BackendCPU: 4},
	}
	rows, err := csv.NewReader(strings.NewReader(output(t, func(w io.Writer) error { return SeriesCSV(w, &m, &verdict.Verdict{}, samples) }))).ReadAll()
	require.NoError(t, err)
	rss, cpu := slices.Index(rows[0], "backend_rss_bytes"), slices.Index(rows[0], "backend_cpu_percent")
	var got []string
	for _, row := range rows[1:] {
		got = append(got, row[rss]+" "+row[cpu])
	}
	require.Equal(t, []string{"8 10.0", "8 10.0", "9 10.0", "9 10.0", "0 ", "0 ", "10 10.0", "10 10.0"}, got)
}

func output(t *testing.T, write func(io.Writer) error) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, write(&b))
	return b.String()
}

func textOf(t *testing.T, p *Page) string {
	t.Helper()
	return output(t, func(w io.Writer) error { return Text(w, p) })
}

func markdownOf(t *testing.T, p *Page) string {
	t.Helper()
	return output(t, func(w io.Writer) error { return Markdown(w, p) })
}

// The header of a column with marks is not wrapped, even if the cells are short.
func TestHeaderFitsAboveMarks(t *testing.T) {
	t.Parallel()
	require.Contains(t, output(t, func(w io.Writer) error {
		out := NewText(w, false)
		out.Table(&Table{Columns: []Column{{Name: "check"}, {Name: "limit"}}, Rows: []Row{{{Text: "MB/s", Mark: "✗"}, {Text: "any"}}}})
		return out.Flush()
	}), "    check  limit\nXX  MB/s   any\n")
}

func TestUnobservedClientsAreNotCompared(t *testing.T) {
	t.Parallel()
	_, v, _ := newRun()
	v.Connections.Unobserved = 3
	require.Contains(t, strings.Join(strings.Fields(textOf(t, Brief(v))), " "), "; 3 unobserved clients not compared")
	v.NoData = true
	require.NotContains(t, textOf(t, Brief(v)), "its ledger lists", "a ledger cannot agree with shards that are missing")
}

func TestRunInfo(t *testing.T) {
	t.Parallel()
	textOfInfo := func(info *verdict.RunInfo) (text string) {
		for _, row := range runInfo(&verdict.Verdict{RunInfo: info, Runners: []verdict.Runner{{K6Version: "v2.2.0"}, {K6Version: "v2.2.0"}}}).Tables[0].Rows {
			text += row[0].Text + ": " + row[1].Text + "\n"
		}
		return text
	}
	require.Equal(t, `command: not recorded
commit: not recorded
versions: soak not recorded, k6 v2.2.0, Go not recorded, nginx not recorded
machine: not recorded
system: not recorded
`, textOfInfo(nil))
	require.Equal(t, `command: bin/soak run --at '30m x: y'
commit: not recorded
versions: soak v1.2.3, k6 v2.2.0, Go 1.26.8, nginx not started by soak
machine: 1 core (CPU not recorded)
system: kernel 6.1
`, textOfInfo(&verdict.RunInfo{Command: []string{"bin/soak", "run", "--at", "30m x: y"}, Soak: "v1.2.3", Go: "go1.26.8", Machine: resources.Machine{Cores: 1, Kernel: "6.1"}}))
}

// injectMarkup replaces each text of a verdict that a service or a user controls with the given text.
func injectMarkup(v *verdict.Verdict, text string) {
	v.TestID, v.Plan.BackendURL, v.Plan.Prefix = text, text, text
	v.Reasons, v.Warnings = []string{text}, []string{text}
	v.Checks = []verdict.Check{{Name: text, Limit: text, Actual: text, Why: text}}
	v.ScriptChecks = []shard.ScriptCheck{{Name: text, Passes: 1}}
	v.Findings = []verdict.Finding{{Kind: text, ID: text, Text: text}}
	v.RefusedAttempts, v.LongestOutage = map[string]int{text: 1}, &verdict.Outage{ID: text, Seconds: 1}
	v.Runners = []verdict.Runner{{Index: 1, Host: text, Segment: text, State: text, K6Version: text}}
	v.Machines = []verdict.MachineReport{{Name: text, Runners: []int{1}, Unknown: text, Notices: []machine.Notice{{Name: text}}}}
}

func TestMarkdownEscapesText(t *testing.T) {
	t.Parallel()
	_, v, _ := newRun()
	injectMarkup(v, "a|b\n# c\r\n- d <img src=x> **e** _f_ `g` [h](i) \\| j & ~~k~~ http://l www.m n@o #1")
	text := markdownOf(t, Brief(v))
	for _, raw := range []string{"<img", "**e**", " _f_", " `g`", "[h](i)", "\n# c", "\n- d", " & ", "a|b", "~~k~~", "://", "www.", "@", " #1"} {
		require.NotContains(t, text, raw)
	}
	require.Contains(t, text, "&lt;img src=x&gt;")
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "| ✗") {
			bars := strings.Count(strings.ReplaceAll(strings.ReplaceAll(line, `\\`, ""), `\|`, ""), "|")
			require.Equal(t, 5, bars, line)
		}
	}
}

func TestTextFitsEightyColumns(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		strings.Repeat("some words of a sentence ", 12),
		"tabs\tand\nlines\r\nand \x1b[31mcolors\x1b[0m and " + strings.Repeat("ü", 60) + " and more of it",
	} {
		_, v, _ := newRun()
		url := v.Plan.BackendURL
		injectMarkup(v, text)
		v.Plan.BackendURL, v.TestID = url, "20231114-221320"
		v.Connections, v.Messages.Received, v.Messages.Expected = verdict.Connections{Opened: 100_000, Completed: 100_000, Refused: 99_999, Dropped: 99_999, Reconnected: 5_000_000}, 1e10, 1e10
		v.Messages.Missed, v.Messages.Duplicated, v.Server.Sent = 1e9, 1e9, 1e10
		page := textOf(t, Brief(v))
		require.NotContains(t, page, "\x1b", "escape sequences must be removed")
		for _, line := range strings.Split(page, "\n") {
			require.LessOrEqual(t, utf8.RuneCountInString(line), 80, line)
		}
	}
	_, v, _ := newRun()
	long := "http://" + strings.Repeat("x", 100)
	v.Reasons = []string{"see " + long + " for more"}
	page := textOf(t, Brief(v))
	require.Contains(t, page, long, "a word must not be broken")
	for _, line := range strings.Split(page, "\n") {
		require.True(t, utf8.RuneCountInString(line) <= 80 || strings.Contains(line, long), line)
	}
}

// A spreadsheet evaluates cells that start like a formula.
func TestFormulaCellsAreQuoted(t *testing.T) {
	t.Parallel()
	for _, evil := range []string{"=1+1", "+1", "-1+cmd|' /C calc'!A0", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1+1"} {
		m, v, _ := newRun()
		m.Connections.Edit(0).ID, m.Connections.Edit(0).Reason, m.Connections.Edit(0).State = evil, evil, ledger.State(evil)
		m.Connections.Edit(0).Findings = []ledger.Finding{{Kind: ledger.KindRefused, Note: evil}}
		m.Connections.Edit(0).Refusals = []ledger.Refusal{{Reason: evil, Count: 1}}
		rows, err := csv.NewReader(strings.NewReader(output(t, func(w io.Writer) error { return ConnectionsCSV(w, m, v) }))).ReadAll()
		require.NoError(t, err)
		for _, cell := range rows[1] {
			require.NotContains(t, "=+-@\t\r\n＝", string([]rune(cell + " ")[0]), cell)
		}
	}
}

type failingWriter struct{ remaining int }

func (f *failingWriter) Write(b []byte) (int, error) {
	if f.remaining -= len(b); f.remaining < 0 {
		return 0, errors.New("disk full")
	}
	return len(b), nil
}

func TestWriteErrorsAreReturned(t *testing.T) {
	t.Parallel()
	for name, write := range outputs() {
		for _, remaining := range []int{0, 100, 300} {
			require.ErrorContains(t, write(&failingWriter{remaining}), "disk full", name)
		}
	}
}

func TestFoldBreaksLongWordsOnRequest(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"stall", "under", "1,000", ",000", "ms"}, fold("stall under\t1,000,000 ms", 5, true))
	require.Equal(t, []string{"a", "bcdef"}, fold("a bcdef", 4, false))
	require.Equal(t, []string{"a bc", "d"}, fold("a bc d", 4, true))
}

// Without quotes, an empty argument would disappear from the command line.
func TestShellQuotes(t *testing.T) {
	t.Parallel()
	args := []string{"printf", "%s\\n", "--backend-url", "", "--prefix", "a b", "it's", "$HOME", "s3://b/p?region=x&profile=y", "*", "é"}
	line := Shell(args...)
	require.Contains(t, line, "--backend-url '' --prefix 'a b'")
	out, err := exec.Command("/bin/sh", "-c", line).Output()
	require.NoError(t, err)
	require.Equal(t, args[2:], strings.Split(strings.TrimSuffix(string(out), "\n"), "\n"))
	require.Equal(t, "bin/soak run --out=results", Shell("bin/soak", "run", "--out=results"))
}

// uncheckedVerdict returns the verdict of a run that passed but checked no messages.
func uncheckedVerdict() *verdict.Verdict {
	v := &verdict.Verdict{TestID: "t", Verdict: verdict.Pass, Plan: plan.Default(), Reasons: []string{"messages were not checked: the service description has message: 'unchecked'"}}
	v.Plan.Service = "sse"
	v.Service, v.Evidence.Kind = shard.Service{Name: "sse", CountBasis: shard.CountNothing}, verdict.ByNothing
	v.Messages.Heartbeats, v.Messages.Unchecked, v.Messages.Uncounted = 4, 304, 1
	v.Checks = []verdict.Check{verdict.Check{Name: "messages checked", Limit: "no limit", Pass: true}.NotJudged("no rule is defined")}
	return v
}

func TestPassOfConnectionsOnlyIsMarked(t *testing.T) {
	t.Parallel()
	v := uncheckedVerdict()
	text, markdown := textOf(t, Brief(v)), markdownOf(t, Brief(v))
	require.True(t, strings.HasPrefix(text, "PASS (connections only): messages were not checked"), text)
	require.Contains(t, text, "\n--  messages checked")
	require.Contains(t, text, "304 events that were not checked")
	require.Contains(t, markdown, "# ⚠️ PASS (connections only): messages were not checked")
	require.Contains(t, markdown, "| – messages checked |")
}

func TestClientsOfARun(t *testing.T) {
	t.Parallel()
	for connections, want := range map[int]string{1: "d-0", 4: "d-0 … d-3"} {
		m, v, _ := newRun()
		m.Plan.Connections, v.Plan.Connections = connections, connections
		require.Regexp(t, `(?m)^\| \*\*clients\*\* \| `+want+` \|$`, markdownOf(t, Full(&Run{Verdict: v, Merged: m})))
	}
}

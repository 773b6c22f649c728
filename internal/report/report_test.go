package report

import (
	"encoding/csv"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

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
	require.Contains(t, strings.Join(strings.Fields(textOf(t, Brief(v))), " "), "excluding 3 unobserved clients, its ledger lists")
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

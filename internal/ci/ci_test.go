package ci

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// newVerdict returns a verdict with a met check and a warning. A third check decides an outcome other than pass.
func newVerdict(outcome verdict.Outcome) *verdict.Verdict {
	v := &verdict.Verdict{
		TestID: "20260131-120000", Verdict: outcome, Plan: plan.Default(), StartedUnix: 1_700_000_000, EndedUnix: 1_700_003_600.5,
		Reasons: []string{"1200 connections open to the end"}, Warnings: []string{"the load generator was saturated"},
		Checks: []verdict.Check{
			{Name: "connections dropped", Limit: "0", Actual: "0", Pass: true, Why: "clients are disconnected"},
			{Name: "the load generator kept up", Limit: "yes", Actual: "no", Severity: verdict.SeverityWarning, Reasons: []string{"the load generator was saturated"}},
		},
	}
	v.Layout.Title = "Soak"
	if outcome == verdict.Fail {
		v.Checks = append(v.Checks, verdict.Check{Name: "noops missed", Limit: "0", Actual: "2", Why: "clients lose data", Reasons: []string{
			"soak-16 missed noop 3: the number was skipped (noticed at 01:52:25.404 UTC)", "soak-17 missed noop 9",
		}})
	}
	if outcome == verdict.Invalid {
		v.Checks = append(v.Checks, verdict.Check{Name: "all runners finished", Limit: "2", Actual: "1", Severity: verdict.SeverityInconclusive, Reasons: []string{"runner 2 left no shard"}})
	}
	if outcome != verdict.Pass {
		v.Reasons = v.Checks[2].Reasons
	}
	return v
}

// A step has the lines of an output: the commands that GitHub's runner executes, and all other lines.
type step struct{ commands, text []string }

var (
	commandLine   = regexp.MustCompile(`^\s*::([a-zA-Z-]+)[^:]*::(.*)$`)
	legacyCommand = regexp.MustCompile(`##\[[a-z-]+`) // may be anywhere in a line
)

// runStep splits an output as GitHub's runner does. The runner executes no commands from stop-commands to its token.
func runStep(text string) (s step) {
	token := ""
	for _, line := range strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		command := commandLine.FindStringSubmatch(line)
		switch {
		case token != "":
			if strings.TrimSpace(line) == "::"+token+"::" {
				token = ""
			} else {
				s.text = append(s.text, line)
			}
		case command != nil && command[1] == "stop-commands":
			token = command[2]
		case command != nil || legacyCommand.MatchString(line):
			s.commands = append(s.commands, strings.TrimSpace(line))
		default:
			s.text = append(s.text, line)
		}
	}
	return s
}

// setGitHubFiles sets the variables that name the files of a step, and returns functions that read these files.
func setGitHubFiles(t *testing.T) (summary, outputs func() string) {
	t.Helper()
	content := func(name string) func() string {
		path := filepath.Join(t.TempDir(), "file")
		t.Setenv(name, path)
		return func() string {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			return string(text)
		}
	}
	return content("GITHUB_STEP_SUMMARY"), content("GITHUB_OUTPUT")
}

func failOnWarning(t *testing.T) func(string) {
	t.Helper()
	return func(text string) { t.Error(text) }
}

// reportVerdict reports a verdict after a line of other output, and returns all output.
func reportVerdict(t *testing.T, systems Systems, v *verdict.Verdict, report string) string {
	t.Helper()
	var out strings.Builder
	reporter := Begin(systems, &out)
	fmt.Fprintln(&out, "the report")
	reporter.SetVerdict(v, report)
	require.NoError(t, reporter.End(nil, failOnWarning(t)))
	return out.String()
}

func TestAnnotationsContainTheFindings(t *testing.T) { //nolint:paralleltest // GitHub's variables
	for outcome, want := range map[verdict.Outcome][]string{
		verdict.Pass: {"::notice title=Soak pass::1200 connections open to the end", "::warning title=Soak::the load generator was saturated"},
		verdict.Fail: {
			"::error title=Soak fail%3A noops missed::soak-16 missed noop 3: the number was skipped (noticed at 01:52:25.404 UTC)%0Asoak-17 missed noop 9",
			"::warning title=Soak::the load generator was saturated",
		},
		verdict.Invalid: {"::error title=Soak invalid%3A all runners finished::runner 2 left no shard", "::warning title=Soak::the load generator was saturated"},
	} {
		summary, outputs := setGitHubFiles(t)
		got := runStep(reportVerdict(t, Systems{GitHub: true}, newVerdict(outcome), "results/x/report.html"))
		require.Equal(t, want, got.commands)
		require.Equal(t, []string{"the report"}, got.text)
		require.Contains(t, summary(), " "+strings.ToUpper(string(outcome))+": ")
		require.Contains(t, summary(), "20260131-120000 · ")
		require.Contains(t, summary(), "connections dropped |")
		require.Equal(t, "verdict="+string(outcome)+"\ntestid=20260131-120000\nreport=results/x/report.html\n", outputs())
	}
}

// GitHub's runner executes only the commands of soak, even if a text of a service or a script contains a command.
func TestTextsOfServicesAreNotCommands(t *testing.T) { //nolint:paralleltest // GitHub's variables
	for _, evil := range []string{
		"x\n::add-mask::a", "x\r::error::b", "x\r\n  ::stop-commands::c", "::set-env name=PATH::d", "##[add-matcher]e", "50% ::error::", "a,file=/etc/passwd:b", "x\nverdict=pass", "\x1b]0;title\x07\u202e",
	} {
		summary, outputs := setGitHubFiles(t)
		v := newVerdict(verdict.Fail)
		v.TestID, v.Warnings = evil, []string{evil}
		v.Checks = []verdict.Check{{Name: evil, Limit: evil, Actual: evil, Why: evil, Reasons: []string{evil}}}
		var out strings.Builder
		reporter := Begin(Systems{GitHub: true}, &out)
		fmt.Fprintln(&out, evil)
		reporter.SetVerdict(v, evil)
		err := reporter.End(errors.New(evil), failOnWarning(t))
		fmt.Fprintf(&out, "soak: %v\n", err)
		got := runStep(out.String())
		require.Len(t, got.commands, 2, "%q", got.commands)
		require.True(t, strings.HasPrefix(got.commands[0], "::error title=Soak fail%3A "), got.commands[0])
		require.True(t, strings.HasPrefix(got.commands[1], "::warning title=Soak::"), got.commands[1])
		for _, line := range got.commands {
			properties, _, _ := strings.Cut(strings.TrimPrefix(line, "::"), "::")
			require.NotContains(t, properties, ",", "a text must not end the property")
		}
		require.Equal(t, 3, strings.Count(outputs(), "\n"), "a text must not add an output")
		require.False(t, strings.ContainsAny(summary(), "\r\x1b\u202e"), "control characters must be escaped")
	}
}

func TestAnnotationsAreLimited(t *testing.T) {
	t.Parallel()
	v := newVerdict(verdict.Fail)
	for i := range 15 {
		v.Checks = append(v.Checks, verdict.Check{Name: fmt.Sprint("check ", i)})
		v.Warnings = append(v.Warnings, fmt.Sprint("warning ", i))
	}
	lines := annotations(v)
	require.Len(t, lines, 20)
	require.Equal(t, "::error title=Soak fail::and 7 more, which are in the summary of the step", lines[9])
	require.Equal(t, "::warning title=Soak::and 7 more, which are in the summary of the step", lines[19])

	passed, checked := newVerdict(verdict.Pass), false
	passed.Warnings, passed.Evidence.Kind, passed.MessagesChecked = v.Warnings, verdict.ByNothing, &checked
	lines = annotations(passed)
	require.Len(t, lines, 10, "the result of a pass without checked messages must be one of the ten warnings that GitHub shows")
	require.Contains(t, lines[0], "::warning title=Soak pass (connections only)::")
}

func TestLargeSummaryIsTruncated(t *testing.T) {
	t.Parallel()
	v := newVerdict(verdict.Fail)
	for range 10_000 {
		v.Warnings = append(v.Warnings, strings.Repeat("é", 50))
	}
	text := summary(v)
	require.Less(t, len(text), 210<<10)
	require.True(t, utf8.ValidString(text))
	require.Contains(t, text, "The rest is in report.md")
}

// Without a verdict, CI systems receive the error, and End returns an error that wraps it.
func TestErrorWithoutAVerdict(t *testing.T) { //nolint:paralleltest // GitHub's variables
	summary, outputs := setGitHubFiles(t)
	file := filepath.Join(t.TempDir(), "soak.xml")
	cause := fmt.Errorf("nothing answers at\nhttp://127.0.0.1:1: %w", io.ErrUnexpectedEOF)
	var out strings.Builder
	err := Begin(Systems{GitHub: true, JUnit: file}, &out).End(cause, failOnWarning(t))
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.EqualError(t, err, "nothing answers at; http://127.0.0.1:1: unexpected EOF")
	require.Equal(t, []string{"::error title=Soak invalid%3A verdict::nothing answers at%0Ahttp://127.0.0.1:1: unexpected EOF"}, runStep(out.String()).commands)
	require.Contains(t, summary(), "no verdict")
	require.Contains(t, summary(), "\n    nothing answers at; http://127.0.0.1:1")
	require.Contains(t, outputs(), "verdict=invalid\n")
	got := parse(t, file)
	require.Equal(t, 1, got.Errors)
	require.Contains(t, got.Cases[0].Error.Text, "nothing answers at")
}

// Outside of GitHub Actions there is no step summary. This does not change the verdict.
func TestUnwritableFileIsAWarning(t *testing.T) {
	t.Setenv("GITHUB_STEP_SUMMARY", "")
	t.Setenv("GITHUB_OUTPUT", "")
	folder := t.TempDir()
	var warnings []string
	reporter := Begin(Systems{GitHub: true, JUnit: filepath.Join(folder, "missing", "soak.xml")}, io.Discard)
	reporter.SetVerdict(newVerdict(verdict.Pass), "")
	require.NoError(t, reporter.End(nil, func(text string) { warnings = append(warnings, text) }))
	require.Len(t, warnings, 2)
	require.Contains(t, warnings[0], "soak.xml")
	require.Contains(t, warnings[1], "GITHUB_STEP_SUMMARY is not set")

	require.NoError(t, Systems{JUnit: filepath.Join(folder, "new.xml")}.Check())
	require.ErrorContains(t, Systems{JUnit: filepath.Join(folder, "missing", "new.xml")}.Check(), "--junit must be a file in an existing folder, got ")
	require.ErrorContains(t, Systems{JUnit: folder}.Check(), "must be a regular file")
}

func TestNothingIsReportedOutsideOfCI(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	reporter := Begin(Systems{}, &out)
	reporter.SetVerdict(newVerdict(verdict.Fail), "")
	cause := errors.New("one\ntwo")
	require.Equal(t, cause, reporter.End(cause, failOnWarning(t)))
	require.Empty(t, out.String())
	var nilReporter *Reporter
	nilReporter.SetVerdict(newVerdict(verdict.Pass), "")
}

func parse(t *testing.T, path string) testSuite {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	var suites testSuites
	require.NoError(t, xml.Unmarshal(content, &suites), "%s", content)
	require.Len(t, suites.Suites, 1)
	return suites.Suites[0]
}

func TestJUnitHasACaseForEachCheck(t *testing.T) {
	t.Parallel()
	for outcome, want := range map[verdict.Outcome][3]int{verdict.Pass: {2, 0, 0}, verdict.Fail: {3, 1, 0}, verdict.Invalid: {3, 0, 1}} {
		file := filepath.Join(t.TempDir(), "soak.xml")
		reportVerdict(t, Systems{JUnit: file}, newVerdict(outcome), "")
		s := parse(t, file)
		require.Equal(t, want, [3]int{s.Tests, s.Failures, s.Errors}, outcome)
		require.Equal(t, []string{"Soak", "3600.500", "2023-11-14T22:13:20"}, []string{s.Name, s.Time, s.Timestamp})
		require.Equal(t, property{"verdict", string(outcome)}, s.Properties[0])
		require.Equal(t, testCase{Class: "Soak", Name: "connections dropped", Out: "0; limit: 0"}, s.Cases[0])
		require.Equal(t, testCase{Class: "Soak", Name: "the load generator kept up", Out: "warning: the load generator was saturated"}, s.Cases[1], "a warning must not be a failure")
		switch outcome {
		case verdict.Pass:
		case verdict.Fail:
			require.Equal(t, &problem{"2; limit: 0", "fail", "soak-16 missed noop 3: the number was skipped (noticed at 01:52:25.404 UTC)\nsoak-17 missed noop 9\nclients lose data"}, s.Cases[2].Failure)
		case verdict.Invalid:
			require.Equal(t, &problem{"1; limit: 2", "invalid", "runner 2 left no shard"}, s.Cases[2].Error)
		}
	}
}

func TestJUnitIsValidXML(t *testing.T) {
	t.Parallel()
	const evil = "]]></failure><script>&amp;\"'\x00\x1b[31m\xff\n\ufffe<!-- é"
	v := newVerdict(verdict.Fail)
	v.TestID, v.Plan.BackendURL = evil, evil
	v.Checks = []verdict.Check{{Name: evil, Limit: evil, Actual: evil, Reasons: []string{evil}}, {Name: evil, Actual: evil, Pass: true}}
	file := filepath.Join(t.TempDir(), "soak.xml")
	reportVerdict(t, Systems{JUnit: file}, v, "")
	s := parse(t, file)
	require.Equal(t, 2, s.Tests)
	require.Contains(t, s.Cases[0].Failure.Text, "]]></failure><script>&amp;\"'")
	require.Contains(t, s.Cases[0].Failure.Text, "<!-- é")
}

// A check that was not judged is skipped, and a pass of connections only is a warning.
func TestConnectionsOnlyIsAWarning(t *testing.T) { //nolint:paralleltest // GitHub's variables
	summary, outputs := setGitHubFiles(t)
	v, checked := newVerdict(verdict.Pass), false
	v.Plan.Service, v.Evidence.Kind, v.MessagesChecked = "sse", verdict.ByNothing, &checked
	v.Checks = append(v.Checks, verdict.Check{Name: "messages checked", Limit: "no limit"}.NotJudged("no rule is defined"))
	file := filepath.Join(t.TempDir(), "soak.xml")
	out := reportVerdict(t, Systems{GitHub: true, JUnit: file}, v, "")
	require.Contains(t, runStep(out).commands, "::warning title=Soak pass (connections only)::1200 connections open to the end")
	require.Contains(t, summary(), "PASS (connections only): messages were not checked")
	require.Contains(t, outputs(), "verdict=pass\n")
	s := parse(t, file)
	require.Equal(t, [4]int{3, 0, 0, 1}, [4]int{s.Tests, s.Failures, s.Errors, s.Skipped})
	require.Equal(t, &skipped{"not judged: no rule is defined; limit: no limit"}, s.Cases[2].Skipped)
	require.Contains(t, s.Properties, property{"messages_checked", "false"})
}

// The setting junit of a soak.yaml may name any file.
func TestJUnitReplacesNoFileOfAnotherFormat(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "main.go")
	systems := Systems{JUnit: path}
	require.NoError(t, systems.Check())
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, systems.Check())
	require.NoError(t, Begin(systems, io.Discard).End(nil, failOnWarning(t)))
	require.NoError(t, systems.Check(), "a file in JUnit's format must be replaceable")
	require.NoError(t, os.WriteFile(path, []byte("package main"), 0o600))
	require.EqualError(t, systems.Check(), fmt.Sprintf("--junit must be a new file or a readable file in JUnit's format, got %q; remove it or name another file", path))
}

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// An error in a variable is reported before an error in a flag.
func TestRunReadsVariables(t *testing.T) {
	t.Setenv("ON", "moon")
	for _, line := range []string{"run --late-ms 0", "run rampup --runners 0"} {
		_, _, err := soak(t, strings.Fields(line)...)
		require.ErrorContains(t, err, `--on must be local or k8s, got "moon"`, line)
	}
	t.Setenv("ON", "")
	t.Setenv("START_AT", "noon")
	_, _, err := soak(t, "run")
	require.ErrorContains(t, err, `--start-at must be HH:MM or HH:MM:SS in UTC, or an RFC 3339 time such as 2026-01-31T15:04:05Z, got "noon"`)
}

// Other programs use variables such as PREFIX, so the error for an invalid value lists the variables.
func TestInvalidVariablesAreNamed(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("PREFIX", "/usr")
	_, _, err := soak(t, "run", "--seconds", "60")
	require.ErrorAs(t, err, &usageError{})
	require.ErrorContains(t, err, `got "/usr"; check the settings from environment variables: PREFIX`)
}

// All commands in a folder read one file. Settings of one suite have no effect on the others.
func TestSettingsOfOtherCommandsAreIgnored(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("soak.yaml", []byte("backends: 2\nscript: x.js\nopen-percent: 20\ncuts: fin:1\nvolume-concurrency: 5\nrunner: 1/2\n"), 0o600))
	run := runCommand(new(verdict.Outcome))
	for _, command := range append(run.Commands(), run) {
		_, file, err := loadSettings(command.Flags())
		require.NoError(t, err, command.Name())
		require.Equal(t, "soak.yaml", file)
	}
	require.Equal(t, "2", run.Flags().Lookup("backends").Value.String())
	require.NoError(t, os.WriteFile("soak.yaml", []byte("held-pecent: 20\n"), 0o600))
	_, _, err := loadSettings(run.Flags())
	require.ErrorContains(t, err, "soak.yaml, line 1: held-pecent is not a setting")
	require.NotContains(t, err.Error(), "did you mean")
	require.NoError(t, os.WriteFile("soak.yaml", []byte("conections: 20\n"), 0o600))
	_, _, err = loadSettings(run.Flags())
	require.EqualError(t, err, "soak.yaml, line 1: conections is not a setting; see `soak run --help-all`; did you mean connections?")
}

func TestControlNamesAWrongAddress(t *testing.T) {
	t.Parallel()
	_, err := controlListener(t.Context(), "foo")
	require.ErrorAs(t, err, &usageError{})
	require.EqualError(t, err, "--listen: listen tcp: address foo: missing port in address; name a free HOST:PORT or :PORT of this machine")
}

func TestDurationsAreSecondsWithoutAUnit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"60": "1m0s", "60s": "1m0s", "10m": "10m0s", "1.5": "1.5s"} {
		run := runCommand(new(verdict.Outcome))
		require.NoError(t, run.Flags().Set("start-timeout", text))
		require.Equal(t, want, run.Flags().Lookup("start-timeout").Value.String())
	}
	_, _, err := soak(t, "run", "--start-timeout", "soon")
	require.Error(t, err)
}

// A new user may pass the URL of the service as an argument.
func TestURLArguments(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"run http://h/events":          "run `soak init http://h/events` to describe the service, then `soak run`; for the noop protocol pass --backend-url http://h/events",
		"run localhost:8000/events":    "run `soak init http://localhost:8000/events`",
		"run h.example/e?room=a&b=c":   "run `soak init 'https://h.example/e?room=a&b=c'` to describe the service, then `soak run`; for the noop protocol pass --backend-url https://h.example/e",
		"run ./news.js":                "no such suite",
		"run storm http://h/events?a=": `unexpected argument "http://h/events?a="; pass the URL of the service as --backend-url http://h/events`,
		"doctor h:80":                  "pass the URL of the service as --backend-url https://h:80",
		"version h:80":                 "settings are flags or environment variables",
	} {
		_, _, err := soak(t, strings.Fields(line)...)
		require.ErrorAs(t, err, &usageError{}, line)
		require.ErrorContains(t, err, want, line)
	}
}

func TestFlagsWithOneHyphen(t *testing.T) {
	t.Parallel()
	run := runCommand(new(verdict.Outcome))
	err := explainFlagError(run, run.ParseFlags([]string{"-conections", "5"}))
	require.ErrorContains(t, err, "did you mean --connections?")
}

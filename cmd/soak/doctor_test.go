package main

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/preflight"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// doctor runs `soak doctor` with an empty PATH, because a program may take seconds to print its version.
func doctor(t *testing.T, args ...string) (out string, code int, err error) {
	t.Helper()
	t.Setenv("PATH", t.TempDir())
	return soak(t, append([]string{"doctor"}, args...)...)
}

func TestDoctorReportsTheFindingsOfARun(t *testing.T) {
	out, code, err := doctor(t, "--connections", "9000000", "--runners", "1")
	require.NoError(t, err)
	require.Equal(t, verdict.Invalid.ExitCode(), code)
	require.Regexp(t, `(?m)^  BROKEN   open files +the limit on open files is \d+, but .* needs \d+; raise it with `+"`ulimit -n", out)
	require.Contains(t, out, "A run cannot start; fix each item marked BROKEN")
	require.Regexp(t, `; \d+ items are missing, failing or unknown, which does not prevent a run\.\n$`, out, "the last line must count the unavailable items")
}

func TestDoctorJSON(t *testing.T) {
	out, _, err := doctor(t, "--json")
	require.NoError(t, err)
	var found []preflight.Finding
	require.NoError(t, json.Unmarshal([]byte(out), &found))
	names := map[string]bool{}
	for _, f := range found {
		require.False(t, names[f.Name], "two findings have the name %s", f.Name)
		names[f.Name] = true
	}
	require.Subset(t, names, map[string]bool{"open files": true, "clock": true, "k6": true, "nginx": true})
}

// A file of settings may name a service, so the run needs no backend. The plan in the file may exceed the limits of the
// machine.
func TestDoctorReadsTheSettingsOfTheRun(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, text string) { require.NoError(t, os.WriteFile(name, []byte(text), 0o600)) }
	backend := func(args ...string) preflight.State {
		out, _, err := doctor(t, append(args, "--json")...)
		require.NoError(t, err)
		var found []preflight.Finding
		require.NoError(t, json.Unmarshal([]byte(out), &found))
		i := slices.IndexFunc(found, func(f preflight.Finding) bool { return f.Name == "backend" })
		return found[i].State
	}
	write("other.yaml", "backend-url: http://a.test\nno-nginx: true\nscript: x.js\nseconds: 5\n")
	require.Equal(t, backend("--backend-url", "http://a.test"), backend("--config", "other.yaml"))
	require.NotEqual(t, backend(), backend("--config", "other.yaml"), "without a service, a missing backend must be an error")
	write("soak.yaml", "connections: 9000000\nrunners: 1\n")
	out, code, err := doctor(t)
	require.NoError(t, err)
	require.Equal(t, verdict.Invalid.ExitCode(), code)
	require.Contains(t, out, "A run cannot start")
	require.Contains(t, out, "the limit on open files")
	out, _, err = doctor(t, "--connections", "10")
	require.NoError(t, err)
	require.NotContains(t, out, "the limit on open files")
	out, _, err = doctor(t, "--backend-url", "http://a.test", "--http-version", "2", "--streams-per-connection", "65535")
	require.NoError(t, err)
	require.NotContains(t, out, "the limit on open files", "the limit must count connections, which streams over HTTP/2 share")
	write("soak.yaml", "conections: 5\n")
	_, _, err = doctor(t)
	require.ErrorContains(t, err, "conections is not a setting")
}

func TestDoctorRejectsInvalidArguments(t *testing.T) {
	for _, args := range [][]string{{"--connections", "0"}, {"--runners", "0"}, {"--backends", "0"}, {"something"}} {
		_, _, err := doctor(t, args...)
		var usage usageError
		require.ErrorAs(t, err, &usage, "%v", args)
	}
}

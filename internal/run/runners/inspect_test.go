package runners

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
)

func TestExceptionText(t *testing.T) {
	t.Parallel()
	for log, want := range map[string]string{
		`{"hint":"script exception","level":"error","msg":"Error: STAGES must be a number, got \"x\".\n\tat parsed (file:///x.js:1:2(3))\n"}`: `STAGES must be a number, got "x".`,
		"{\"level\":\"warning\",\"msg\":\"w\"}\n{\"level\":\"error\",\"msg\":\"GoError: the stage \\\"a\\\" is there twice\\n\\tat y\"}":      `the stage "a" is there twice`,
		`{"level":"error","msg":"GoError: name is missing\nconnect is missing\n\tat x\n\tat y"}`:                                              "name is missing\nconnect is missing",
		`{"level":"error","msg":"Error: it has no trace\n"}`:                                                                                  "it has no trace",
		"": "", "not JSON\n": "",
	} {
		require.Equal(t, want, exceptionText([]byte(log)))
	}
}

// A description may contain an endless loop: Inspect ends with an error.
func TestScriptThatNeverLoads(t *testing.T) {
	previous := inspectTimeout
	inspectTimeout = 50 * time.Millisecond
	t.Cleanup(func() { inspectTimeout = previous })
	k6 := filepath.Join(t.TempDir(), "k6")
	require.NoError(t, os.WriteFile(k6, []byte("#!/bin/sh\nexec sleep 60\n"), 0o755))
	_, err := Inspect(t.Context(), k6, "soak.js", plan.Document{}, nil)
	require.ErrorAs(t, err, &SettingsError{})
	require.ErrorContains(t, err, "soak.js was not loaded within 50ms")
}

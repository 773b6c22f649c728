//go:build aws

package check

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// function is the text of a function of a host's script.
func function(t *testing.T, script, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(source, "modules", script))
	require.NoError(t, err)
	found := regexp.MustCompile(`(?ms)^` + name + `\(\) \{\n.*?^\}\n`).Find(text)
	require.NotEmpty(t, found, "%s has no function %s", script, name)
	return string(found)
}

// bash runs a script that begins as the hosts' do, with a docker that reports its arguments, and sleeps that cost no
// time.
func bash(t *testing.T, docker, script string) (string, error) {
	t.Helper()
	bin := t.TempDir()
	for name, text := range map[string]string{"docker": docker, "sleep": "true"} {
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755))
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "set -Eeuo pipefail\nwhere= command=\n"+
		"trap 'echo \"code $? at $where: $command\"' EXIT\n"+script)
	cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	said, err := cmd.CombinedOutput()
	return string(said), err
}

func TestCommandsAreRetried(t *testing.T) {
	t.Parallel()
	retried := function(t, "host/begin.sh", "retried")
	said, err := bash(t, "", retried+"tries=0\nflaky() { tries=$((tries + 1)); ((tries > 3)); }\nretried flaky now\necho well")
	require.NoError(t, err, said)
	assert.Regexp(t, `(?s)SOAK-SETUP: flaky now failed, again in 5 s.*again in 15 s.*again in 30 s\nwell\n`, said)

	said, err = bash(t, "", retried+"retried false always\necho well")
	require.Error(t, err)
	assert.Contains(t, said, "false always", "what failed is named")
	assert.NotContains(t, said, "well")
}

func TestImagesThatCannotBePulled(t *testing.T) {
	t.Parallel()
	have := function(t, "stack/setup.sh", "have")
	refuses := `case $1 in image) exit 1 ;; esac; echo "$SAID" >&2; exit 1`
	said, err := bash(t, "SAID='toomanyrequests: You have reached your unauthenticated pull rate limit.'\n"+refuses, have+"have nginx:1")
	require.Error(t, err)
	assert.Contains(t, said, "nginx:1 cannot be pulled: the registry lets this host's address pull no more for some hours (its rate limit): make aws-down and make aws-up")
	said, err = bash(t, "SAID='manifest for nginx:1 not found'\n"+refuses, have+"have nginx:1")
	require.Error(t, err)
	assert.Contains(t, said, "nginx:1 cannot be pulled: manifest for nginx:1 not found")
	said, err = bash(t, "test \"$1\" = image", have+"have nginx:1")
	require.NoError(t, err, "one that is here is not pulled: %s", said)
}

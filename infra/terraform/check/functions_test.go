//go:build aws

package check

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// function returns the text of a function in a host's script.
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

func TestFilesAreHeldAgainstTheirSums(t *testing.T) {
	t.Parallel()
	objects := filepath.Join(t.TempDir(), "objects")
	fetch := strings.ReplaceAll(function(t, "host/aws.sh", "fetch_objects"), "/opt/soak/objects", objects)
	signed := "BUCKET=b REGION=r\nsigned() { echo hello >\"$4\"; echo \"$2\"; }\n"
	const sum = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"
	require.NoError(t, os.WriteFile(objects, []byte(sum+" images/00/a\n"+sum+" images/11/b\n"), 0o600))
	folder := filepath.Join(t.TempDir(), "files")
	said, err := bash(t, "", signed+fetch+"fetch_objects "+folder)
	require.NoError(t, err, said)
	assert.Contains(t, said, "https://b.s3.r.amazonaws.com/images/00/a\nhttps://b.s3.r.amazonaws.com/images/11/b\n")
	assert.FileExists(t, filepath.Join(folder, "b"))

	require.NoError(t, os.WriteFile(objects, []byte(strings.Repeat("0", 64)+" images/00/a\n"+sum+" images/11/c\n"), 0o600))
	said, err = bash(t, "", signed+fetch+"fetch_objects "+folder)
	require.Error(t, err, said)
	assert.NoFileExists(t, filepath.Join(folder, "c"), "it stops at the first that was changed on its way")
}

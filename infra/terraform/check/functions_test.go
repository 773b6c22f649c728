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

// bash runs a script with the options and the trap of the hosts' scripts, and with a sleep that returns at once.
func bash(t *testing.T, script string) (string, error) {
	t.Helper()
	bin := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "sleep"), []byte("#!/bin/sh\n"), 0o755))
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "set -Eeuo pipefail\nwhere= command=\n"+
		"trap 'echo \"code $? at $where: $command\"' EXIT\n"+script)
	cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	output, err := cmd.CombinedOutput()
	return string(output), err
}

func TestCommandsAreRetried(t *testing.T) {
	t.Parallel()
	retry := function(t, "host/begin.sh", "retry")
	out, err := bash(t, retry+"tries=0\nflaky() { tries=$((tries + 1)); ((tries > 3)); }\nretry flaky now\necho done")
	require.NoError(t, err, out)
	assert.Regexp(t, `(?s)SOAK-SETUP: flaky now failed; next attempt in 5 s.*attempt in 15 s.*attempt in 30 s\ndone\n`, out)

	out, err = bash(t, retry+"retry false always\necho done")
	require.Error(t, err)
	assert.Contains(t, out, "false always", "the output must contain the failed command")
	assert.NotContains(t, out, "done")
}

func TestFetchObjectsChecksSHA256(t *testing.T) {
	t.Parallel()
	objects := filepath.Join(t.TempDir(), "objects")
	fetch := strings.ReplaceAll(function(t, "host/aws.sh", "fetch_objects"), "/opt/soak/objects", objects)
	stub := "BUCKET=b REGION=r\nsigned() { echo hello >\"$4\"; echo \"$2\"; }\n"
	const sum = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"
	require.NoError(t, os.WriteFile(objects, []byte(sum+" images/00/a\n"+sum+" images/11/b\n"), 0o600))
	folder := filepath.Join(t.TempDir(), "files")
	output, err := bash(t, stub+fetch+"fetch_objects "+folder)
	require.NoError(t, err, output)
	assert.Contains(t, output, "https://b.s3.r.amazonaws.com/images/00/a\nhttps://b.s3.r.amazonaws.com/images/11/b\n")
	assert.FileExists(t, filepath.Join(folder, "b"))

	require.NoError(t, os.WriteFile(objects, []byte(strings.Repeat("0", 64)+" images/00/a\n"+sum+" images/11/c\n"), 0o600))
	output, err = bash(t, stub+fetch+"fetch_objects "+folder)
	require.Error(t, err, output)
	assert.NoFileExists(t, filepath.Join(folder, "c"), "fetch_objects must stop at the first file with a wrong checksum")
}

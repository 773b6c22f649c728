package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// deployed is a deployment whose terraform tells the outputs in testdata/outputs.json.
func deployed(t *testing.T) *deployment {
	t.Helper()
	d := &deployment{dir: t.TempDir()}
	outputs, err := filepath.Abs("testdata/outputs.json")
	require.NoError(t, err)
	bin := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "terraform"), []byte("#!/bin/sh\ncat '"+outputs+"'\n"), 0o755))
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	require.NoError(t, os.WriteFile(filepath.Join(d.dir, settingsFile), nil, 0o600))
	return d
}

// recorder is a program in the place of soak that writes down how it was called, and fails a run.
func recorder(t *testing.T) (program, record string) {
	t.Helper()
	dir := t.TempDir()
	program, record = filepath.Join(dir, "soak"), filepath.Join(dir, "record")
	script := "#!/bin/sh\n{ printf '%s\\n' \"$@\"; echo \"token $BACKEND_TOKEN\"; echo \"prometheus $PROMETHEUS_URL\"; echo \"region $AWS_REGION\"; cat \"$KUBECONFIG\"; } >'" + record + "'\nexit 1\n"
	require.NoError(t, os.WriteFile(program, []byte(script), 0o755))
	return program, record
}

func TestSoak(t *testing.T) {
	f := startAWS(t)
	f.parameters = map[string]string{
		"/sse-soak/stack/secrets": "BACKEND_TOKEN=abc\nGRAFANA_PASSWORD=def\nPROMETHEUS_PASSWORD=ghi\n", "/sse-soak/stack/status": "ready",
		"/sse-soak/runners/status-0": "ready", "/sse-soak/runners/kubeconfig": "apiVersion: v1\n",
	}
	d := deployed(t)
	program, record := recorder(t)
	err := d.soak(context.Background(), program, []string{"--seconds", "60"})
	assert.Equal(t, exitError(1), err, "the exit code is the verdict's")
	said, err := os.ReadFile(record)
	require.NoError(t, err)
	assert.Equal(t, `run
--on
k8s
--overlay
k3s
--shards
s3://sse-soak-123/shards?region=eu-central-1
--backend-url
http://10.20.0.10
--backend-via
203.0.113.20
--connections
1200
--noop-interval
15
--seconds
60
token abc
prometheus http://prometheus:ghi@203.0.113.20/prometheus/
region eu-central-1
apiVersion: v1
`, string(said))
	info, err := os.Stat(d.kubeconfig())
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestSoakBeforeAllHostsAreReady(t *testing.T) {
	f := startAWS(t)
	f.parameters = map[string]string{
		"/sse-soak/stack/secrets": pending, "/sse-soak/stack/status": pending,
		"/sse-soak/runners/status-0": "ready", "/sse-soak/runners/kubeconfig": "apiVersion: v1\n",
	}
	program, record := recorder(t)
	err := deployed(t).soak(context.Background(), program, nil)
	require.ErrorContains(t, err, `not all hosts are set up: /sse-soak/stack/status says "pending"`)
	assert.NoFileExists(t, record)
}

func TestSettingsAreMissing(t *testing.T) {
	d := deployed(t)
	require.NoError(t, os.Remove(filepath.Join(d.dir, settingsFile)))
	require.ErrorContains(t, d.check(), "terraform.tfvars is missing: cp ")
}

func TestRepositoryOverHTTPS(t *testing.T) {
	t.Parallel()
	for origin, want := range map[string]string{
		"git@github.com:sse-soak/sse-soak.git":       "https://github.com/sse-soak/sse-soak.git",
		"ssh://git@github.com/sse-soak/sse-soak.git": "https://github.com/sse-soak/sse-soak.git",
		"https://example.com/sse-soak.git":           "https://example.com/sse-soak.git",
	} {
		assert.Equal(t, want, overHTTPS(origin))
	}
}

//go:build aws

package main

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/offline"
)

// TestDeployment makes, uses and destroys all of it with the real terraform. The provider is a stand-in
// that asks AWS nothing (the real one would make hosts, which cost money); what soak-aws itself asks is answered by fakeAWS.
func TestDeployment(t *testing.T) {
	offline.Terraform(t, "../..")
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("../../infra/terraform")))
	require.NoError(t, os.RemoveAll(filepath.Join(dir, ".terraform.lock.hcl"))) // of the real provider
	settings := "alert_emails = [\"me@example.com\"]\nregion = \"eu-central-1\"\nrunner_node_count = 2\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, settingsFile), []byte(settings), 0o600))
	files := up{stack: filepath.Join(dir, "tests/files/stack"), runner: filepath.Join(dir, "tests/files/runner")}
	ctx := context.Background()
	f := startAWS(t)

	// A host fails: the error names the command that continues, the one that cleans up, and where to look.
	f.boot(t, dir, map[string]string{"/sse-soak/stack/status": "at setup.sh line 21: docker load"})
	err := newDeployment(t, dir).up(ctx, files)
	for _, part := range []string{"docker load", "make aws-up", "make aws-down", "bin/soak-aws logs", "aws ssm start-session --region eu-central-1"} {
		require.ErrorContains(t, err, part)
	}
	first := hostsOf(t, dir)

	// The cause is fixed. The command that continues replaces the failed host only.
	f.boot(t, dir, nil)
	again := newDeployment(t, dir)
	require.NoError(t, again.up(ctx, files))
	second := hostsOf(t, dir)
	for name, host := range first {
		if name == "/sse-soak/stack/status" {
			assert.NotEqual(t, host, second[name], "user data runs once, so only another host can succeed")
		} else {
			assert.Equal(t, host, second[name], name)
		}
	}
	require.NoError(t, again.command(ctx, "plan", "-detailed-exitcode").Run(), "a second up changes nothing, the end of the hosts included")

	// The hosts ended themselves. The parameters still have their "ready", which does not count for new hosts.
	for _, id := range second {
		address, err := again.command(ctx, "state", "list", "-id="+id).Output()
		require.NoError(t, err)
		require.NoError(t, again.command(ctx, "taint", strings.TrimSpace(string(address))).Run())
	}
	asked := f.asked
	f.boot(t, dir, nil)
	require.NoError(t, newDeployment(t, dir).up(ctx, files))
	for name, host := range hostsOf(t, dir) {
		assert.NotEqual(t, second[name], host)
		assert.Equal(t, "ready "+host, f.parameters[name])
	}
	assert.Greater(t, f.asked, asked+1, "up waits for the new hosts")

	f.parameters["/sse-soak/stack/secrets"] = "BACKEND_TOKEN=abc\nPROMETHEUS_PASSWORD=ghi"
	f.parameters["/sse-soak/end"], f.launched = pending, time.Now()
	f.hosts = slices.Collect(maps.Values(hostsOf(t, dir)))
	cluster := startCluster(t)
	f.parameters["/sse-soak/runners/kubeconfig"] = "# " + hostsOf(t, dir)["/sse-soak/runners/status-0"] + "\n" + kubeconfig
	d := &deployment{dir: dir, yes: true}
	made, err := d.outputs(ctx)
	require.NoError(t, err)
	f.buckets = []string{made.Bucket}
	stack := startStack(t).Listener.Addr().String()
	withSessions(t, stack)
	t.Setenv("FAKE_AWS_CLUSTER", cluster.Listener.Addr().String())
	program := soakProgram(t)
	require.Equal(t, exitError(2), d.soak(ctx, program, []string{"--out", t.TempDir()}))
	assert.Contains(t, cluster.created("testruns"), "s3://", "the bucket is the one that terraform made")
	require.NoError(t, d.logs(ctx))

	// A second deployment with a state of its own: destroying it leaves the first.
	other := newDeployment(t, dir)
	other.name = "second"
	other.set("name", other.name)
	f.hosts = nil
	f.boot(t, filepath.Join(dir, "terraform.tfstate.d", other.name), nil)
	require.NoError(t, other.up(ctx, files))
	out, err := other.outputs(ctx)
	require.NoError(t, err)
	assert.Equal(t, "second", out.Name)
	f.hosts, f.onAsked = nil, nil
	require.NoError(t, other.down(ctx, time.Minute, keep{}))
	out, err = again.outputs(ctx)
	require.NoError(t, err)
	assert.Equal(t, "sse-soak", out.Name, "the first is still there")

	// Taking down needs no files: they may be gone by now, as after `make clean`.
	results := t.TempDir()
	run := filepath.Join(results, "run-1")
	require.NoError(t, os.Mkdir(run, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(run, "verdict.json"), []byte(`{"testid": "run-1", "started_unix_s": 1, "ended_unix_s": 2}`), 0o600))
	f.objects[out.Bucket+"/shards/run-1/runner-1.json.gz"] = time.Now()
	f.tagged, f.buckets = [][]string{{"arn:aws:s3:::" + out.Bucket}}, []string{out.Bucket}
	require.NoError(t, (&deployment{dir: dir, yes: true}).down(ctx, time.Minute, keep{program: program, results: results}))
	assert.Contains(t, f.objects, out.Bucket+"/archives/run-1.tar.gz", "the stack's Prometheus answers nothing here, which the archive states")
	list, err := d.command(ctx, "state", "list").Output()
	require.NoError(t, err)
	assert.Contains(t, string(list), "module.storage.aws_s3_bucket_lifecycle_configuration.this\n", "the bucket is left, and deletes what is in it by itself")
	for address := range strings.Lines(string(list)) {
		assert.Regexp(t, `^module\.storage\.aws_s3_bucket|(^|\.)data\.`, address)
	}

	// What is left goes when somebody says so.
	require.NoError(t, (&deployment{dir: dir, yes: true}).down(ctx, time.Minute, keep{}), "it stays until then")
	f.tagged, f.buckets = nil, nil
	require.NoError(t, (&deployment{dir: dir, yes: true}).down(ctx, time.Minute, keep{all: true}))
	assert.NoFileExists(t, d.kubeconfig())
	state, err := os.ReadFile(filepath.Join(dir, "terraform.tfstate"))
	require.NoError(t, err)
	assert.Contains(t, string(state), `"resources": []`)
}

// hostsOf returns the hosts in the state of a folder by their status parameter.
func hostsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	var state struct {
		Outputs struct {
			Hosts struct{ Value map[string]string } `json:"status_parameters"`
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "terraform.tfstate"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &state))
	return state.Outputs.Hosts.Value
}

// boot plays the hosts: each one stores its state some questions after it was made, and parameters keep their values over its
// end. A host in failing stores that it failed, with the given details.
func (f *fakeAWS) boot(t *testing.T, dir string, failing map[string]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	start := -1
	f.onAsked = func(n int, parameters map[string]string) {
		if _, err := os.Stat(filepath.Join(dir, "terraform.tfstate")); err != nil {
			return
		}
		for name, host := range hostsOf(t, dir) {
			switch value := parameters[name]; {
			case value == "":
				parameters[name] = pending // made by terraform
			case strings.Contains(value, host):
			case start < 0:
				start = n
			case n > start && failing[name] != "":
				parameters[name] = "failed " + host + " " + failing[name]
			case n > start:
				parameters[name] = "ready " + host
			}
		}
	}
}

// newDeployment is what the command makes of its flags.
func newDeployment(t *testing.T, dir string) *deployment {
	t.Helper()
	d := &deployment{dir: dir, yes: true}
	require.NoError(t, d.check())
	return d
}

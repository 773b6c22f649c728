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

// The real terraform creates, uses and destroys a deployment. A fake provider replaces the provider of AWS, which would
// create hosts; fakeAWS responds to soak-aws.
func TestDeployment(t *testing.T) {
	for _, variable := range offline.Terraform(t, "../..", t.TempDir()) {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("../../infra/terraform")))
	require.NoError(t, os.RemoveAll(filepath.Join(dir, ".terraform.lock.hcl"))) // it locks the real provider
	settings := "alert_emails = [\"me@example.com\"]\nregion = \"eu-central-1\"\nrunner_node_count = 2\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "terraform.tfvars"), []byte(settings), 0o600))
	t.Setenv("TF_VAR_stack_dir", "tests/files/stack")
	t.Setenv("TF_VAR_runner_dir", "tests/files/runner")
	ctx := context.Background()
	f := startAWS(t)

	// The setup of a host fails. The error has the commands that continue, clean up and show the log.
	f.boot(t, dir, map[string]string{"/sse-soak/stack/status": "at setup.sh line 21: docker load"})
	err := newDeployment(dir).up(ctx, streams{})
	for _, part := range []string{"docker load", "make aws-up", "make aws-down", "aws ssm start-session --region eu-central-1"} {
		require.ErrorContains(t, err, part)
	}
	first := hostsOf(t, dir)

	// After a fix of the cause, up replaces only the failed host.
	f.boot(t, dir, nil)
	repairedDeployment := newDeployment(dir)
	require.NoError(t, repairedDeployment.up(ctx, streams{}))
	second := hostsOf(t, dir)
	for name, host := range first {
		if name == "/sse-soak/stack/status" {
			assert.NotEqual(t, host, second[name], "user data runs once, so only another host can succeed")
		} else {
			assert.Equal(t, host, second[name], name)
		}
	}
	require.NoError(t, repairedDeployment.command(ctx, "plan", "-detailed-exitcode").Run(), "a second up must change nothing, not even the end of the hosts")

	f.parameters["/sse-soak/stack/secrets"] = "BACKEND_TOKEN=abc\nPROMETHEUS_PASSWORD=ghi"
	f.parameters["/sse-soak/end"], f.launched = setupPending, time.Now()
	f.hosts = slices.Collect(maps.Values(hostsOf(t, dir)))
	cluster := startCluster(t)
	f.parameters["/sse-soak/runners/kubeconfig"] = "# " + hostsOf(t, dir)["/sse-soak/runners/status-0"] + "\n" + kubeconfig
	d := newDeployment(dir)
	deploymentOutputs, err := d.outputs(ctx)
	require.NoError(t, err)
	f.buckets = []string{deploymentOutputs.Bucket}
	stack := startStack(t).Listener.Addr().String()
	addSessions(t, stack)
	t.Setenv("FAKE_AWS_CLUSTER", cluster.Listener.Addr().String())
	d.program = soakProgram(t)
	require.Equal(t, exitError(2), d.soak(ctx, []string{"--out", t.TempDir()}))
	assert.Contains(t, cluster.lastCreated("testruns"), "s3://", "shards must go to the bucket of terraform")

	// Destroying a second deployment, with its own state, does not change the first one.
	foreign := newDeployment(dir)
	foreign.name = "second"
	f.hosts = nil
	f.boot(t, filepath.Join(dir, "terraform.tfstate.d", foreign.name), nil)
	require.NoError(t, foreign.up(ctx, streams{}))
	out, err := foreign.outputs(ctx)
	require.NoError(t, err)
	assert.Equal(t, "second", out.Settings.Name)
	f.hosts, f.beforeParameters = nil, nil
	require.NoError(t, foreign.down(ctx, downOptions{lag: time.Minute}))
	out, err = repairedDeployment.outputs(ctx)
	require.NoError(t, err)
	assert.Equal(t, "sse-soak", out.Settings.Name, "the first deployment must still exist")

	// down does not need the files of hosts, which `make clean` removes.
	results := t.TempDir()
	run := filepath.Join(results, "run-1")
	require.NoError(t, os.Mkdir(run, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(run, "verdict.json"), []byte(`{"testid": "run-1", "started_unix_s": 1, "ended_unix_s": 2}`), 0o600))
	f.objects[out.Bucket+"/shards/run-1/runner-1.json.gz"] = time.Now()
	f.tagResponses, f.buckets = [][]string{{"arn:aws:s3:::" + out.Bucket}}, []string{out.Bucket}
	require.NoError(t, d.down(ctx, downOptions{lag: time.Minute, results: results}))
	assert.Contains(t, f.objects, out.Bucket+"/archives/run-1.tar.gz", "the archive must exist although the stack's Prometheus does not respond")
	list, err := d.command(ctx, "state", "list").Output()
	require.NoError(t, err)
	assert.Contains(t, string(list), "module.storage.aws_s3_bucket_lifecycle_configuration.this\n", "the bucket must remain, with the rule that deletes its archives")
	for address := range strings.Lines(string(list)) {
		assert.Regexp(t, `^module\.storage\.aws_s3_bucket|(^|\.)data\.`, address)
	}

	// Only an explicit request destroys the bucket.
	f.tagResponses, f.buckets = nil, nil
	require.NoError(t, d.down(ctx, downOptions{lag: time.Minute, withBucket: true}))
	state, err := os.ReadFile(filepath.Join(dir, "terraform.tfstate"))
	require.NoError(t, err)
	assert.Contains(t, string(state), `"resources": []`)
}

// hostsOf returns the hosts in the state of a folder by their status parameter.
func hostsOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	var state struct {
		Outputs struct {
			Deployment struct{ Value outputs }
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "terraform.tfstate"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &state))
	return state.Outputs.Deployment.Value.Statuses
}

// boot acts as the hosts. Each host stores its status some requests after its creation, and parameters keep their
// values after the end of the host. failing maps the parameter of a host to the detail of its failure.
func (f *fakeAWS) boot(t *testing.T, dir string, failing map[string]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	start := -1
	f.beforeParameters = func(n int, parameters map[string]string) {
		if _, err := os.Stat(filepath.Join(dir, "terraform.tfstate")); err != nil {
			return
		}
		for name, host := range hostsOf(t, dir) {
			switch value := parameters[name]; {
			case value == "":
				parameters[name] = setupPending // terraform creates the parameter
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

func newDeployment(dir string) *deployment { return &deployment{dir: dir, skipConfirm: true} }

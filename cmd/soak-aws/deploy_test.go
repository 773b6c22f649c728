//go:build aws

package main

import (
	"context"
	"os"
	"path/filepath"
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
	settings := "operator_cidrs = [\"203.0.113.7/32\"]\nalert_emails = [\"me@example.com\"]\nregion = \"eu-central-1\"\nrunner_node_count = 2\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, settingsFile), []byte(settings), 0o600))
	image := savedImage(t, "amd64", "usr/local/bin/k6", elfAMD64)
	ctx := context.Background()
	f := startAWS(t)

	// A host fails: the way on and the way out are named.
	f.parameters = map[string]string{
		"/sse-soak/stack/status": "failed at setup.sh line 21: docker load", "/sse-soak/runners/status-0": "ready", "/sse-soak/runners/status-1": pending,
	}
	err := newUp(t, dir, image).apply(ctx)
	for _, part := range []string{"docker load", "make aws-up", "make aws-down", "make aws-logs", "aws ssm start-session --region eu-central-1"} {
		require.ErrorContains(t, err, part)
	}

	// Again, and it is well.
	f.parameters["/sse-soak/stack/status"], f.parameters["/sse-soak/runners/status-1"] = "ready", "ready"
	again := newUp(t, dir, image)
	require.NoError(t, again.apply(ctx))
	require.NoError(t, again.command(ctx, "plan", "-detailed-exitcode").Run(), "what is there stays as it is: nothing puts the end off")

	f.parameters["/sse-soak/stack/secrets"] = "BACKEND_TOKEN=abc\nPROMETHEUS_PASSWORD=ghi"
	f.parameters["/sse-soak/end"], f.hosts, f.launched = pending, []string{"i-1"}, time.Now()
	cluster := startCluster(t)
	f.parameters["/sse-soak/runners/kubeconfig"] = kubeconfigOf(cluster.URL)
	d := &deployment{dir: dir, yes: true}
	stack := startStack(t).Listener.Addr().String()
	withSessions(t, stack)
	require.Equal(t, exitError(2), d.soak(ctx, soakProgram(t), []string{"--out", t.TempDir()}))
	assert.Contains(t, cluster.created("testruns"), "s3://", "the bucket is the one that terraform made")
	require.NoError(t, d.logs(ctx))

	// Another one beside it, with a state of its own: taking it down leaves the first.
	for _, p := range []string{"stack/status", "runners/status-0", "runners/status-1"} {
		f.parameters["/second/"+p] = "ready"
	}
	second := newUp(t, dir, image)
	second.name = "second"
	second.set("name", second.name)
	require.NoError(t, second.apply(ctx))
	out, err := second.outputs(ctx)
	require.NoError(t, err)
	assert.Equal(t, "second", out.Name)
	f.hosts = nil
	require.NoError(t, second.down(ctx, time.Minute))
	out, err = again.outputs(ctx)
	require.NoError(t, err)
	assert.Equal(t, "sse-soak", out.Name, "the first is still there")

	// The image is gone by now, as after `make clean`: taking down needs none.
	require.NoError(t, os.Remove(image))
	f.tagged = [][]string{{"arn:aws:sqs:eu-central-1:1:slow-to-go"}, {}}
	require.NoError(t, (&deployment{dir: dir, yes: true}).down(ctx, time.Minute))
	assert.NoFileExists(t, d.kubeconfig())
	state, err := os.ReadFile(filepath.Join(dir, "terraform.tfstate"))
	require.NoError(t, err)
	assert.Contains(t, string(state), `"resources": []`)
}

// newUp is what the command makes of its flags.
func newUp(t *testing.T, dir, image string) *deployment {
	t.Helper()
	d := &deployment{dir: dir, yes: true}
	require.NoError(t, d.check())
	require.NoError(t, d.takeFiles(filepath.Join(dir, "tests/stack-archive.txt"), image))
	return d
}

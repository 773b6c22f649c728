package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A deploymentWithRun is an existing deployment with one run. Its programs are fakes, which record their calls in
// files.
type deploymentWithRun struct {
	*deployment
	calls     string // of soak
	destroyed string // calls of terraform
	results   string
}

// newDeploymentWithRun returns a deploymentWithRun whose program soak stores an archive in the bucket.
func newDeploymentWithRun(t *testing.T, f *fakeAWS) deploymentWithRun {
	t.Helper()
	outputs, err := os.ReadFile("testdata/outputs.json")
	require.NoError(t, err)
	destroyed := addTerraform(t, strings.Replace(defaults, "us-east-1", "eu-central-1", 1), string(outputs))
	bin := addPrograms(t, map[string]string{
		"soak": "#!/bin/sh\nexec >>\"${0%/*}/calls\"\necho \"$@\"\necho \"$PROMETHEUS_URL $GRAFANA_PASSWORD\"\n" +
			"test $1 != archive || curl -sSf -X PUT \"$AWS_ENDPOINT_URL/sse-soak-123/archives/run-1.tar.gz\"\nexit $SOAK_FAILS\n",
	})
	t.Setenv("SOAK_FAILS", "0")
	f.setReady()
	f.hosts, f.buckets = nil, []string{"sse-soak-123"}
	f.objects["sse-soak-123/shards/run-1/runner-1.json.gz"] = time.Now()
	results := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(results, "run-1"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(results, "run-1", "verdict.json"), nil, 0o600))
	return deploymentWithRun{&deployment{dir: t.TempDir(), skipConfirm: true, program: filepath.Join(bin, "soak")}, filepath.Join(bin, "calls"), destroyed, results}
}

func (m deploymentWithRun) down(t *testing.T, options downOptions) (output string, err error) {
	t.Helper()
	options.results, options.lag = m.results, time.Second
	output = captureStdout(t, func() { err = m.deployment.down(context.Background(), options) })
	return output, err
}

// The archive of a run is copied to the bucket before the hosts are destroyed, and the bucket is kept.
func TestDownKeepsArchives(t *testing.T) {
	f := startAWS(t)
	m := newDeploymentWithRun(t, f)
	addSessions(t, startStack(t).Listener.Addr().String())
	f.tagResponses = [][]string{{"arn:aws:s3:::sse-soak-123"}}
	m.name = "sse-soak"
	output, err := m.down(t, downOptions{})
	require.NoError(t, err)
	requests := lines(t, m.calls)
	assert.Equal(t, "archive "+filepath.Join(m.results, "run-1")+" s3://sse-soak-123/archives?region=eu-central-1", requests[0])
	assert.Regexp(t, `^http://prometheus:ghi@127.0.0.1:\d+/prometheus/ def$`, requests[1], "soak must receive the secrets, to redact them")
	assert.Equal(t, []string{"destroy -target=module.network -target=module.guard -target=module.stack -target=module.runners -target=module.storage.aws_s3_object.file"},
		lines(t, m.destroyed))
	for _, part := range []string{
		"no host, disk or other bucket in eu-central-1 has the tag Run=sse-soak anymore", "kept: the bucket sse-soak-123", "Each archive is deleted 30 days after",
		"bin/soak open 's3://sse-soak-123/archives/run-1.tar.gz?region=eu-central-1'", "make aws-down NAME=sse-soak ALL=1",
	} {
		assert.Contains(t, output, part)
	}

	// The second time the archive already exists, and only the bucket remains.
	_, err = m.down(t, downOptions{})
	require.NoError(t, err)
	assert.Len(t, lines(t, m.calls), 2)
	assert.Equal(t, lines(t, m.destroyed)[0], lines(t, m.destroyed)[1])

	// With ALL=1 the bucket is deleted too.
	f.tagResponses = nil
	output, err = m.down(t, downOptions{withBucket: true})
	require.NoError(t, err)
	assert.Equal(t, "destroy", lines(t, m.destroyed)[2])
	assert.NotContains(t, output, "kept: ")
}

func TestDownWithoutArchive(t *testing.T) {
	f := startAWS(t)
	m := newDeploymentWithRun(t, f)
	_, err := m.down(t, downOptions{withoutArchive: true})
	require.NoError(t, err)
	assert.Empty(t, lines(t, m.calls))
	assert.Equal(t, []string{"destroy"}, lines(t, m.destroyed), "without archives the bucket must be destroyed too")
}

// The Prometheus of terminated hosts cannot be read, and the archive states the reason. A failed archive stops
// aws-down.
func TestDownAfterTheHostsEnded(t *testing.T) {
	f := startAWS(t)
	m := newDeploymentWithRun(t, f)
	addSessions(t, "127.0.0.1:1")
	t.Setenv("FAKE_AWS_REFUSES", "TargetNotConnected")
	_, err := m.down(t, downOptions{})
	require.NoError(t, err)
	assert.Contains(t, lines(t, m.calls)[0], "--without-prometheus no tunnel to the host stack (i-1): TargetNotConnected: the host is not connected to Systems Manager")

	require.NoError(t, os.Remove(m.destroyed))
	delete(f.objects, "sse-soak-123/archives/run-1.tar.gz")
	t.Setenv("SOAK_FAILS", "2")
	_, err = m.down(t, downOptions{})
	for _, part := range []string{"archive run-1", "nothing was destroyed", "make aws-down ARCHIVE=0"} {
		require.ErrorContains(t, err, part)
	}
	assert.NoFileExists(t, m.destroyed)
}

// A run of another user has no local results, so it is judged from its shards first. A run in progress stops aws-down.
func TestDownArchivesRunsOfOtherUsers(t *testing.T) {
	f := startAWS(t)
	m := newDeploymentWithRun(t, f)
	addSessions(t, startStack(t).Listener.Addr().String())
	require.NoError(t, os.RemoveAll(filepath.Join(m.results, "run-1")))
	_, err := m.down(t, downOptions{})
	require.ErrorContains(t, err, "the soak run-1 may be running: its last checkpoint is ")
	require.ErrorContains(t, err, "make aws-down ARCHIVE=0")
	assert.NoFileExists(t, m.destroyed)

	// After 100 hours, runners write a checkpoint every 6 minutes.
	f.hosts, f.launched = []string{"i-1"}, time.Now().Add(-100*time.Hour)
	f.objects["sse-soak-123/shards/run-1/runner-1.json.gz"] = time.Now().Add(-6 * time.Minute)
	_, err = m.down(t, downOptions{})
	require.ErrorContains(t, err, "the soak run-1 may be running: its last checkpoint is 6m")

	f.hosts = nil
	f.objects["sse-soak-123/shards/run-1/runner-1.json.gz"] = time.Now().Add(-time.Hour)
	t.Setenv("SOAK_FAILS", "1") // the verdict of the run
	_, err = m.down(t, downOptions{})
	require.ErrorContains(t, err, "judge run-1 from its shards: exit status 1")
	assert.Equal(t, "merge s3://sse-soak-123/shards/run-1?region=eu-central-1 --out "+m.results, lines(t, m.calls)[0])
}

// sweep finds resources by their tag, without the state of terraform.
func TestSweep(t *testing.T) {
	f := startAWS(t)
	f.hosts, f.owner, f.buckets = []string{"i-1", "i-2"}, "arn:aws:iam::123456789012:user/eve", []string{"sse-soak-1"}
	f.tagResponses = [][]string{{"arn:aws:s3:::sse-soak-1", "arn:aws:ec2:eu-central-1:1:vpc/vpc-1", "arn:aws:s3:::sse-soak-gone"}}
	d := &deployment{skipConfirm: true}
	output := captureStdout(t, func() { require.NoError(t, d.sweep(context.Background(), "eu-central-1", false)) })
	for _, part := range []string{
		"resources in eu-central-1 with the tag Project=sse-soak: 3 that cost money, 2 that are free or already deleted",
		"  i-1\n  i-2\n  arn:aws:s3:::sse-soak-1\n  arn:aws:ec2:eu-central-1:1:vpc/vpc-1\n",
		"host i-1 of sse-soak, owner: arn:aws:iam::123456789012:user/eve\n",
	} {
		assert.Contains(t, output, part)
	}
	assert.Len(t, f.hosts, 2, "no host may be terminated without --end-hosts")

	require.ErrorContains(t, d.sweep(context.Background(), "eu-central-1", true), "--end-hosts requires --name NAME, because it terminates the hosts of one deployment")
	d.name, d.skipConfirm = "sse-soak", false // the standard input of a test is empty
	require.ErrorContains(t, d.sweep(context.Background(), "eu-central-1", true), "not confirmed, so no host was terminated")
	assert.Len(t, f.hosts, 2)
	d.skipConfirm = true
	output = captureStdout(t, func() { require.NoError(t, d.sweep(context.Background(), "eu-central-1", true)) })
	assert.Contains(t, output, "2 hosts are being terminated")
	assert.Empty(t, f.hosts)
	f.hosts = []string{"i-1"}
	output = captureStdout(t, func() { require.NoError(t, d.sweep(context.Background(), "eu-central-1", true)) })
	assert.Contains(t, output, "1 host is being terminated with its disk\n")
}

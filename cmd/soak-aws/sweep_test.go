package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

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

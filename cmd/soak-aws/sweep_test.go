package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The state is lost, and with it what terraform would destroy. The tag is still there.
func TestSweep(t *testing.T) {
	f := startAWS(t)
	f.account = newAccount()
	f.hosts, f.there = []string{"i-1", "i-2"}, []string{"sse-soak-1", "vpc-1", "sg-1"}
	f.parameters["/sse-soak/stack/secrets"] = "x"
	f.tagged = [][]string{{
		"arn:aws:s3:::sse-soak-1", "arn:aws:ec2:eu-central-1:1:vpc/vpc-1", "arn:aws:ec2:eu-central-1:1:security-group/sg-1",
		"arn:aws:ssm:eu-central-1:1:parameter/sse-soak/stack/secrets", "arn:aws:ec2:eu-central-1:1:subnet/subnet-gone",
	}}
	d := &deployment{}
	said := printed(t, func() { require.NoError(t, d.sweep(context.Background(), "eu-central-1", false)) })
	for _, part := range []string{
		"8 things in eu-central-1 carry the tag Project=sse-soak",
		"aws ec2 terminate-instances --region eu-central-1 --instance-ids i-1\n",
		"aws ssm delete-parameter --region eu-central-1 --name /sse-soak/stack/secrets\n",
		"arn:aws:ec2:eu-central-1:1:security-group/sg-1\n      goes with its VPC",
		"arn:aws:iam::123456789012:role/sse-soak-stack-2026\n", // on the second page
		"aws budgets delete-budget --account-id 123456789012 --budget-name sse-soak-eu-central-1\n",
		"2 of them are hosts, which cost money: `soak-aws sweep --end-hosts` ends them",
	} {
		assert.Contains(t, said, part)
	}
	assert.NotContains(t, said, "subnet-gone")
	assert.NotContains(t, said, "of-somebody-else")
	assert.Len(t, f.hosts, 2, "nobody asked for more")

	said = printed(t, func() { require.NoError(t, d.sweep(context.Background(), "eu-central-1", true)) })
	assert.Contains(t, said, "2 hosts are being terminated")
	assert.Empty(t, f.hosts)
}

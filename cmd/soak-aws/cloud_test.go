package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const tick = time.Millisecond

// newSite returns a deployment in eu-central-1. statuses maps the parameter of each host's status to the host's id.
func newSite(t *testing.T, statuses map[string]string) site {
	t.Helper()
	c, err := connect(context.Background(), "eu-central-1")
	require.NoError(t, err)
	return site{deployment: new(deployment), settings: settings{Name: "sse-soak", Region: "eu-central-1"}, output: outputs{Statuses: statuses}, aws: c}
}

func TestAwaitHosts(t *testing.T) {
	f := startAWS(t)
	statuses := map[string]string{}
	name := func(i int) string { return fmt.Sprintf("/sse-soak/status-%02d", i) }
	for i := range 12 { // more parameters than one response of AWS contains
		statuses[name(i)] = fmt.Sprintf("i-%d", i)
		f.parameters[name(i)] = "ready i-of-yesterday" // a parameter outlives its host
	}
	f.beforeParameters = func(n int, p map[string]string) {
		for i := range 12 {
			if n > 3 || i < 4*n {
				p[name(i)] = fmt.Sprintf("ready i-%d", i)
			}
		}
	}
	require.NoError(t, newSite(t, statuses).awaitHosts(context.Background(), tick))
	assert.GreaterOrEqual(t, f.parameterRequests, 3)
}

func TestFailedHost(t *testing.T) {
	f := startAWS(t)
	f.parameters["/sse-soak/a"], f.parameters["/sse-soak/b"] = "failed i-0 at setup.sh line 1: true", "failed i-2 at setup.sh line 21: docker load"
	err := newSite(t, map[string]string{"/sse-soak/a": "i-1", "/sse-soak/b": "i-2"}).awaitHosts(context.Background(), tick)
	require.ErrorContains(t, err, "setup of the host i-2 (/sse-soak/b) failed at setup.sh line 21: docker load")
	require.ErrorContains(t, err, "aws ssm start-session --region eu-central-1 --target i-2")
}

// A lost network connection does not end the wait; an error of AWS does.
func TestAwaitHostsWithoutNetwork(t *testing.T) {
	f := startAWS(t)
	s := newSite(t, map[string]string{"/sse-soak/a": "i-1"})
	f.parameters["/sse-soak/a"], f.lostResponses = "ready i-1", 2
	output := captureStdout(t, func() { require.NoError(t, s.awaitHosts(context.Background(), tick)) })
	assert.Contains(t, output, "waiting for the setup of 1 host, ")
	assert.Contains(t, output, "; retrying for ")
	assert.Contains(t, output, "/sse-soak/a is ready")
	assert.Zero(t, f.lostResponses)
	ctx, stop := context.WithCancel(context.Background())
	f.parameters["/sse-soak/a"], f.beforeParameters = setupPending, func(int, map[string]string) { stop() }
	require.ErrorIs(t, s.awaitHosts(ctx, time.Hour), context.Canceled)
	f.denied = true
	require.ErrorContains(t, s.awaitHosts(context.Background(), tick), "AccessDeniedException")
}

// The list of tagged resources may be out of date, so hosts, disks and buckets, which cost money, are verified with
// their services.
func TestVerifyDestroyed(t *testing.T) {
	f := startAWS(t)
	s := newSite(t, nil)
	f.tagResponses = [][]string{{"arn:aws:ec2:eu-central-1:1:instance/i-1", "arn:aws:s3:::sse-soak-1", "arn:aws:ec2:eu-central-1:1:vpc/vpc-1"}}
	output := captureStdout(t, func() { require.NoError(t, s.verifyDestroyed(t.Context(), "", time.Minute, tick)) })
	assert.Contains(t, output, "still listed by AWS, which may list a deleted resource for hours: arn:aws:ec2:eu-central-1:1:vpc/vpc-1\n")
	assert.Contains(t, output, "no host, disk or bucket in eu-central-1 has the tag Run=sse-soak anymore")

	f.tagResponses, f.hosts, f.buckets = [][]string{{"arn:aws:s3:::sse-soak-1"}}, []string{"i-0123456789abcdef0"}, []string{"sse-soak-1"}
	err := s.verifyDestroyed(t.Context(), "", 0, tick)
	for _, part := range []string{"resources in eu-central-1 that have the tag Run=sse-soak and still cost money: 2", "arn:aws:s3:::sse-soak-1", "i-0123456789abcdef0"} {
		require.ErrorContains(t, err, part)
	}

	f.denied = true
	require.ErrorContains(t, s.verifyDestroyed(t.Context(), "", time.Minute, tick), "could not be verified", "a denied request is not a verification")
}

func TestNoCredentials(t *testing.T) {
	startAWS(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	_, err := connect(context.Background(), "eu-central-1")
	require.ErrorContains(t, err, "; log in (aws sso login), set AWS_PROFILE or AWS_ACCESS_KEY_ID")
}

// failingDeployment returns a deployment whose terraform prints a text and fails.
func failingDeployment(t *testing.T, output string) *deployment {
	t.Helper()
	addPrograms(t, map[string]string{"terraform": "#!/bin/sh\ncat \"${0%/*}/output\" >&2\nexit 1\n", "output": output})
	return &deployment{dir: t.TempDir()}
}

func TestRemedies(t *testing.T) {
	for output, remedy := range map[string]string{
		"Error: creating EC2 Instance: operation error EC2: RunInstances, https response error StatusCode: 500, RequestID: 1, api error InsufficientInstanceCapacity: We currently do not have sufficient c5.large capacity in the Availability Zone you requested (us-east-1e).": "set zone (or another instance type)",
		"api error InvalidParameterCombination: The specified instance type is not eligible for Free Tier":                                                                                     "change it to the Paid plan",
		"api error ConflictException: Schedule group sse-soak already exists":                                                                                                                  "choose another name with NAME=",
		"api error VcpuLimitExceeded: You have requested more vCPU capacity than your current vCPU limit of 1 allows":                                                                          "Service Quotas (EC2, L-1216C47A)",
		"Error: creating Budget: operation error Budgets: CreateBudget, api error AccessDeniedException: User is not authorized to perform: budgets:ModifyBudget":                              "set budget_usd = 0",
		"api error Unsupported: Your requested instance type (c5.large) is not supported in your requested Availability Zone (us-east-1e). Please retry your request by not specifying a zone": "the zone does not offer this instance type",
	} {
		require.ErrorContains(t, failingDeployment(t, output).change(context.Background(), "apply"), remedy)
	}
	require.EqualError(t, failingDeployment(t, "Error: Invalid value for variable").change(context.Background(), "apply"), "terraform apply: exit status 1")
}

func TestMissingFolder(t *testing.T) {
	d := failingDeployment(t, "")
	d.dir = "elsewhere"
	require.ErrorContains(t, d.change(context.Background(), "apply"), "elsewhere: no such file or directory; run soak-aws in the folder of the repository")
}

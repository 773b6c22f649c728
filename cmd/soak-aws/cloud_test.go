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

func connected(t *testing.T) *cloud {
	t.Helper()
	c, err := connect(context.Background(), "eu-central-1")
	require.NoError(t, err)
	return c
}

func TestHostsAreAwaited(t *testing.T) {
	f := startAWS(t)
	statuses := map[string]string{}
	name := func(i int) string { return fmt.Sprintf("/sse-soak/status-%d", i) }
	for i := range 12 { // more than AWS gives at once
		statuses[name(i)] = fmt.Sprintf("i-%d", i)
		f.parameters[name(i)] = "ready i-of-yesterday" // a parameter outlives its host
	}
	f.onAsked = func(n int, p map[string]string) {
		if n <= len(statuses) {
			p[name(n-1)] = fmt.Sprintf("ready i-%d", n-1)
		}
	}
	require.NoError(t, awaitHosts(context.Background(), connected(t), statuses, tick))
	assert.GreaterOrEqual(t, f.asked, len(statuses))
}

func TestAHostThatFails(t *testing.T) {
	f := startAWS(t)
	f.parameters["/a"], f.parameters["/b"] = "failed i-0 at setup.sh line 1: true", "failed i-2 at setup.sh line 21: docker load"
	err := awaitHosts(context.Background(), connected(t), map[string]string{"/a": "i-1", "/b": "i-2"}, tick)
	require.ErrorContains(t, err, "/b")
	require.ErrorContains(t, err, "docker load")
}

func TestWaitingCanBeStopped(t *testing.T) {
	f := startAWS(t)
	f.parameters["/a"] = pending
	ctx, stop := context.WithCancel(context.Background())
	f.onAsked = func(int, map[string]string) { stop() }
	require.ErrorIs(t, awaitHosts(ctx, connected(t), map[string]string{"/a": "i-1"}, time.Hour), context.Canceled)
}

func TestAMissingParameterIsNamed(t *testing.T) {
	startAWS(t)
	_, err := connected(t).parameters(context.Background(), "/gone")
	require.EqualError(t, err, "the parameter /gone is gone: `make aws-up` makes what is missing")
}

func TestNothingIsLeft(t *testing.T) {
	f := startAWS(t)
	// The list lags behind; a host that it still names is asked for at EC2, which knows none.
	f.tagged, f.there = [][]string{{"arn:aws:sqs:eu-central-1:1:slow-to-go"}, {"arn:aws:ec2:eu-central-1:1:instance/i-1"}}, nil
	require.NoError(t, connected(t).verifyGone(context.Background(), "sse-soak", "eu-central-1", "", time.Minute, tick))
}

func TestSomethingIsLeft(t *testing.T) {
	f := startAWS(t)
	f.tagged, f.hosts, f.there = [][]string{{"arn:aws:s3:::sse-soak-1"}}, []string{"i-0123456789abcdef0"}, []string{"sse-soak-1"}
	err := connected(t).verifyGone(context.Background(), "sse-soak", "eu-central-1", "", 0, tick)
	require.ErrorContains(t, err, "2 things in eu-central-1 still carry the tag Run=sse-soak")
	require.ErrorContains(t, err, "arn:aws:s3:::sse-soak-1")
	require.ErrorContains(t, err, "i-0123456789abcdef0")
}

// AWS lists for minutes what is gone. The services themselves know better.
func TestWhatIsGoneButStillListed(t *testing.T) {
	f := startAWS(t)
	f.tagged = [][]string{{
		"arn:aws:s3:::sse-soak-1", "arn:aws:ec2:eu-central-1:1:vpc/vpc-1", "arn:aws:ec2:eu-central-1:1:security-group/sg-1",
		"arn:aws:ec2:eu-central-1:1:vpc-endpoint/vpce-1", "arn:aws:ssm:eu-central-1:1:parameter/sse-soak/stack/status",
	}}
	left, listed, err := connected(t).left(context.Background(), tag{"Run", "sse-soak"})
	require.NoError(t, err)
	assert.Empty(t, left)
	assert.Equal(t, f.tagged[0], listed)
	require.NoError(t, connected(t).verifyGone(context.Background(), "sse-soak", "eu-central-1", "", 0, tick))

	f.there, f.parameters["/sse-soak/stack/status"] = []string{"vpc-1"}, "ready"
	left, _, err = connected(t).left(context.Background(), tag{"Run", "sse-soak"})
	require.NoError(t, err)
	assert.Equal(t, []string{"arn:aws:ec2:eu-central-1:1:vpc/vpc-1", "arn:aws:ssm:eu-central-1:1:parameter/sse-soak/stack/status"}, left)
}

// A check that AWS denies must not be reported as "nothing is left".
func TestADeniedCheckIsAnError(t *testing.T) {
	f := startAWS(t)
	f.denied = true
	err := connected(t).verifyGone(context.Background(), "sse-soak", "eu-central-1", "", time.Minute, tick)
	require.ErrorContains(t, err, "could not be verified")
}

func TestNoCredentials(t *testing.T) {
	startAWS(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	_, err := connect(context.Background(), "eu-central-1")
	require.ErrorContains(t, err, "there are no AWS credentials: log in")
}

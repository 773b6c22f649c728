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
	name := func(i int) string { return fmt.Sprintf("/sse-soak/status-%02d", i) }
	for i := range 12 { // more than AWS gives at once
		statuses[name(i)] = fmt.Sprintf("i-%d", i)
		f.parameters[name(i)] = "ready i-of-yesterday" // a parameter outlives its host
	}
	f.onAsked = func(n int, p map[string]string) {
		for i := range 12 {
			if n > 3 || i < 4*n {
				p[name(i)] = fmt.Sprintf("ready i-%d", i)
			}
		}
	}
	require.NoError(t, awaitHosts(context.Background(), connected(t), statuses, tick))
	assert.GreaterOrEqual(t, f.asked, 4)
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
	c := connected(t)
	f.parameters["/a"] = pending
	ctx, stop := context.WithCancel(context.Background())
	f.onAsked = func(int, map[string]string) { stop() }
	require.Error(t, awaitHosts(ctx, c, map[string]string{"/a": "i-1"}, time.Hour))
	require.Error(t, ctx.Err())
}

// A laptop that loses its network does not end the wait; a refusal does.
func TestWaitingOutlivesALostNetwork(t *testing.T) {
	f := startAWS(t)
	c := connected(t)
	f.parameters["/a"], f.cut = "ready i-1", 2
	said := printed(t, func() {
		require.NoError(t, awaitHosts(context.Background(), c, map[string]string{"/a": "i-1"}, tick))
	})
	assert.Contains(t, said, "; asking again for 5m0s\n")
	assert.Contains(t, said, "/a is ready")
	assert.Zero(t, f.cut)
	f.denied = true
	require.ErrorContains(t, awaitHosts(context.Background(), c, map[string]string{"/a": "i-1"}, tick), "AccessDeniedException")
}

func TestAMissingParameterIsNamed(t *testing.T) {
	startAWS(t)
	_, err := connected(t).parameters(context.Background(), "/gone")
	require.EqualError(t, err, "the parameter /gone is gone: `make aws-up` makes what is missing")
}

// The list of tags lags behind: hosts, disks and buckets, which cost money, are asked for at their services.
func TestNothingIsLeft(t *testing.T) {
	f := startAWS(t)
	f.tagged = [][]string{{"arn:aws:ec2:eu-central-1:1:instance/i-1", "arn:aws:s3:::sse-soak-1", "arn:aws:ec2:eu-central-1:1:vpc/vpc-1"}}
	said := printed(t, func() {
		require.NoError(t, connected(t).verifyGone(context.Background(), settings{Name: "sse-soak", Region: "eu-central-1"}, "", time.Minute, tick))
	})
	assert.Contains(t, said, "still listed by its tag, which AWS forgets within hours: arn:aws:ec2:eu-central-1:1:vpc/vpc-1\n")
	assert.Contains(t, said, "nothing that costs money is left in eu-central-1 with the tag Run=sse-soak")
}

func TestSomethingIsLeft(t *testing.T) {
	f := startAWS(t)
	f.tagged, f.hosts, f.buckets = [][]string{{"arn:aws:s3:::sse-soak-1"}}, []string{"i-0123456789abcdef0"}, []string{"sse-soak-1"}
	err := connected(t).verifyGone(context.Background(), settings{Name: "sse-soak", Region: "eu-central-1"}, "", 0, tick)
	require.ErrorContains(t, err, "2 things in eu-central-1 still cost money and carry the tag Run=sse-soak")
	require.ErrorContains(t, err, "arn:aws:s3:::sse-soak-1")
	require.ErrorContains(t, err, "i-0123456789abcdef0")
}

// A check that AWS denies must not be reported as "nothing is left".
func TestADeniedCheckIsAnError(t *testing.T) {
	f := startAWS(t)
	f.denied = true
	err := connected(t).verifyGone(context.Background(), settings{Name: "sse-soak", Region: "eu-central-1"}, "", time.Minute, tick)
	require.ErrorContains(t, err, "could not be verified")
}

func TestNoCredentials(t *testing.T) {
	startAWS(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	_, err := connect(context.Background(), "eu-central-1")
	require.ErrorContains(t, err, "there are no valid AWS credentials: log in")
}

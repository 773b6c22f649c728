//go:build k8s

// Package cluster runs soaks on a cluster with the k6-operator (docs/distributed.md): clean runs, and failures that can
// be caused from outside. The soaks use the service account `soak`, so the tests also check that its rights are
// sufficient.
package cluster

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sse-soak/sse-soak/internal/run/cluster"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

func TestSoakPassesAndCleansUp(t *testing.T) {
	c := connect(t)
	s := c.soak(t, "clean")
	assert.Equal(t, 0, s.wait(t), "%s", s.output())
	v := s.verdict(t)
	assert.Equal(t, verdict.Pass, v.Verdict)
	assert.Equal(t, 100, v.Connections.Completed)
	assert.NotContains(t, s.output(), "forbidden", "the service account must have all rights of a run")
	assert.True(t, v.Server.Known, "the ledger of the backend must be fetched inside the cluster")
	assert.True(t, v.Server.Agrees, "the ledger of the backend must match: %+v", v.Server)
	require.NotNil(t, v.Control)
	assert.True(t, v.Control.Decides && v.Control.Remote, "the runners must reach the reference of the control group: %+v", v.Control)
	require.Len(t, v.Runners, 4)
	for i, r := range v.Runners {
		assert.Equal(t, i+1, r.Index)
		assert.Equal(t, "finished", r.State)
	}
	c.requireNothingLeft(t)
}

// The API server accepts every overlay, with the published CRD.
func TestAPIServerAcceptsOverlays(t *testing.T) {
	c := connect(t)
	for _, overlay := range []string{"local", "aws", "scale"} {
		m, err := cluster.Build("../../infra/k6-operator/overlays/" + overlay)
		require.NoError(t, err)
		for _, o := range append(m.Setup, m.TestRun) {
			resource, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
			_, err := c.Dynamic.Resource(resource).Namespace(o.GetNamespace()).Apply(t.Context(), o.GetName(), o,
				metav1.ApplyOptions{FieldManager: "e2e", Force: true, DryRun: []string{metav1.DryRunAll}})
			require.NoError(t, err, "%s: %s %s", overlay, o.GetKind(), o.GetName())
		}
	}
}

// A lost runner makes the verdict invalid. The verdict names the pod, the node and the cause, and lists the last
// checkpoint of the runner and the shards of the other runners.
func TestLostRunnerIsInvalid(t *testing.T) {
	c := connect(t)
	for name, tt := range map[string]struct {
		end  func(ctx context.Context, pod string) error
		want string
	}{
		"deleted": {func(ctx context.Context, pod string) error {
			return c.CoreV1().Pods(namespace).Delete(ctx, pod, metav1.DeleteOptions{})
		}, "its pod was deleted at "},
		"evicted": {c.evict, "it was evicted: EvictionByEvictionAPI"},
		"killed at once": {func(ctx context.Context, pod string) error {
			now := int64(0)
			return c.CoreV1().Pods(namespace).Delete(ctx, pod, metav1.DeleteOptions{GracePeriodSeconds: &now})
		}, "its pod"},
	} {
		t.Run(name, func(t *testing.T) {
			s := c.soak(t, strings.ReplaceAll(name, " ", "-"))
			s.awaitOutput(t, "all runners have started")
			pod := c.runnerPod(t, s, 2)
			require.NoError(t, tt.end(t.Context(), pod.Name))
			assert.Equal(t, 2, s.wait(t), "%s", s.output())
			v := s.verdict(t)
			assert.Equal(t, verdict.Invalid, v.Verdict)
			all := strings.Join(v.Reasons, "\n")
			assert.Contains(t, all, "runner 2 of 4 (pod "+pod.Name+" on node "+pod.Spec.NodeName+"): "+tt.want)
			require.Len(t, v.Runners, 4, "the last checkpoint of the lost runner must be listed")
			assert.NotEqual(t, "finished", v.Runners[1].State)
			assert.Equal(t, "finished", v.Runners[0].State, "the other runners must finish")
			c.requireNothingLeft(t)
		})
	}
}

// If a run cannot start, soak ends it and reports the cause.
func TestUnstartableRunIsInvalid(t *testing.T) {
	c := connect(t)
	for overlay, want := range map[string]string{
		"testdata/no-starter": "cannot start: ErrImageNeverPull", // permanent, so soak does not wait for --start-timeout
		"testdata/no-image":   "cannot start: (ErrImagePull|ImagePullBackOff)",
		"testdata/no-room":    "is stuck: no node accepts it: Unschedulable",
	} {
		t.Run(overlay, func(t *testing.T) {
			args := []string{"--overlay", overlay}
			if overlay == "testdata/no-room" { // a node may become free, so soak waits
				args = append(args, "--start-timeout", "30s")
			}
			s := c.soak(t, strings.TrimPrefix(overlay, "testdata/"), args...)
			assert.Equal(t, 2, s.wait(t), "%s", s.output())
			v := s.verdict(t)
			assert.Equal(t, verdict.Invalid, v.Verdict)
			assert.Regexp(t, want, v.Sentence, "the sentence must start with the cause")
			c.requireNothingLeft(t)
		})
	}
}

// An evicted runner closes its streams and writes its shard. The run passes, because MIN_COVERAGE accepts the observed
// time.
func TestDrainedRunnerIsJudgedByMinCoverage(t *testing.T) {
	c := connect(t)
	s := c.soak(t, "drain", "--min-coverage", "50")
	s.awaitOutput(t, "all runners have started")
	time.Sleep(10 * time.Second) // time for some noops
	pod := c.runnerPod(t, s, 2)
	require.NoError(t, c.evict(t.Context(), pod.Name))
	assert.Equal(t, 0, s.wait(t), "%s", s.output())
	v := s.verdict(t)
	require.Len(t, v.Runners, 4)
	assert.Equal(t, "interrupted", v.Runners[1].State, "the runner must write its shard")
	require.NotNil(t, v.Watched)
	assert.Less(t, v.Watched.Share, 1.)
	assert.Contains(t, v.Sentence, "that were watched; ")
	warnings := strings.Join(v.Warnings, "\n")
	assert.Contains(t, warnings, "it was evicted: EvictionByEvictionAPI")
	assert.NotContains(t, warnings, "Readiness probe")
	assert.True(t, v.Server.Agrees, "the clients of runner 2 must receive every message that the backend sent")
	c.requireNothingLeft(t)
}

// A run with another target does not affect a run with the backend of the cluster, whichever starts first.
func TestConcurrentRunsAreExact(t *testing.T) {
	c := connect(t)
	args := []string{"--connections", "50", "--runners", "2", "--seconds", "60"}
	otherTarget := func() []string { return append([]string{"--backend-url", c.backend(t)}, args...) }
	check := func(s *soak) {
		assert.Equal(t, 0, s.wait(t), "%s", s.output())
		v := s.verdict(t)
		assert.Equal(t, verdict.Pass, v.Verdict, s.testid)
		assert.Equal(t, 50, v.Connections.Completed, s.testid)
		assert.Zero(t, v.Messages.Missed, s.testid)
	}
	earlierSoak := c.soak(t, "before", otherTarget()...)
	earlierSoak.awaitOutput(t, "all runners have started")
	first := c.soak(t, "first", args...)
	first.awaitOutput(t, "all runners have started")
	laterSoak := c.soak(t, "after", otherTarget()...)
	check(earlierSoak)
	check(first)
	check(laterSoak)
	c.requireNothingLeft(t)
}

// After a soak is killed, another soak attaches to its run and reports the verdict.
func TestAttachFromAnotherMachine(t *testing.T) {
	c := connect(t)
	s := c.soak(t, "attach")
	s.awaitOutput(t, "all runners have started")
	require.NoError(t, s.process.Process.Signal(syscall.SIGKILL))
	s.wait(t)
	second := c.command(t, t.TempDir(), "attach", s.testid)
	assert.Equal(t, 0, second.wait(t), "%s", second.output())
	v := second.verdict(t)
	assert.Equal(t, verdict.Pass, v.Verdict)
	assert.Equal(t, 100, v.Connections.Completed)
	c.requireNothingLeft(t)
}

// Two soaks that are attached to one run reach the same verdict. The first soak to finish removes the run.
func TestTwoAttachedSoaksAgree(t *testing.T) {
	c := connect(t)
	url := c.backend(t)
	s := c.soak(t, "attach-twice", "--backend-url", url)
	s.awaitOutput(t, "all runners have started")
	require.NoError(t, s.process.Process.Signal(syscall.SIGKILL))
	s.wait(t)
	soaks := []*soak{c.command(t, t.TempDir(), "attach", s.testid), c.command(t, t.TempDir(), "attach", s.testid)}
	for _, s := range soaks {
		assert.Equal(t, 0, s.wait(t), "%s", s.output())
		assert.Equal(t, 100, s.verdict(t).Connections.Completed)
	}
	third := c.command(t, t.TempDir(), "attach", s.testid)
	assert.Equal(t, 2, third.wait(t))
	assert.Contains(t, third.output(), "the run was never started, or was cleaned up")
	c.requireNothingLeft(t)
}

func TestCtrlCCleansUp(t *testing.T) {
	c := connect(t)
	s := c.soak(t, "interrupt")
	s.awaitOutput(t, "all runners have started")
	time.Sleep(3 * time.Second) // time for some noops
	require.NoError(t, s.process.Process.Signal(syscall.SIGINT))
	assert.Equal(t, 2, s.wait(t), "%s", s.output())
	v := s.verdict(t)
	assert.Equal(t, verdict.Invalid, v.Verdict)
	assert.Contains(t, strings.Join(v.Reasons, "\n"), "the run was stopped by a signal before its end")
	require.Len(t, v.Runners, 4)
	for _, r := range v.Runners {
		assert.Equal(t, "interrupted", r.State, "runner %d must write its shard", r.Index)
	}
	assert.Positive(t, v.Messages.Received)
	assert.Zero(t, v.Messages.Missed)
	c.requireNothingLeft(t)
}

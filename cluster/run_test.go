package cluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// patience is how long a test waits for what has to come.
const patience = 20 * time.Second

// said collects what a run tells, and lets a test wait for it.
type said struct {
	mu  sync.Mutex
	all []string
}

func (s *said) say(news string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, news)
}

func (s *said) contains(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, n := range s.all {
			if n == text || len(n) >= len(text) && n[:len(text)] == text {
				return true
			}
		}
		return false
	}, patience, time.Millisecond, "%s", text)
}

// waiting begins to wait for a run, and is told its end.
func begin(ctx context.Context, r *Run) (*said, <-chan error) {
	news, done := &said{}, make(chan error, 1)
	go func() { done <- r.Wait(ctx, news.say) }()
	return news, done
}

func end(t *testing.T, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		require.Fail(t, "the run does not end")
		return nil
	}
}

func TestARunIsFollowedFromTheFirstPodToTheLast(t *testing.T) {
	t.Parallel()
	w, dir := newWorld(t), t.TempDir()
	r := Follow(w.Client, "ns", testPlan(), testLimits(), dir)
	w.k6.pause(true)
	news, done := begin(t.Context(), r)
	w.show(t, snapshot("initializing"))
	w.show(t, snapshot("creating"))
	news.contains(t, "the script is in order")
	w.show(t, snapshot("starting"))
	news.contains(t, "3 runners are up on 1 nodes")
	w.show(t, snapshot("running")) // the cluster shows no difference: only k6 knows
	select {
	case <-r.Started():
		require.Fail(t, "a paused runner has not started")
	case <-time.After(50 * time.Millisecond):
	}
	w.k6.pause(false)
	news.contains(t, "all runners have started")
	require.Eventually(t, func() bool { _, n := r.Progress(); return n == Count{Opened: 1200, Events: 3702} }, patience, time.Millisecond)
	w.show(t, snapshot("over"))
	require.NoError(t, end(t, done))
	r.Close()
	assert.Empty(t, r.Problems())
	for _, name := range []string{"k6-initializer.log", "k6-starter.log", "k6-runner-1.log", "k6-runner-2.log", "k6-runner-3.log"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.Equal(t, "fake logs", string(text))
	}
}

func TestALostRunnerIsToldWhileTheOthersGoOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := Follow(w.Client, "ns", testPlan(), testLimits(), t.TempDir())
	w.show(t, snapshot("running"))
	news, done := begin(t.Context(), r)
	<-r.Started()
	s := snapshot("running")
	s.Runners[1] = part(runName+"-2", batchv1.JobFailed, exited(137, "OOMKilled"))
	w.show(t, s)
	news.contains(t, "runner 2 of 3 (pod soak-t-2-x7 on node node-a): it was killed for memory")
	s = snapshot("over")
	s.Runners[1] = Part{}
	w.show(t, s)
	require.NoError(t, end(t, done))
	r.Close()
	require.Len(t, r.Problems(), 1)
	assert.Contains(t, r.Problems()[0], "it printed fake logs")
}

// The laptop's connection is cut for a while, or for good. The run does not depend on it.
func TestALostConnectionIsWaitedForButNotForEver(t *testing.T) {
	t.Parallel()
	for name, comesBack := range map[string]bool{"for a while": true, "for good": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var cut sync.Map
			w.typed.PrependReactor("list", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
				_, is := cut.Load("cut")
				return is, nil, errors.New("connection refused")
			})
			limits := testLimits()
			if !comesBack {
				limits.Unreachable = 100 * time.Millisecond
			}
			r := Follow(w.Client, "ns", testPlan(), limits, t.TempDir())
			w.show(t, snapshot("running"))
			news, done := begin(t.Context(), r)
			<-r.Started()
			cut.Store("cut", true)
			news.contains(t, "the cluster does not answer (look at the Jobs: connection refused); the run goes on there")
			if !comesBack {
				require.ErrorIs(t, end(t, done), ErrLost)
				r.Close()
				return
			}
			w.show(t, snapshot("over"))
			cut.Delete("cut")
			require.NoError(t, end(t, done))
			r.Close()
			assert.Empty(t, r.Problems())
		})
	}
}

func TestRunnersAreAskedToStopInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := Follow(w.Client, "ns", testPlan(), testLimits(), t.TempDir())
	w.show(t, snapshot("running"))
	ctx, interrupt := context.WithCancel(t.Context())
	_, done := begin(ctx, r)
	<-r.Started()
	interrupt()
	require.ErrorIs(t, end(t, done), context.Canceled)
	require.NoError(t, r.Stop(t.Context()))
	w.k6.mu.Lock()
	assert.Equal(t, 3, w.k6.stopped)
	w.k6.mu.Unlock()
	_, done = begin(t.Context(), r)
	w.show(t, snapshot("over"))
	require.NoError(t, end(t, done))
	r.Close()
}

func TestAnyoneCanFindAndRemoveARun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, shards, err := w.Find(t.Context(), "ns", "t")
	require.NoError(t, err)
	assert.Equal(t, testPlan(), p)
	assert.Equal(t, "s3://soak/t", shards)
	names, err := w.Others(t.Context(), "ns")
	require.NoError(t, err)
	assert.Equal(t, []string{runName}, names)
	require.NoError(t, w.Delete(t.Context(), "ns", runName))
	_, _, err = w.Find(t.Context(), "ns", "t")
	require.EqualError(t, err, "there is no TestRun soak-t in ns: the run was never started, or is over and cleaned up")
	require.NoError(t, w.Delete(t.Context(), "ns", runName), "what is gone is gone")
}

func TestCleaningUpWaitsForThePodsAndSaysWhatIsLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.show(t, snapshot("running")) // the fake has no garbage collector
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := w.Delete(ctx, "ns", runName)
	require.ErrorContains(t, err, "the run is not cleaned up, `kubectl delete testrun -n ns soak-t` does it: 5 pods are still there")
}

func TestASecretCarriesTheToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := buildOverlay(t, "local")
	m.TestRun.SetName("soak-u")
	m.TestRun.SetNamespace("ns")
	require.NoError(t, w.Create(t.Context(), m.TestRun, "u", "hush"))
	secret, err := w.CoreV1().Secrets("ns").Get(t.Context(), "soak-u-token", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "hush", secret.StringData["BACKEND_TOKEN"])
	require.Len(t, secret.OwnerReferences, 1, "it goes with its TestRun")
	assert.Equal(t, "soak-u", secret.OwnerReferences[0].Name)
	err = w.Create(t.Context(), m.TestRun, "u", "")
	require.ErrorContains(t, err, "a TestRun soak-u is there already: choose another --testid, or `soak attach u` to follow it")
}

func TestWithoutTheOperatorOneIsToldToInstallIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.dynamic.PrependReactor("create", "testruns", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewNotFound(testRuns.GroupResource(), "")
	})
	err := w.Create(t.Context(), buildOverlay(t, "local").TestRun, "t", "")
	require.ErrorContains(t, err, "install the k6-operator v1.6 (docs/kubernetes.md)")
}

// A pipeline's account may make TestRuns, but not the namespace and its policies.
func TestWhatOneMayNotChangeIsTakenToBeThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var applied []string
	w.dynamic.PrependReactor("patch", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		patch, ok := a.(clienttesting.PatchAction)
		if !ok || a.GetResource().Resource == "namespaces" {
			return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "sse-soak", errors.New("not you"))
		}
		applied = append(applied, a.GetResource().Resource+"/"+patch.GetName())
		return true, buildOverlay(t, "local").TestRun, nil
	})
	left, err := w.Apply(t.Context(), buildOverlay(t, "local").Setup)
	require.NoError(t, err)
	assert.Equal(t, []string{"Namespace sse-soak"}, left)
	assert.Contains(t, applied, "networkpolicies/deny")
	assert.Contains(t, applied, "deployments/bucket")
}

func TestTheTargetsRestartsAreItsFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	backend := pod("backend")
	backend.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 2}}
	require.NoError(t, w.typed.Tracker().Add(backend))
	watched, err := w.WatchPod(t.Context(), "ns", "backend-x7")
	require.NoError(t, err)
	assert.Empty(t, w.Restarts(t.Context(), watched), "what was before the run is not of the run")
	backend = backend.DeepCopy()
	backend.Status.ContainerStatuses[0].RestartCount = 3
	backend.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
		Reason: "OOMKilled", ExitCode: 137, FinishedAt: metav1.NewTime(noon),
	}
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	require.NoError(t, w.typed.Tracker().Update(pods, backend, "ns"))
	assert.Equal(t, []string{"the target's pod backend-x7 on node node-a was restarted 1 times, at last at 12:00:00 UTC (OOMKilled, exit code 137)"}, w.Restarts(t.Context(), watched))
	require.NoError(t, w.typed.Tracker().Delete(pods, "ns", "backend-x7"))
	assert.Equal(t, []string{"the target's pod backend-x7 was replaced during the run"}, w.Restarts(t.Context(), watched))
}

package cluster

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
)

const testTimeout = time.Minute

type newsRecorder struct {
	mu    sync.Mutex
	texts []string
}

func (s *newsRecorder) record(news string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.texts = append(s.texts, news)
}

func (s *newsRecorder) await(t *testing.T, prefix string) {
	t.Helper()
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.ContainsFunc(s.texts, func(text string) bool { return strings.HasPrefix(text, prefix) })
	}, testTimeout, time.Millisecond, "%s", prefix)
}

func startWait(ctx context.Context, r *Run) (*newsRecorder, <-chan error) {
	news, done := &newsRecorder{}, make(chan error, 1)
	go func() { done <- r.Wait(ctx, news.record) }()
	return news, done
}

func awaitEnd(t *testing.T, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(testTimeout):
		require.Fail(t, "the run did not end")
		return nil
	}
}

type followedRun struct {
	*Run
	cluster *fakeCluster
	news    *newsRecorder
	done    <-chan error
}

// followRunning follows a run until all of its runners have started.
func (w *fakeCluster) followRunning(t *testing.T, limits Limits) *followedRun {
	t.Helper()
	f := &followedRun{Run: Follow(w.Client, "ns", testPlan(), limits, t.TempDir()), cluster: w}
	w.show(t, snapshot("running"))
	f.news, f.done = startWait(t.Context(), f.Run)
	<-f.Started()
	return f
}

// finish ends the run with a snapshot, and returns the error of Wait.
func (f *followedRun) finish(t *testing.T, s Snapshot) error {
	t.Helper()
	f.cluster.show(t, s)
	err := awaitEnd(t, f.done)
	f.Close()
	return err
}

func TestFollowFromTheFirstPodToTheLast(t *testing.T) {
	t.Parallel()
	w, dir := newFakeCluster(t), t.TempDir()
	r := Follow(w.Client, "ns", testPlan(), testLimits(), dir)
	reports := make(chan *shard.Progress, 100)
	r.OnReport = func(_ int, p *shard.Progress) { reports <- p }
	w.k6.pause(true)
	news, done := startWait(t.Context(), r)
	w.show(t, snapshot("initializing"))
	w.show(t, snapshot("creating"))
	news.await(t, "the script is valid")
	w.show(t, snapshot("starting"))
	news.await(t, "3 runners are ready on 1 node")
	w.show(t, snapshot("running")) // the cluster shows a paused runner as running; only k6's API shows the difference
	select {
	case <-r.Started():
		require.Fail(t, "a paused runner must not count as started")
	case <-time.After(50 * time.Millisecond):
	}
	w.k6.pause(false)
	news.await(t, "all runners have started")
	for range 3 {
		require.Equal(t, &shard.Progress{Open: 400, Opened: 400, Counts: ledger.Counts{Received: 1234, Lost: 1}}, <-reports)
	}
	w.show(t, snapshot("finished"))
	require.NoError(t, awaitEnd(t, done))
	r.Close()
	assert.Empty(t, r.Ends())
	close(reports)
	ends := 0
	for p := range reports {
		if p == nil {
			ends++
		}
	}
	assert.Equal(t, 3, ends, "the end of each runner must be reported once")
	for _, name := range []string{"k6-initializer.log", "k6-starter.log", "k6-runner-1.log", "k6-runner-2.log", "k6-runner-3.log"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.Equal(t, "fake logs", string(text))
	}
}

func TestLostRunnerIsReportedDuringTheRun(t *testing.T) {
	t.Parallel()
	r := newFakeCluster(t).followRunning(t, testLimits())
	s := snapshot("running")
	s.Runners[1] = part(runName+"-2", batchv1.JobFailed, setExited(137, "OOMKilled"))
	r.cluster.show(t, s)
	r.news.await(t, "runner 2 of 3 (pod soak-t-2-x7 on node node-a): it ran out of memory")
	s = snapshot("finished")
	s.Runners[1] = Part{}
	require.NoError(t, r.finish(t, s))
	require.Len(t, r.Ends(), 1)
	assert.Contains(t, r.Ends()[0].Text, "its output: fake logs")
}

// A pod may be evicted, end and be deleted between two polls. Only the watch receives the reason.
func TestPodDeletedBetweenPollsIsExplained(t *testing.T) {
	t.Parallel()
	limits := testLimits()
	limits.PollInterval = time.Second
	r := newFakeCluster(t).followRunning(t, limits)
	pods, tracker := corev1.SchemeGroupVersion.WithResource("pods"), r.cluster.typed.Tracker()
	require.NoError(t, tracker.Update(pods, pod(runName+"-1", setDrained, setExited(105, "Error")), "ns"))
	require.NoError(t, tracker.Delete(pods, "ns", runName+"-1-x7"))
	require.NoError(t, tracker.Delete(pods, "ns", runName+"-2-x7"))
	r.news.await(t, "runner 1 of 3 (pod soak-t-1-x7 on node node-a): it was evicted: EvictionByEvictionAPI: Eviction API: evicting (exit code 105)")
	r.news.await(t, "runner 2 of 3 (pod soak-t-2-x7 on node node-a): its pod was deleted at ")
	s := snapshot("finished")
	s.Runners[0], s.Runners[1] = Part{}, Part{}
	require.NoError(t, r.finish(t, s))
}

// The watch may report a pod that was created after the pods were listed. That pod is not lost, and the run
// continues.
func TestPodCreatedDuringAPollIsNotLost(t *testing.T) {
	t.Parallel()
	w := newFakeCluster(t)
	r := Follow(w.Client, "ns", testPlan(), testLimits(), t.TempDir())
	defer r.Close()
	w.typed.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		r.watch.store(pod(runName+"-1"), false)
		return true, &corev1.PodList{}, nil
	})
	poll := func() []shard.RunnerEnd {
		s, err := r.poll(t.Context())
		require.NoError(t, err)
		r.tracker.Advance(s)
		return r.Ends()
	}
	require.Empty(t, poll())
	require.Contains(t, poll()[0].Text, "runner 1 of 3 (pod soak-t-1-x7 on node node-a): its pod is gone", "a pod that was known before the poll must count as lost")
}

// The run does not depend on the connection of the laptop, which may fail temporarily or permanently.
func TestLostConnectionIsRetriedUntilATimeout(t *testing.T) {
	t.Parallel()
	for name, recovers := range map[string]bool{"temporarily": true, "permanently": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limits := testLimits()
			if !recovers {
				limits.Unreachable = 100 * time.Millisecond
			}
			w := newFakeCluster(t)
			var disconnected atomic.Bool
			w.typed.PrependReactor("list", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
				return disconnected.Load(), nil, errors.New("connection refused")
			})
			r := w.followRunning(t, limits)
			disconnected.Store(true)
			r.news.await(t, "the cluster does not answer (read the Jobs: connection refused); the run continues")
			if !recovers {
				require.ErrorIs(t, awaitEnd(t, r.done), ErrUnreachable)
				r.Close()
				return
			}
			disconnected.Store(false)
			r.news.await(t, "the cluster answers again")
			require.NoError(t, r.finish(t, snapshot("finished")))
			assert.Empty(t, r.Ends())
		})
	}
}

func TestRunnersStopGracefully(t *testing.T) {
	t.Parallel()
	w := newFakeCluster(t)
	r := Follow(w.Client, "ns", testPlan(), testLimits(), t.TempDir())
	w.show(t, snapshot("running"))
	ctx, interrupt := context.WithCancel(t.Context())
	_, done := startWait(ctx, r)
	<-r.Started()
	interrupt()
	require.ErrorIs(t, awaitEnd(t, done), context.Canceled)
	require.NoError(t, r.Stop(t.Context()))
	w.k6.mu.Lock()
	assert.Equal(t, 3, w.k6.stopped)
	w.k6.mu.Unlock()
	_, done = startWait(t.Context(), r)
	w.show(t, snapshot("finished"))
	require.NoError(t, awaitEnd(t, done))
	r.Close()
}

// The readiness probe of a pod fails while the pod ends. This failure is not the cause of the end.
func TestFailedReadinessProbeIsNotACause(t *testing.T) {
	t.Parallel()
	w := newFakeCluster(t)
	p := Part{Pod: pod(runName + "-1")}
	for i, message := range []string{"Stopping container k6", "Readiness probe failed: dial tcp 10.244.0.28:6565: connect: connection refused"} {
		event := &corev1.Event{Type: corev1.EventTypeWarning, Reason: []string{"Killing", "Unhealthy"}[i], Message: message}
		event.Name, event.InvolvedObject.Name = event.Reason, p.Pod.Name
		_, err := w.CoreV1().Events("ns").Create(t.Context(), event, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	w.explain(t.Context(), "ns", &p)
	assert.Equal(t, []string{"Killing: Stopping container k6"}, p.Events)
}

// Under disk pressure a node removes the log with the container.
func TestLastOutputIgnoresMissingLogs(t *testing.T) {
	t.Parallel()
	assert.Empty(t, lastOutput("unable to retrieve container logs for containerd://51e858ada94f"))
	assert.Equal(t, "the last line", lastOutput("a line\nthe last line\n"))
	assert.Equal(t, "no such host", lastOutput(`time="2026-11-21T12:00:00Z" level=error msg="no such host"`+"\nbye\n"))
}

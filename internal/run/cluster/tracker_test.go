package cluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/sse-soak/sse-soak/internal/run/runners"
	"github.com/sse-soak/sse-soak/internal/shard"
)

func advance(tracker *Tracker, names ...string) {
	for _, name := range names {
		tracker.Advance(snapshot(name))
	}
}

func TestRunPassesThroughItsPhases(t *testing.T) {
	t.Parallel()
	tracker := newTracker(3, testLimits(), noon)
	for _, step := range []struct {
		name string
		want Phase
	}{
		{"new", Initializing}, {"initializing", Initializing}, {"creating", Creating}, {"starting", Starting},
		{"unpausing", Starting}, {"running", Running}, {"finished", Ended},
	} {
		attached := newTracker(3, testLimits(), noon) // of a soak process that attaches at this time
		advance(tracker, step.name)
		advance(attached, step.name)
		assert.Equal(t, []Phase{step.want, step.want}, []Phase{tracker.phase, attached.phase}, step.name)
		assert.Empty(t, attached.Ends, step.name)
	}
	assert.True(t, tracker.IsDone())
	assert.Empty(t, tracker.Ends)
}

// Only the verdict judges a failed threshold. Two soak processes may be attached to one run: the first to finish
// removes the pods between two polls of the other.
func TestEndedRunnerIsNotLost(t *testing.T) {
	t.Parallel()
	for name, changes := range map[string][]func(*corev1.Pod){
		"a threshold failed":          {setExited(runners.ThresholdsFailed, "Error")},
		"deleted":                     {setExited(0, "Completed"), setDeleting},
		"drained":                     {setExited(0, "Completed"), setDrained},
		"deleted, a threshold failed": {setExited(runners.ThresholdsFailed, "Error"), setDeleting},
	} {
		tracker := newTracker(3, testLimits(), noon)
		advance(tracker, "running")
		s := Snapshot{At: noon, Deleted: true, Runners: make([]Part, 3)}
		for i := range s.Runners {
			s.Runners[i].Last = pod(fmt.Sprintf("%s-%d", runName, i+1), changes...)
		}
		tracker.Advance(s)
		assert.Equal(t, Ended, tracker.phase, name)
		assert.Empty(t, tracker.Ends, name)
	}
}

// If a runner fails during the run, the others continue, and the loss is reported.
func TestLostRunnerHasPodNodeAndReason(t *testing.T) {
	t.Parallel()
	const runner = "runner 2 of 3 (pod soak-t-2-x7 on node node-a): "
	for name, c := range map[string]struct {
		steps []Part
		want  string
	}{
		"out of memory": {[]Part{part(runName+"-2", batchv1.JobFailed, setExited(137, "OOMKilled"))}, "it ran out of memory (OOMKilled); its limit is 128Mi; raise the limit, or the number of runners"},
		"evicted":       {[]Part{part(runName+"-2", batchv1.JobFailed, setEvicted)}, "it was terminated: Evicted: The node was low on resource: memory"},
		"drained":       {[]Part{part(runName+"-2", "", setDrained), {Job: job(runName+"-2", batchv1.JobFailed)}}, "it was evicted: EvictionByEvictionAPI: Eviction API: evicting"},
		"deleted":       {[]Part{part(runName+"-2", "", setDeleting), part(runName+"-2", "", setDeleting, setExited(105, "Error"))}, "its pod was deleted at 12:00:00 UTC (exit code 105)"},
		"deleted between polls": {[]Part{{Job: job(runName+"-2", batchv1.JobFailed), Events: []string{"Killing: Stopping container k6"}}},
			"its pod is gone: the pod or its node was deleted; message of the cluster: Killing: Stopping container k6"},
		"deleted with its Job": {[]Part{{}}, "its pod is gone: the pod or its node was deleted"},
		"crashed": {[]Part{func() Part {
			p := part(runName+"-2", batchv1.JobFailed, setExited(2, "Error"))
			p.Log = "fatal error: all goroutines are asleep"
			return p
		}()}, "it ended with exit code 2; its output: fatal error: all goroutines are asleep"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tracker := newTracker(3, testLimits(), noon)
			advance(tracker, "running")
			for _, p := range c.steps {
				s := snapshot("running")
				s.Runners[1] = p
				tracker.Advance(s)
				assert.Equal(t, Running, tracker.phase, "the other runners must continue")
			}
			assert.Equal(t, []shard.RunnerEnd{{Runner: 2, Text: runner + c.want}}, tracker.Ends)
			assert.False(t, tracker.Failed)
			s := snapshot("finished")
			s.Runners[1] = Part{}
			tracker.Advance(s)
			assert.Equal(t, Ended, tracker.phase)
			assert.Len(t, tracker.Ends, 1, "a loss must be reported once")
		})
	}
}

func TestDeadNodeEndsTheWait(t *testing.T) {
	t.Parallel()
	tracker := newTracker(3, testLimits(), noon)
	advance(tracker, "running")
	s := snapshot("running")
	s.Runners[0] = part(runName+"-1", "", setDrained)
	tracker.Advance(s)
	assert.Empty(t, tracker.Ends, "a drained runner must not count as lost while it may still write its shard")
	s.At = noon.Add(30*time.Second + graceSlack + time.Second)
	tracker.Advance(s)
	require.Len(t, tracker.Ends, 1)
	assert.Contains(t, tracker.Ends[0].Text, "its node has not reported its end")
}

func TestRunThatCannotStartTimesOut(t *testing.T) {
	t.Parallel()
	late := func(s *Snapshot) { s.At = noon.Add(61 * time.Second) }
	for name, c := range map[string]struct {
		from   string
		change func(*Snapshot)
		want   string
	}{
		"the operator does nothing": {"new", late, `the k6-operator has not processed the TestRun; check that it runs: kubectl get pods -n k6-operator-system`},
		"the operator rejects the TestRun": {"new", func(s *Snapshot) { s.Stage = "error" },
			"the operator rejected the TestRun (stage error); see the log of the operator"},
		"the script is wrong": {"initializing", func(s *Snapshot) {
			s.Initializer = part(runName+"-initializer", batchv1.JobFailed, setExited(1, "Error"))
			s.Initializer.Log = "BACKEND_URL is missing"
		}, "the initializer failed (pod soak-t-initializer-x7 on node node-a): it ended with exit code 1; its output: BACKEND_URL is missing"},
		"no image for the initializer": {"initializing", func(s *Snapshot) {
			late(s)
			s.Initializer.Pod = pod(runName+"-initializer", setNoImage)
		}, `the phase "initializer" lasted longer than 1m0s: the initializer (pod soak-t-initializer-x7 on node node-a) is stuck: ImagePullBackOff: Back-off pulling image "sse-soak/k6:none"`},
		"no room": {"creating", late,
			`runner 3 (pod soak-t-3-x7, on no node) is stuck: no node accepts it: Unschedulable: 0/3 nodes are available: 3 Insufficient memory`},
		"no quota": {"no pod", func(s *Snapshot) {
			late(s)
			s.Runners[2] = Part{Job: job(runName+"-3", ""), Events: []string{`FailedCreate: Error creating: pods "soak-t-3-" is forbidden: exceeded quota`}}
		}, `runner 3 (no pod) is stuck: the operator created no pod; message of the cluster: FailedCreate: Error creating: pods "soak-t-3-" is forbidden: exceeded quota`},
		"no image for the starter": {"starting", func(s *Snapshot) {
			late(s)
			s.Starter.Pod = pod(runName+"-starter", setNoImage)
		}, `the phase "starter" lasted longer than 1m0s: the starter (pod soak-t-starter-x7 on node node-a) is stuck: ImagePullBackOff`},
		"the starter fails": {"starting", func(s *Snapshot) {
			s.Starter = part(runName+"-starter", batchv1.JobFailed, setExited(127, "Error"))
			s.Starter.Log = "sh: curl: not found"
		}, "the starter failed (pod soak-t-starter-x7 on node node-a): it ended with exit code 127; its output: sh: curl: not found"},
		"the starter is ignored": {"unpausing", late,
			"runner 1 (pod soak-t-1-x7 on node node-a) is stuck: it is still paused although the starter has ended"},
		"k6 does not answer": {"unpausing", func(s *Snapshot) { late(s); s.Runners[1].Paused = nil },
			"runner 2 (pod soak-t-2-x7 on node node-a) is stuck: k6's REST API does not answer"},
		"a runner dies before the start": {"starting", func(s *Snapshot) {
			s.Runners[0] = part(runName+"-1", batchv1.JobFailed, setExited(107, "Error"))
		}, "runner 1 ended before all had started"},
		"a runner does not end": {"running", func(s *Snapshot) {
			s.Runners[0], s.Runners[1] = snapshot("finished").Runners[0], snapshot("finished").Runners[1]
			s.At = noon.Add(11 * time.Minute)
		}, `the phase "run" lasted longer than 10m0s: runner 3 (pod soak-t-3-x7 on node node-a) is stuck: it has not ended`},
		"the TestRun is deleted": {"creating", func(s *Snapshot) { s.Deleted = true }, `the TestRun was deleted while it was in the phase "runners"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tracker := newTracker(3, testLimits(), noon)
			advance(tracker, c.from)
			require.False(t, tracker.IsDone())
			s := snapshot(c.from)
			c.change(&s)
			tracker.Advance(s)
			assert.True(t, tracker.Failed)
			assert.Contains(t, fmt.Sprint(tracker.Ends), c.want)
		})
	}
}

// badImage returns a snapshot of a run whose runners cannot pull their image.
func badImage(at time.Time) Snapshot {
	s := snapshot("creating")
	s.At = at
	for i := range s.Runners {
		s.Runners[i] = part(runName+"-1", "", setNoImage)
	}
	return s
}

// A permanent cause is reported within 30 s, not after the ten minutes of the phase. If the user chose the time limit of
// the start, the cause is reported once, and the run continues to wait.
func TestPersistentCauseEndsTheRun(t *testing.T) {
	t.Parallel()
	quota := func(at time.Time) Snapshot {
		s := snapshot("new")
		s.At, s.Stage = at, "initialization"
		s.Initializer = Part{Job: job(runName+"-initializer", ""), Events: []string{"FailedCreate: Error creating: pods is forbidden: exceeded quota: pods"}}
		return s
	}
	missingOperator := func(at time.Time) Snapshot {
		s := snapshot("new")
		s.At = at
		return s
	}
	for want, state := range map[string]func(time.Time) Snapshot{
		`runner 1 (pod soak-t-1-x7 on node node-a) cannot start: ImagePullBackOff: Back-off pulling image "sse-soak/k6:none"`: badImage,
		"the initializer (no pod) cannot start: FailedCreate: Error creating: pods is forbidden: exceeded quota: pods":        quota,
		"the k6-operator has not processed the TestRun; check that it runs: kubectl get pods -n k6-operator-system":           missingOperator,
	} {
		limits := testLimits()
		limits.Start = 10 * time.Minute
		tracker := newTracker(3, limits, noon)
		for _, after := range []time.Duration{0, 10 * time.Second, 24 * time.Second} {
			tracker.Advance(state(noon.Add(after)))
			require.False(t, tracker.IsDone(), after)
		}
		tracker.Advance(state(noon.Add(26 * time.Second)))
		require.True(t, tracker.Failed)
		require.Equal(t, []shard.RunnerEnd{{Text: want}}, tracker.Ends, "the cause must be reported once, not per runner")

		limits.ExplicitStart = true
		tracker = newTracker(3, limits, noon)
		var news []string
		for after := time.Duration(0); after < 2*time.Minute; after += 10 * time.Second {
			news = append(news, tracker.Advance(state(noon.Add(after)))...)
		}
		require.False(t, tracker.IsDone())
		require.Equal(t, want+"; waiting for up to 10m0s", news[len(news)-1])
		require.LessOrEqual(t, len(news), 2, "the news must be the phase and, once, the cause")
	}
	tracker := newTracker(3, testLimits(), noon)
	assert.Empty(t, tracker.Suspects(quota(noon)))
	assert.Len(t, tracker.Suspects(quota(noon.Add(11*time.Second))), 1, "the reason for a missing pod must be looked up")
}

func TestInterruptedStartNamesItsCause(t *testing.T) {
	t.Parallel()
	tracker := newTracker(3, testLimits(), noon)
	tracker.Interrupt()
	assert.Empty(t, tracker.Ends, "without a known cause nothing may be recorded")
	tracker.Advance(badImage(noon))
	tracker.Interrupt()
	require.Len(t, tracker.Ends, 1)
	assert.Contains(t, tracker.Ends[0].Text, `cannot start: ImagePullBackOff: Back-off pulling image "sse-soak/k6:none"`)
}

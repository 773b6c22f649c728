package cluster

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// A Phase is a phase of a run.
type Phase int

// The phases, in their order.
const (
	Initializing Phase = iota // the initializer reads the script and its options
	Creating                  // the runners are scheduled, and wait paused
	Starting                  // the starter unpauses the runners
	Running
	Ended // every runner has finished or failed
)

func (p Phase) String() string {
	return [...]string{"initializer", "runners", "starter", "run", "over"}[p]
}

// Limits has the maximum durations of the phases and of an outage of the API server, and the interval of the polls.
type Limits struct {
	Start         time.Duration // each of initializer, runners and starter
	ExplicitStart bool          // the user chose Start: a permanent cause of a wait is reported, but does not end the run
	Run           time.Duration // from the start of all runners to the end of the last one
	Unreachable   time.Duration // how long the API server may be unreachable before soak gives up
	PollInterval  time.Duration // between two polls of the cluster
}

// DefaultLimits returns the limits for runners that run for length. They leave time for pulling images, adding nodes
// and uploading shards.
func DefaultLimits(length time.Duration) Limits {
	const ending = 10*time.Second + 2*time.Minute
	return Limits{Start: 10 * time.Minute, Run: length + ending, Unreachable: 5 * time.Minute, PollInterval: pollInterval}
}

// A Tracker derives phases, news and problems from snapshots. A tracker that starts in the middle of a run reaches the
// same phase.
type Tracker struct {
	limits  Limits
	phase   Phase
	since   time.Time // start of the phase
	runners []runner
	// Ends describes the runners that did not complete and, as runner 0, other reasons why the run is incomplete.
	Ends []shard.RunnerEnd
	// Failed reports whether the run cannot finish.
	Failed bool

	blockedBy    string    // why the run has not started yet; "": unknown
	blockedSince time.Time // zero: no cause is known
	reported     bool      // the cause was reported
	news         []string
}

// A runner has the last known state of one runner, even after the cluster has deleted the pod.
type runner struct {
	pod      *corev1.Pod
	hasEnded bool
	problem  string
}

func newTracker(runners int, l Limits, now time.Time) *Tracker {
	return &Tracker{limits: l, since: now, runners: make([]runner, runners)}
}

// IsDone reports whether the run has ended or cannot finish.
func (t *Tracker) IsDone() bool { return t.phase == Ended || t.Failed }

// Advance applies a snapshot, and returns the new problems and the news in it as sentences.
func (t *Tracker) Advance(s Snapshot) (news []string) {
	endCount := len(t.Ends)
	for i := range t.runners {
		t.observe(i, &s.Runners[i], s.At)
	}
	t.checkStart(s)
	if t.news = nil; t.phase < Running && !t.Failed && !s.Deleted {
		t.checkBlocked(s)
		news = t.news
	}
	if next := t.next(s); next > t.phase {
		news = append(news, t.enterPhase(next, s))
		t.phase, t.since = next, s.At
	}
	switch {
	case t.IsDone():
	case s.Deleted:
		t.fail("the TestRun was deleted while it was in the phase %q", t.phase)
	case s.At.Sub(t.since) > t.limit():
		t.timeOut(s)
	}
	var problems []string
	for _, end := range t.Ends[endCount:] {
		problems = append(problems, end.Text)
	}
	return append(problems, news...)
}

func (t *Tracker) observe(i int, p *Part, at time.Time) {
	r := &t.runners[i]
	if r.hasEnded {
		return
	}
	r.update(p)
	problem, hasEnded := p.end(r.pod, at)
	if !hasEnded {
		return
	}
	r.hasEnded, r.problem = true, problem
	if problem == "" {
		return
	}
	t.recordEnd(i+1, "runner %d of %d (%s): %s%s", i+1, len(t.runners), location(r.pod), problem, p.details())
}

func (r *runner) update(p *Part) {
	switch {
	case p.Pod != nil:
		r.pod = p.Pod
	case p.Last != nil:
		r.pod = p.Last
	}
}

// details returns the last event and the log line that explain a problem, for the end of the sentence about it.
func (p *Part) details() string {
	text := ""
	if n := len(p.Events); n > 0 {
		text = "; message of the cluster: " + p.Events[n-1]
	}
	if p.Log != "" {
		text += "; its output: " + p.Log
	}
	return text
}

func (t *Tracker) checkStart(s Snapshot) {
	if t.phase >= Running || t.Failed {
		return
	}
	for _, helper := range []struct {
		name string
		*Part
	}{{"initializer", &s.Initializer}, {"starter", &s.Starter}} {
		p := helper.Part
		problem, hasEnded := p.end(nil, s.At)
		if reason, failed := jobFailure(p.Job); hasEnded && problem == "" && failed {
			problem = reason
		}
		if hasEnded && problem != "" {
			t.fail("the %s failed (%s): %s%s", helper.name, location(p.Pod), problem, p.details())
			return
		}
	}
	if s.Stage == "error" {
		t.fail("the operator rejected the TestRun (stage error); see the log of the operator: kubectl logs -n k6-operator-system deploy/k6-operator-controller-manager%s", s.Initializer.details())
		return
	}
	for i := range t.runners {
		// After an attach late in the run, some runners may have finished. A runner that fails before the start
		// prevents the start of the others.
		if r := &t.runners[i]; r.hasEnded && r.problem != "" && !t.isStarted(s) {
			t.fail("runner %d ended before all had started, so the operator starts no runner", i+1)
			return
		}
	}
}

func (t *Tracker) isStarted(s Snapshot) bool { return isComplete(s.Starter.Job) }

func (t *Tracker) next(s Snapshot) Phase {
	finished, running, unpaused := 0, 0, 0
	for i := range t.runners {
		p := &s.Runners[i]
		switch {
		case t.runners[i].hasEnded:
			finished++
		case p.Pod != nil && p.Pod.Status.Phase == corev1.PodRunning:
			running++
			if p.Paused != nil && !*p.Paused {
				unpaused++
			}
		}
	}
	total := len(t.runners)
	switch {
	case finished == total:
		return Ended
	case t.isStarted(s) && finished+unpaused == total:
		return Running
	case finished+running == total:
		return Starting
	case isComplete(s.Initializer.Job) || finished+running > 0:
		return Creating
	}
	return Initializing
}

func (t *Tracker) enterPhase(next Phase, s Snapshot) string {
	duration := s.At.Sub(t.since).Round(time.Second)
	switch next {
	case Creating:
		return fmt.Sprintf("the script is valid (%v); waiting for %s", duration, format.Count(len(t.runners), "runner"))
	case Starting:
		nodes := map[string]bool{}
		for _, r := range t.runners {
			if r.pod != nil {
				nodes[r.pod.Spec.NodeName] = true
			}
		}
		return fmt.Sprintf("%s ready on %s (%v); waiting for the start", format.Plural(len(t.runners), "runner is", "runners are"), format.Count(len(nodes), "node"), duration)
	case Running:
		return fmt.Sprintf("all runners have started (%v)", duration)
	case Initializing, Ended:
	}
	return "all runners have ended"
}

func (t *Tracker) limit() time.Duration {
	if t.phase == Running {
		return t.limits.Run
	}
	return t.limits.Start
}

// recordEnd records how a runner ended or, as runner 0, a problem of the run.
func (t *Tracker) recordEnd(runner int, format string, args ...any) {
	t.Ends = append(t.Ends, shard.RunnerEnd{Runner: runner, Text: fmt.Sprintf(format, args...)})
}

func (t *Tracker) fail(format string, args ...any) {
	t.recordEnd(0, format, args...)
	t.Failed = true
}

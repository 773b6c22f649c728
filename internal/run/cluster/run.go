package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// ErrUnreachable reports that the API server has not responded for Limits.Unreachable. The run continues in the
// cluster.
var ErrUnreachable = errors.New("the cluster has not answered")

// A Run follows one TestRun.
type Run struct {
	// OnReport, if not nil, is called with the index of a runner, from 1, and its counts, or nil when the runner has
	// ended. Set it before Wait.
	OnReport func(index int, p *shard.Progress)

	client    *Client
	namespace string
	name      string
	limits    Limits
	tracker   *Tracker
	logs      *logKeeper
	watch     *podWatch
	apis      []*runnerAPI

	mu    sync.Mutex
	pods  []string // names of the running pods, by runner; "": the runner has none
	phase Phase

	started chan struct{}
}

// Follow returns the Run of a plan. Its method Wait follows the TestRun, and stores the logs of the pods in dir.
func Follow(c *Client, namespace string, p plan.Plan, l Limits, dir string) *Run {
	r := &Run{
		client: c, namespace: namespace, name: Name(p.TestID), limits: l,
		tracker: newTracker(p.Runners, l, time.Now()), logs: newLogKeeper(c, namespace, dir),
		watch: &podWatch{client: c, namespace: namespace, run: Name(p.TestID), last: map[string]*corev1.Pod{}},
		pods:  make([]string, p.Runners), started: make(chan struct{}),
	}
	for i := range p.Runners {
		r.apis = append(r.apis, &runnerAPI{open: func(ctx context.Context) (*Forward, error) {
			pod := r.pod(i)
			if pod == "" {
				return nil, fmt.Errorf("runner %d has no running pod", i+1)
			}
			return c.Open(ctx, namespace, pod, k6Port)
		}})
	}
	return r
}

// Wait follows the run until the run has ended or cannot complete, or until ctx ends. It calls report with each change.
// The error is ErrUnreachable, or the error of ctx.
func (r *Run) Wait(ctx context.Context, report func(string)) error {
	watchCtx, stop := context.WithCancel(ctx)
	var helpers sync.WaitGroup
	first, _ := r.watch.open(watchCtx) // retried if it fails
	helpers.Go(func() { r.watch.follow(watchCtx, first, r.limits.PollInterval) })
	if r.OnReport != nil {
		helpers.Go(func() { r.count(watchCtx) })
	}
	defer helpers.Wait()
	defer stop()
	lastAnswer, unreachable := time.Now(), false
	tick := time.NewTicker(r.limits.PollInterval)
	defer tick.Stop()
	for {
		s, err := r.poll(ctx)
		switch {
		case ctx.Err() != nil:
			r.tracker.Interrupt()
			return ctx.Err()
		case err != nil && time.Since(lastAnswer) > r.limits.Unreachable:
			return fmt.Errorf("%w for %v: %w", ErrUnreachable, r.limits.Unreachable, err)
		case err != nil:
			if !unreachable {
				report(fmt.Sprintf("the cluster does not answer (%v); the run continues; retrying", err))
			}
			unreachable = true
		default:
			if unreachable {
				report("the cluster answers again")
			}
			lastAnswer, unreachable = time.Now(), false
			for _, news := range r.tracker.Advance(s) {
				report(news)
			}
			r.setPhase()
			if r.tracker.IsDone() {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			r.tracker.Interrupt()
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// poll takes a snapshot with the reasons for problems. It also records the running pods, and starts to copy the logs of
// started pods. After the end of the starter, and until all runners run, the snapshot states which runners are paused.
func (r *Run) poll(ctx context.Context) (Snapshot, error) {
	known := r.watch.knownNames()
	s, err := r.client.Snapshot(ctx, r.namespace, r.name, len(r.apis))
	if err != nil {
		return s, err
	}
	r.watch.fill(&s, known)
	r.recordPods(s)
	r.logs.follow(r.name, s)
	if r.tracker.phase < Running && isComplete(s.Starter.Job) {
		_ = r.eachRunner(ctx, func(ctx context.Context, i int) error {
			paused, err := r.apis[i].isPaused(ctx)
			if err == nil {
				s.Runners[i].Paused = &paused
			}
			return nil
		})
	}
	for _, p := range r.tracker.Suspects(s) {
		r.client.explain(ctx, r.namespace, p)
	}
	return s, nil
}

// eachRunner calls do for each running runner, a few at a time.
func (r *Run) eachRunner(ctx context.Context, do func(ctx context.Context, i int) error) error {
	const limit = 16
	var group errgroup.Group
	group.SetLimit(limit)
	for i := range r.apis {
		if r.pod(i) != "" {
			group.Go(func() error { return do(ctx, i) })
		}
	}
	return group.Wait()
}

func (r *Run) recordPods(s Snapshot) {
	for i := range s.Runners {
		name := ""
		if p := s.Runners[i].Pod; p != nil && p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			name = p.Name
		}
		r.mu.Lock()
		hasEnded := name == "" && r.pods[i] != ""
		r.pods[i] = name
		r.mu.Unlock()
		if hasEnded && r.OnReport != nil {
			r.OnReport(i+1, nil)
		}
	}
}

// pod returns the name of the running pod of the runner at index i, from 0; "" if the runner has no running pod.
func (r *Run) pod(i int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pods[i]
}

// setPhase copies the phase of the tracker, which only Wait uses, and closes started when all runners have started.
func (r *Run) setPhase() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.phase < Running && r.tracker.phase == Running {
		close(r.started)
	}
	r.phase = r.tracker.phase
}

// Started returns a channel that is closed when all runners have started.
func (r *Run) Started() <-chan struct{} { return r.started }

const countInterval = 5 * time.Second

func (r *Run) count(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-r.started:
	}
	tick := time.NewTicker(countInterval)
	defer tick.Stop()
	for {
		_ = r.eachRunner(ctx, func(ctx context.Context, i int) error {
			if n, err := r.apis[i].count(ctx); err == nil && r.pod(i) != "" {
				r.OnReport(i+1, &n)
			}
			return nil
		})
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Phase returns the phase of the run.
func (r *Run) Phase() Phase {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.phase
}

// Stop makes all running runners close their streams, write their shards and end. It does not wait for their end.
func (r *Run) Stop(ctx context.Context) error {
	return r.eachRunner(ctx, func(ctx context.Context, i int) error {
		if err := r.apis[i].stop(ctx); err != nil {
			return fmt.Errorf("stop runner %d: %w", i+1, err)
		}
		return nil
	})
}

// Ends describes the runners that did not complete and, as runner 0, other reasons why the run is incomplete.
func (r *Run) Ends() []shard.RunnerEnd { return r.tracker.Ends }

// logTimeout is the maximum wait for the last lines of a log.
const logTimeout = 10 * time.Second

// Close waits up to logTimeout until the logs of the runners are complete, and closes the connections to the runners.
// Close does not end the run. Call Close after Wait has returned.
func (r *Run) Close() {
	r.logs.finish(logTimeout)
	for _, api := range r.apis {
		api.close()
	}
}

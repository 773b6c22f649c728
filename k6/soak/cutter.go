package soak

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/sseclient"
)

var cutKinds = map[string]sseclient.Cut{plan.CutFIN: sseclient.CutFIN, plan.CutRST: sseclient.CutRST, plan.CutHalf: sseclient.CutHalfOpen, plan.CutPause: sseclient.CutPause}

// A cutter cuts streams of this runner at the planned times; a cut is a disconnect or a pause. It chooses at random
// among the open streams that received a message since their last cut. Without such a stream, it waits for one until
// 1 s after the cut period. The ledgers record the cuts.
type cutter struct {
	mu      sync.Mutex
	streams []cutTarget
}

type cutTarget struct {
	observer *observer
	stream   interface {
		Cut(cutKind sseclient.Cut, pause time.Duration) bool
	}
}

func (c *cutter) add(s cutTarget) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streams = append(c.streams, s)
}

// cutRandom cuts a random stream. It returns false if no stream can be cut.
func (c *cutter) cutRandom(random *rand.Rand, cutKind sseclient.Cut, pause time.Duration) bool {
	c.mu.Lock()
	all := c.streams
	c.mu.Unlock()
	if len(all) == 0 {
		return false
	}
	offset := random.IntN(len(all))
	for i := range all {
		if s := all[(offset+i)%len(all)]; s.observer.ledger.CanCut() && s.stream.Cut(cutKind, pause) {
			return true
		}
	}
	return false
}

// retryInterval is the time between two attempts of the cutter while no stream can be cut.
const retryInterval = 20 * time.Millisecond

// run makes the cuts of one runner in order. runner counts from 1. start is the time when the first stream of the
// runner started.
func (c *cutter) run(ctx context.Context, p *plan.Plan, runner int, start time.Time) {
	random := rand.New(rand.NewPCG(uint64(p.Seed), uint64(runner))) // #nosec G115 G404 -- the seed of the plan makes cuts repeatable; not a secret
	_, end := p.CutPeriod()
	for i, cut := range p.PlannedCuts() {
		if i%max(p.Runners, 1) != runner-1 {
			continue
		}
		for wait := time.Until(start.Add(cut.At)); ; wait = retryInterval {
			if !sleep(ctx, wait) || time.Since(start) > end+time.Second {
				return
			}
			if c.cutRandom(random, cutKinds[cut.Kind], p.Pause()) {
				break
			}
		}
	}
}

// sleep waits for d. It returns false if ctx ends before that.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// startCutter starts the cutter of this runner, whose number is index. The caller holds mu.
func (r *recorder) startCutter(index int) {
	r.cutter = new(cutter)
	p := r.plan
	ctx, stop := context.WithCancel(context.Background())
	r.stopCutter = stop
	go r.cutter.run(ctx, &p, index, time.Now())
}

// addToCutter adds a stream to the cutter. It returns true, because Callbacks.Cuttable requires that for a stream that
// may be cut.
func (o *observer) addToCutter(s *sseclient.Stream) bool {
	o.recorder.mu.Lock()
	c := o.recorder.cutter
	o.recorder.mu.Unlock()
	c.add(cutTarget{o, s})
	return true
}

func (o *observer) cut(at time.Time, cutKind sseclient.Cut) {
	for name, kind := range cutKinds {
		if kind == cutKind {
			o.ledger.Cut(o.recorder.instant(at), name, cutKind == sseclient.CutPause)
		}
	}
}

func (o *observer) resumed(at time.Time, _ sseclient.Cut) { o.ledger.PauseOver(o.recorder.instant(at)) }

package soak

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"go.k6.io/k6/v2/js/modules"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/sseclient"
)

// cutKinds are the kinds of cuts, as EventSources make them.
var cutKinds = map[string]sseclient.Cut{plan.CutFIN: sseclient.CutFIN, plan.CutRST: sseclient.CutRST, plan.CutHalf: sseclient.CutHalf, plan.CutPause: sseclient.CutPause}

// A cutter disconnects streams of this runner at the planned times. It draws among the open streams that received a
// message since their last cut. If there is none it waits for one, up to the end of the time for cuts. The ledgers
// have the cuts that were made.
type cutter struct {
	mu      sync.Mutex
	streams []cuttable
}

// A cuttable is a stream that can be disconnected.
type cuttable struct {
	observer *observer
	stream   interface {
		Cut(cutKind sseclient.Cut, pause time.Duration) bool
	}
}

// add adds a stream.
func (c *cutter) add(s cuttable) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streams = append(c.streams, s)
}

// cutOne disconnects one stream, drawn among those that can be cut; false if there is none.
func (c *cutter) cutOne(random *rand.Rand, cutKind sseclient.Cut, pause time.Duration) bool {
	c.mu.Lock()
	all := c.streams
	c.mu.Unlock()
	if len(all) == 0 {
		return false
	}
	from := random.IntN(len(all))
	for i := range all {
		if s := all[(from+i)%len(all)]; s.observer.ledger.CanCut() && s.stream.Cut(cutKind, pause) {
			return true
		}
	}
	return false
}

// retryInterval is the wait of the cutter while no stream can be disconnected.
const retryInterval = 20 * time.Millisecond

// run makes the cuts of one runner: each of them once, in their order.
func (c *cutter) run(ctx context.Context, p *plan.Plan, runner int, start time.Time) {
	random := rand.New(rand.NewPCG(uint64(p.Seed), uint64(runner))) // #nosec G115 G404 -- the plan's seed repeats the cuts; no secret
	_, to := p.CutWindow()
	for i, cut := range p.PlannedCuts() {
		if i%max(p.Runners, 1) != runner-1 {
			continue
		}
		for wait := time.Until(start.Add(cut.At)); ; wait = retryInterval {
			if !sleep(ctx, wait) || time.Since(start) > to+time.Second {
				return
			}
			if c.cutOne(random, cutKinds[cut.Kind], p.Pause()) {
				break
			}
		}
	}
}

// sleep returns false where ctx ended.
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

// startCutting starts the cutter of this runner, once, if the plan has cuts. The caller holds mu.
func (r *recorder) startCutting(vu modules.VU, runner string) error {
	if r.cutter != nil || !r.plan.Cuts() {
		return nil
	}
	index, err := runnerIndex(runner, vu.State().Options)
	if err != nil {
		return err
	}
	r.cutter = new(cutter)
	p := r.plan // does not change any more
	ctx, stop := context.WithCancel(context.Background())
	r.stopCutting = stop
	go r.cutter.run(ctx, &p, index, time.Now())
	return nil
}

// cuts reports whether the run cuts streams.
func (r *recorder) cuts() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cutter != nil
}

// cuttable adds the stream to the cutter.
func (o *observer) cuttable(s *sseclient.Stream) bool {
	o.recorder.mu.Lock()
	c := o.recorder.cutter
	o.recorder.mu.Unlock()
	c.add(cuttable{o, s})
	return true
}

// cut records that the stream was disconnected.
func (o *observer) cut(at time.Time, cutKind sseclient.Cut) {
	for kind, way := range cutKinds {
		if way == cutKind {
			o.ledger.Cut(o.recorder.instant(at), kind, cutKind == sseclient.CutPause)
		}
	}
}

// resumed records that the stream is read again after a pause.
func (o *observer) resumed(at time.Time, _ sseclient.Cut) { o.ledger.PauseOver(o.recorder.instant(at)) }

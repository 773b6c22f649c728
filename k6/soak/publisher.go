package soak

import (
	"context"
	"sync"
	"time"

	"go.k6.io/k6/v2/js/modules"
	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/shard"
)

// publishEvery is how often this runner tells k6 its figures. Outputs write no more often.
const publishEvery = 5 * time.Second

// A publisher tells k6's outputs what the ledgers say: when the first stream begins, every
// publishEvery while there are some, and when the last has ended. It costs nothing per noop: it adds the ledgers up.
type publisher struct {
	recorder *recorder
	every    time.Duration

	once    sync.Once // the metrics are those of k6's one registry
	root    *metrics.TagSet
	metrics map[string]*metrics.Metric

	mu      sync.Mutex
	live    map[*outlet]int // ways to k6, and how many streams keep each open
	stop    chan struct{}   // ends the goroutine; nil while there is none
	sampler *sampler
	before  *shard.Histogram // lateness at the last time
	told    map[string]float64
}

// An outlet is the way to k6 of one iteration of a virtual user. k6 takes samples until the last
// iteration is over, and an iteration is not over while one of its streams is not.
type outlet struct {
	ctx     context.Context
	samples chan<- metrics.SampleContainer
	tags    *metrics.TagSet
}

func newPublisher(r *recorder) *publisher {
	return &publisher{recorder: r, every: publishEvery, live: map[*outlet]int{}, told: map[string]float64{}}
}

// register makes the metrics known to k6, which wants that in the init context.
func (p *publisher) register(registry *metrics.Registry) {
	p.once.Do(func() {
		p.root, p.metrics = registry.RootTagSet(), map[string]*metrics.Metric{}
		for _, f := range append(figures, lateness...) {
			p.metrics[f.name] = registry.MustNewMetric(f.name, f.kind)
		}
	})
}

// outlet is the way to k6 from a virtual user's code. The figures are the runner's: they carry
// the tags of the run, not those of a scenario.
func (p *publisher) outlet(vu modules.VU) *outlet {
	state := vu.State()
	p.recorder.planIterations(plannedIterations(state.Options.Scenarios))
	return &outlet{ctx: vu.Context(), samples: state.Samples, tags: p.root.WithTagsFromMap(state.Options.RunTags)}
}

// begun notes that a stream, or an attempt at one, keeps o open.
func (p *publisher) begun(o *outlet) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.live[o]++
	if p.stop != nil {
		return
	}
	if p.sampler == nil {
		p.sampler = newSampler()
		p.publish() // a counter is best known from 0 on
	}
	p.stop = make(chan struct{})
	go p.run(p.stop)
}

// ended notes that one is over. With the last of all the goroutine ends, and the figures are told
// as they stand: nothing changes any more, unless another stream begins.
func (p *publisher) ended(o *outlet) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.live) == 1 && p.live[o] == 1
	if last {
		p.publish()
		close(p.stop)
		p.stop = nil
	}
	if p.live[o]--; p.live[o] == 0 {
		delete(p.live, o)
	}
}

func (p *publisher) run(stop chan struct{}) {
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		p.mu.Lock()
		if p.stop == stop { // an outlet is open, and stays so while the lock is held
			p.publish()
		}
		p.mu.Unlock()
	}
}

// publish tells all figures by any outlet that is open. The caller holds the lock.
func (p *publisher) publish() {
	t := p.recorder.tally(p.before)
	t.self = p.sampler.take()
	p.before = t.all
	list := figures
	if t.recent != nil {
		list = append(list[:len(list):len(list)], lateness...)
	}
	for o := range p.live {
		if metrics.PushIfNotDone(o.ctx, o.samples, p.samplesOf(&t, list, o.tags)) {
			return
		}
	}
}

func (p *publisher) samplesOf(t *tally, list []figure, tags *metrics.TagSet) metrics.Samples {
	now := time.Now()
	out := make(metrics.Samples, 0, len(list))
	for _, f := range list {
		value := f.of(t)
		if f.kind == metrics.Counter { // k6 adds counters up
			value = max(value, p.told[f.name])
			value, p.told[f.name] = value-p.told[f.name], value
		}
		out = append(out, metrics.Sample{TimeSeries: metrics.TimeSeries{Metric: p.metrics[f.name], Tags: tags}, Time: now, Value: value})
	}
	return out
}

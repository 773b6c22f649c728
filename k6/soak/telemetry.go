package soak

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.k6.io/k6/v2/js/modules"
	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
)

const publishInterval = 5 * time.Second

// A telemetry publishes the counts of the ledgers as metrics of k6: at the start of the first stream, every
// publishInterval while there are streams, and at the end of the last one. It sums up the ledgers, so it has no cost
// per message.
type telemetry struct {
	recorder *recorder
	interval time.Duration

	once    sync.Once // registers the metrics
	root    *metrics.TagSet
	metrics map[string]*metrics.Metric

	mu               sync.Mutex
	openSinks        map[*sampleSink]int // number of streams that keep each sink open
	stop             chan struct{}       // ends the goroutine; nil without one
	sampler          *sampler
	previousLateness *shard.Histogram     // at the last publication
	lastValues       map[string]float64   // of counters, at the last publication
	buckets          map[string][]float64 // by metric, at the last publication
	states           map[ledger.ResponseState]int64
	reports          int
	firstStart       time.Time // start of the first stream
	actions          []plan.Action
}

// A sampleSink accepts the samples of one iteration of a virtual user. k6 accepts them until the end of the iteration,
// which does not end while one of its streams is open.
type sampleSink struct {
	ctx     context.Context
	samples chan<- metrics.SampleContainer
	tags    *metrics.TagSet
}

func newTelemetry(r *recorder) *telemetry {
	return &telemetry{
		recorder: r, interval: publishInterval, openSinks: map[*sampleSink]int{}, lastValues: map[string]float64{}, buckets: map[string][]float64{},
		states: map[ledger.ResponseState]int64{},
	}
}

// register registers the metrics with k6. It must be called in the init context.
func (p *telemetry) register(registry *metrics.Registry) {
	p.once.Do(func() {
		p.root, p.metrics = registry.RootTagSet(), map[string]*metrics.Metric{}
		for _, m := range slices.Concat(metricsOf["noop"], metricsOf["message"], latenessMetrics, controlMetrics) {
			if p.metrics[m.name] == nil {
				p.metrics[m.name] = registry.MustNewMetric(m.name, m.kind)
			}
		}
		registerHoldMetrics(registry, p.metrics)
		p.metrics[actionMetric] = registry.MustNewMetric(actionMetric, metrics.Gauge)
		p.metrics[responsesMetric] = registry.MustNewMetric(responsesMetric, metrics.Counter)
		for _, m := range append(responseBuckets, latenessBuckets) {
			p.metrics[m.name] = registry.MustNewMetric(m.name, metrics.Counter)
		}
	})
}

func (p *telemetry) setActions(actions []plan.Action) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.actions = actions
}

// sink returns the sample sink of an iteration, and completes the plan with the iterations of the options. The samples
// have the tags of the run, and no tags of a scenario.
func (p *telemetry) sink(vu modules.VU) *sampleSink {
	state := vu.State()
	p.recorder.planIterations(plannedIterations(state.Options.Scenarios))
	return &sampleSink{ctx: vu.Context(), samples: state.Samples, tags: p.root.WithTagsFromMap(state.Options.RunTags)}
}

// start records that a stream or an attempt keeps o open. The first of them also starts the goroutine.
func (p *telemetry) start(o *sampleSink) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.openSinks[o]++
	if p.stop != nil {
		return
	}
	if p.sampler == nil {
		p.sampler, p.firstStart = newSampler(shard.BucketWidth), time.Now()
		p.publish(p.state()) // so that counters start at 0
	}
	p.stop = make(chan struct{})
	go p.run(p.stop)
}

// end records the end of a stream or attempt. After the last of them it publishes the metrics and stops the goroutine.
func (p *telemetry) end(o *sampleSink) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.openSinks[o]--
	if len(p.openSinks) == 1 && p.openSinks[o] == 0 {
		p.publish(p.state())
		close(p.stop)
		p.stop = nil
	}
	if p.openSinks[o] == 0 {
		delete(p.openSinks, o)
	}
}

func (p *telemetry) run(stop chan struct{}) {
	tick := time.NewTicker(p.interval)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		state := p.state() // before the lock, for which readers of streams wait in start and end
		p.mu.Lock()
		if p.stop == stop { // otherwise end has closed stop, and perhaps no sink is open
			p.publish(state)
		}
		p.mu.Unlock()
	}
}

// state returns a snapshot with the fields that need no lock of the telemetry.
func (p *telemetry) state() *snapshot {
	r := p.recorder
	s := new(snapshot)
	s.Progress, s.lateness = r.progress()
	s.responses = r.finiteResponses().snapshot()
	r.mu.Lock()
	defer r.mu.Unlock()
	s.planned, s.runners, s.noun, s.control = r.plan.Connections, r.plan.Runners, r.service.Message.Noun, r.control
	s.remaining = max(0, r.plan.Hold()-time.Since(p.firstStart))
	return s
}

// publish sends all metrics to one of the open sinks. The caller holds mu.
func (p *telemetry) publish(s *snapshot) {
	p.reports++
	s.reports, s.self = p.reports, p.sampler.sample()
	for _, streams := range p.openSinks {
		s.open += streams
	}
	list := metricsOf[s.noun]
	if s.responses != nil {
		list, s.open, s.runners = runnerMetrics, int(s.responses.inFlight), s.responses.runners
	}
	if n := s.lateness.Count(); p.previousLateness == nil && n > 0 || p.previousLateness != nil && n > p.previousLateness.Count() {
		s.recent, list = s.lateness.Since(p.previousLateness), slices.Concat(list, latenessMetrics)
	}
	p.previousLateness = s.lateness
	if s.controlLateness = s.control.takeMaxLateness(); s.controlLateness != nil {
		list = slices.Concat(list, controlMetrics)
	}
	var samples metrics.Samples // created once, because the samples of counters are increments
	for o := range p.openSinks {
		if samples == nil {
			samples = slices.Concat(p.samplesOf(s, list, o.tags), p.actionsOf(o.tags))
			if s.responses != nil {
				samples = append(samples, p.responsesOf(s.responses, o.tags)...)
			} else {
				samples = append(samples, p.bucketsOf(&latenessBuckets, s.lateness, o.tags)...)
			}
		}
		if metrics.PushIfNotDone(o.ctx, o.samples, samples) {
			return
		}
		// An interrupted run reports the end of its streams; otherwise it would look like a killed runner. The send
		// does not block, because k6 may no longer read samples.
		select {
		case o.samples <- samples:
			return
		default:
		}
	}
}

// samplesOf returns a sample of each metric in the list. The sample of a counter is its growth since the last call.
func (p *telemetry) samplesOf(s *snapshot, list []metric, tags *metrics.TagSet) metrics.Samples {
	out := make(metrics.Samples, 0, len(list))
	for _, m := range list {
		value := m.value(s)
		if m.kind == metrics.Counter { // k6 adds up the samples of a counter
			value = max(value, p.lastValues[m.name])
			value, p.lastValues[m.name] = value-p.lastValues[m.name], value
		}
		out = append(out, p.sampleOf(m.name, tags, value))
	}
	return out
}

func (p *telemetry) actionsOf(tags *metrics.TagSet) (out metrics.Samples) {
	for _, a := range p.actions {
		value := 0.
		if time.Since(p.firstStart) >= a.At {
			value = 1
		}
		out = append(out, p.sampleOf(actionMetric, tags.With("action", a.Name), value))
	}
	return out
}

func (p *telemetry) sampleOf(name string, tags *metrics.TagSet, value float64) metrics.Sample {
	return metrics.Sample{TimeSeries: metrics.TimeSeries{Metric: p.metrics[name], Tags: tags}, Time: time.Now(), Value: value}
}

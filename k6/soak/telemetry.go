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

// publishEvery is the interval at which this runner publishes its metrics to k6. Outputs do not write more often.
const publishEvery = 5 * time.Second

// Telemetry publishes the counts of the ledgers as metrics of k6: when the first stream begins, every publishEvery
// while there are streams, and when the last has ended. It adds up the ledgers, so it costs nothing per noop.
type telemetry struct {
	recorder *recorder
	interval time.Duration

	once    sync.Once // there is one registry of metrics
	root    *metrics.TagSet
	metrics map[string]*metrics.Metric

	mu               sync.Mutex
	live             map[*sampleSink]int // sample sinks, and how many streams keep each open
	stop             chan struct{}       // ends the goroutine; nil while there is none
	sampler          *sampler
	previousLateness *shard.Histogram // lateness when it was last published
	reported         map[string]float64
	buckets          map[string][]float64 // by metric, as they were last reported
	states           map[ledger.ResponseState]int64
	reports          int
	zero             time.Time // of the first stream: a runner may wait for others before it
	actions          []plan.Action
}

// A sampleSink is where k6 takes the samples of one iteration of a virtual user. k6 takes samples until the last
// iteration is over, and an iteration is not over while one of its streams is open.
type sampleSink struct {
	ctx     context.Context
	samples chan<- metrics.SampleContainer
	tags    *metrics.TagSet
}

func newTelemetry(r *recorder) *telemetry {
	return &telemetry{
		recorder: r, interval: publishEvery, live: map[*sampleSink]int{}, reported: map[string]float64{}, buckets: map[string][]float64{},
		states: map[ledger.ResponseState]int64{},
	}
}

// register registers the metrics with k6, which has to happen in the init context.
func (p *telemetry) register(registry *metrics.Registry) {
	p.once.Do(func() {
		p.root, p.metrics = registry.RootTagSet(), map[string]*metrics.Metric{}
		for _, m := range slices.Concat(published["noop"], published["message"], publishedLateness, publishedControl) {
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

// setActions sets the actions of the run from their list.
func (p *telemetry) setActions(list string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.actions = plan.ParseActionTimes(list)
}

// sink makes the sample sink of a virtual user's iteration. The metrics are the runner's: they carry the
// tags of the run, not those of a scenario.
func (p *telemetry) sink(vu modules.VU) *sampleSink {
	state := vu.State()
	p.recorder.planIterations(plannedIterations(state.Options.Scenarios))
	return &sampleSink{ctx: vu.Context(), samples: state.Samples, tags: p.root.WithTagsFromMap(state.Options.RunTags)}
}

// start records that a stream, or an attempt at one, keeps o open.
func (p *telemetry) start(o *sampleSink) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.live[o]++
	if p.stop != nil {
		return
	}
	if p.sampler == nil {
		p.sampler, p.zero = newSampler(), time.Now()
		p.publish(p.state()) // so that counters begin at 0
	}
	p.stop = make(chan struct{})
	go p.run(p.stop)
}

// ended records that a stream or attempt is over. After the last one the metrics are published once more, and the
// goroutine ends, until another one starts.
func (p *telemetry) ended(o *sampleSink) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.live[o]--
	if len(p.live) == 1 && p.live[o] == 0 {
		p.publish(p.state())
		close(p.stop)
		p.stop = nil
	}
	if p.live[o] == 0 {
		delete(p.live, o)
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
		state := p.state() // before the lock: the reader of all streams waits for that when one begins or ends
		p.mu.Lock()
		if p.stop == stop { // a sink is open, and stays so while the lock is held
			p.publish(state)
		}
		p.mu.Unlock()
	}
}

// A telemetryState is the state of the recorder at one moment.
type telemetryState struct {
	sums     shard.Progress
	lateness *shard.Histogram
	planned  int
	runners  int
	length   time.Duration // of streams by the plan
	control  *controlGroup
	noun     string // of a message
	// responses are those that end by themselves; nil if the run has none.
	responses *responseLook
}

func (p *telemetry) state() (l telemetryState) {
	l.sums, l.lateness = p.recorder.progress()
	r := p.recorder
	l.responses = r.finiteResponses().look()
	r.mu.Lock()
	defer r.mu.Unlock()
	l.planned, l.control, l.noun = r.plan.Connections, r.control, r.service.Message.Noun
	l.runners, l.length = r.plan.Runners, r.plan.Hold()
	return l
}

// publish sends all metrics to any open sink. The caller holds the lock.
func (p *telemetry) publish(state telemetryState) {
	p.reports++
	all := state.lateness
	s := snapshot{Progress: state.sums, planned: state.planned, runners: state.runners, left: max(0, state.length-time.Since(p.zero)), reports: p.reports, self: p.sampler.sample()}
	for _, streams := range p.live {
		s.open += streams
	}
	list := published[state.noun]
	if state.responses != nil {
		list, s.open, s.runners = ofRunner, int(state.responses.inFlight), state.responses.runners
	}
	if n := all.Count(); p.previousLateness == nil && n > 0 || p.previousLateness != nil && n > p.previousLateness.Count() {
		s.recent, list = all.Since(p.previousLateness), slices.Concat(list, publishedLateness)
	}
	p.previousLateness = all
	if s.control = state.control.latest(); s.control != nil {
		list = slices.Concat(list, publishedControl)
	}
	var samples metrics.Samples // made once: a counter's are what it grew by
	for o := range p.live {
		if samples == nil {
			samples = slices.Concat(p.samplesOf(&s, list, o.tags), p.actionsOf(o.tags))
			if state.responses != nil {
				samples = append(samples, p.responsesOf(state.responses, o.tags)...)
			} else {
				samples = append(samples, p.bucketsOf(&latenessBuckets, all, o.tags)...)
			}
		}
		if metrics.PushIfNotDone(o.ctx, o.samples, samples) {
			return
		}
		// An interrupted run reports that its streams have ended; otherwise it would look like a killed runner. k6 may no
		// longer read, so this does not wait.
		select {
		case o.samples <- samples:
			return
		default:
		}
	}
}

func (p *telemetry) samplesOf(s *snapshot, list []metric, tags *metrics.TagSet) metrics.Samples {
	now := time.Now()
	out := make(metrics.Samples, 0, len(list))
	for _, m := range list {
		value := m.value(s)
		if m.kind == metrics.Counter { // k6 adds up the samples of a counter
			value = max(value, p.reported[m.name])
			value, p.reported[m.name] = value-p.reported[m.name], value
		}
		out = append(out, metrics.Sample{TimeSeries: metrics.TimeSeries{Metric: p.metrics[m.name], Tags: tags}, Time: now, Value: value})
	}
	return out
}

// actionsOf returns a sample of each action.
func (p *telemetry) actionsOf(tags *metrics.TagSet) (out metrics.Samples) {
	now := time.Now()
	for _, a := range p.actions {
		value := 0.
		if now.Sub(p.zero) >= a.At {
			value = 1
		}
		series := metrics.TimeSeries{Metric: p.metrics[actionMetric], Tags: tags.With("action", a.Name)}
		out = append(out, metrics.Sample{TimeSeries: series, Time: now, Value: value})
	}
	return out
}

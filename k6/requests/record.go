package requests

import (
	"context"
	"strconv"
	"sync"
	"time"

	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/shard"
)

// Samples go to k6 in batches: one by one they cost as much as the request.
const (
	batchSize  = 512
	batchEvery = 100 * time.Millisecond
	maxSeries  = 1000 // servers name themselves: what is beyond is shard.Other
)

// A record holds the results of a stage's requests. Its lanes write to it.
type record struct {
	stage  *stage
	mu     sync.Mutex
	batch  metrics.Samples
	series map[series]*metrics.TagSet
	coded  map[string]*metrics.TagSet // by outcome alone
	logged map[string]bool            // codes of failures that were logged

	sent, failed, dropped int64
}

// A series has the tags of the samples of requests.
type series struct {
	op           *operation
	server, code string
	waited       bool
}

func (r *record) init(s *stage) {
	r.stage, r.series, r.logged = s, map[series]*metrics.TagSet{}, map[string]bool{}
	r.coded = map[string]*metrics.TagSet{}
}

// note adds an exchange that has an end, and further samples about it.
func (r *record) note(x *exchange, more ...metrics.Sample) {
	if x.code == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent++
	if x.code != shard.CodeOK {
		r.failed++
	}
	tags := r.tagsOf(x)
	r.add(r.stage.m.metrics.duration, tags, x.end, metrics.D(x.end.Sub(x.from)))
	if !x.first.IsZero() {
		r.add(r.stage.m.metrics.first, r.codeOnly(x.code), x.end, metrics.D(x.first.Sub(x.from)))
	}
	if x.waited > 0 {
		r.add(r.stage.m.metrics.waited, r.stage.tags.Tags, x.end, metrics.D(x.waited))
		r.add(r.stage.m.metrics.connected, r.codeOnly(x.code), x.end, metrics.D(x.end.Sub(x.from)-x.waited))
	}
	if end, fixed := r.stage.end(); fixed && x.code == shard.CodeOK && x.end.After(end) {
		r.add(r.stage.m.metrics.late, tags, x.end, metrics.D(x.end.Sub(end)))
	}
	r.batch = append(r.batch, more...)
	if len(r.batch) >= batchSize {
		r.push()
	}
}

func (r *record) tagsOf(x *exchange) *metrics.TagSet {
	key := series{x.op, x.server, x.code, x.waited > 0}
	if tags := r.series[key]; tags != nil {
		return tags
	}
	if len(r.series) >= maxSeries {
		key.server = shard.Other
		if tags := r.series[key]; tags != nil {
			return tags
		}
	}
	tags := r.stage.tags.Tags.With(shard.TagEndpoint, x.op.name).With(shard.TagCode, x.code)
	if key.server != "" {
		tags = tags.With(shard.TagServer, key.server)
	}
	if key.waited {
		tags = tags.With(shard.TagWaited, "yes")
	}
	r.series[key] = tags
	return tags
}

// codeOnly returns the tags for metrics by stage and outcome: each further tag multiplies the series of a run.
func (r *record) codeOnly(code string) *metrics.TagSet {
	tags := r.coded[code]
	if tags == nil {
		tags = r.stage.tags.Tags.With(shard.TagCode, code)
		r.coded[code] = tags
	}
	return tags
}

func (r *record) add(m *metrics.Metric, tags *metrics.TagSet, at time.Time, value float64) {
	r.batch = append(r.batch, metrics.Sample{
		TimeSeries: metrics.TimeSeries{Metric: m, Tags: tags}, Time: at, Metadata: r.stage.tags.Metadata, Value: value,
	})
}

// tell logs the first failure of each kind: its number alone does not say what to do.
func (r *record) tell(x *exchange, err error) {
	r.mu.Lock()
	isLogged := r.logged[x.code]
	r.logged[x.code] = true
	r.mu.Unlock()
	if !isLogged {
		r.stage.state.Logger.Warnf("%s: a request got no answer (%s; further ones of this stage are not logged): %v", x.op.name, x.code, err)
	}
}

// unrequested counts a connection with unrequested bytes after the answer to an operation, and logs the first one of the stage.
func (r *record) unrequested(op *operation, begin []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(r.stage.m.metrics.unrequested, r.stage.tags.Tags.With(shard.TagEndpoint, op.name), time.Now(), 1)
	if !r.logged[shard.Unrequested] {
		r.logged[shard.Unrequested] = true
		r.stage.state.Logger.Warnf("%s: the server sent unrequested bytes after its answer, starting with %q (further cases of this stage are not logged)", op.name, begin)
	}
}

// drop adds requests that were never made.
func (r *record) drop(n int64) {
	if n == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropped += n
	r.add(r.stage.state.BuiltinMetrics.DroppedIterations, r.stage.tags.Tags, time.Now(), float64(n))
}

// sample returns a further sample of an exchange, with the tags of the stage.
func (r *record) sample(m *metrics.Metric, at time.Time, value float64) metrics.Sample {
	return metrics.Sample{TimeSeries: metrics.TimeSeries{Metric: m, Tags: r.stage.tags.Tags}, Time: at, Metadata: r.stage.tags.Metadata, Value: value}
}

// inHand returns the number of requests in progress that the server reports, if it does.
func (r *record) inHand(x *exchange) (metrics.Sample, bool) {
	n, err := strconv.ParseInt(x.inFlight, 10, 64)
	return r.sample(r.stage.m.metrics.inFlight, x.end, float64(n)), err == nil && n > 0
}

// push passes the batch to k6. The VU lives as long as a stage, and k6 accepts the samples of any VU that has not
// returned.
func (r *record) push() {
	if len(r.batch) == 0 {
		return
	}
	r.stage.state.Samples <- r.batch
	r.batch = make(metrics.Samples, 0, batchSize+4)
}

// flushEvery pushes until ctx ends, so that outputs see a slow stage too.
func (r *record) flushEvery(ctx context.Context) {
	tick := time.NewTicker(batchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.finish()
		}
	}
}

// finish pushes what is left.
func (r *record) finish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.push()
}

package requests

import (
	"context"
	"strconv"
	"sync"
	"time"

	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/shard"
)

// Samples are pushed in batches. Single samples would cost as much as the requests.
const (
	batchSize  = 512
	batchEvery = 100 * time.Millisecond
	maxSeries  = 1000 // servers choose their names; further ones are counted as shard.Other
)

// A record has the results of a stage's requests. The lanes write to it.
type record struct {
	stage       *stage
	mu          sync.Mutex
	batch       metrics.Samples
	series      map[series]*metrics.TagSet
	codeTagSets map[string]*metrics.TagSet // by outcome only
	loggedCodes map[string]bool            // outcomes that were logged

	madeCount, failedCount, droppedCount int64
}

// A series is the key of a tag set for samples of requests.
type series struct {
	op           *operation
	server, code string
	hasWaited    bool
}

func (r *record) init(s *stage) {
	r.stage, r.series, r.loggedCodes = s, map[series]*metrics.TagSet{}, map[string]bool{}
	r.codeTagSets = map[string]*metrics.TagSet{}
}

// note records an exchange that has ended, with further samples about it. It ignores an exchange that k6 ended.
func (r *record) note(x *exchange, samples ...metrics.Sample) {
	if x.code == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.madeCount++
	if x.code != shard.CodeOK {
		r.failedCount++
	}
	tags := r.tagsOf(x)
	r.add(r.stage.m.metrics.duration, tags, x.end, metrics.D(x.end.Sub(x.start)))
	if !x.firstByte.IsZero() {
		r.add(r.stage.m.metrics.first, r.codeTags(x.code), x.end, metrics.D(x.firstByte.Sub(x.start)))
	}
	if x.laneWait > 0 {
		r.add(r.stage.m.metrics.waited, r.stage.tags.Tags, x.end, metrics.D(x.laneWait))
		r.add(r.stage.m.metrics.connected, r.codeTags(x.code), x.end, metrics.D(x.end.Sub(x.start)-x.laneWait))
	}
	if end, fixed := r.stage.end(); fixed && x.code == shard.CodeOK && x.end.After(end) {
		r.add(r.stage.m.metrics.late, tags, x.end, metrics.D(x.end.Sub(end)))
	}
	r.batch = append(r.batch, samples...)
	if len(r.batch) >= batchSize {
		r.push()
	}
}

// tagsOf returns the tags of an exchange: those of the stage, endpoint, outcome, server and waiting. The caller holds
// mu.
func (r *record) tagsOf(x *exchange) *metrics.TagSet {
	key := series{x.op, x.server, x.code, x.laneWait > 0}
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
	if key.hasWaited {
		tags = tags.With(shard.TagWaited, "yes")
	}
	r.series[key] = tags
	return tags
}

// codeTags returns the tags of metrics by stage and outcome only. Each further tag would multiply the series of a run.
func (r *record) codeTags(code string) *metrics.TagSet {
	tags := r.codeTagSets[code]
	if tags == nil {
		tags = r.stage.tags.Tags.With(shard.TagCode, code)
		r.codeTagSets[code] = tags
	}
	return tags
}

func (r *record) add(m *metrics.Metric, tags *metrics.TagSet, at time.Time, value float64) {
	r.batch = append(r.batch, metrics.Sample{
		TimeSeries: metrics.TimeSeries{Metric: m, Tags: tags}, Time: at, Metadata: r.stage.tags.Metadata, Value: value,
	})
}

// logFailure logs the first failure of each code. The code alone does not explain the failure.
func (r *record) logFailure(x *exchange, err error) {
	r.mu.Lock()
	isLogged := r.loggedCodes[x.code]
	r.loggedCodes[x.code] = true
	r.mu.Unlock()
	if !isLogged {
		r.stage.state.Logger.Warnf("%s: a request got no response (%s; further ones of this stage are not logged): %v", x.op.name, x.code, err)
	}
}

// unrequested counts a connection with unrequested bytes after the response to op, and logs the first one of the stage.
func (r *record) unrequested(op *operation, received []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(r.stage.m.metrics.unrequested, r.stage.tags.Tags.With(shard.TagEndpoint, op.name), time.Now(), 1)
	if !r.loggedCodes[shard.UnrequestedBytes] {
		r.loggedCodes[shard.UnrequestedBytes] = true
		r.stage.state.Logger.Warnf("%s: the server sent unrequested bytes after its response, starting with %q (further cases of this stage are not logged)", op.name, received)
	}
}

// drop counts requests that were never made.
func (r *record) drop(n int64) {
	if n == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.droppedCount += n
	r.add(r.stage.state.BuiltinMetrics.DroppedIterations, r.stage.tags.Tags, time.Now(), float64(n))
}

// sample returns a sample with the tags of the stage.
func (r *record) sample(m *metrics.Metric, at time.Time, value float64) metrics.Sample {
	return metrics.Sample{TimeSeries: metrics.TimeSeries{Metric: m, Tags: r.stage.tags.Tags}, Time: at, Metadata: r.stage.tags.Metadata, Value: value}
}

// serverInFlight returns a sample of the number of requests in flight that the server reported. ok is false if it
// reported none.
func (r *record) serverInFlight(x *exchange) (s metrics.Sample, ok bool) {
	n, err := strconv.ParseInt(x.inFlight, 10, 64)
	return r.sample(r.stage.m.metrics.inFlight, x.end, float64(n)), err == nil && n > 0
}

// push passes the batch to k6. The VU waits for the stage, so k6 still accepts its samples. The caller holds mu.
func (r *record) push() {
	if len(r.batch) == 0 {
		return
	}
	r.stage.state.Samples <- r.batch
	r.batch = make(metrics.Samples, 0, batchSize+4)
}

// flushPeriodically flushes until ctx ends, so that the outputs of k6 are up to date.
func (r *record) flushPeriodically(ctx context.Context) {
	tick := time.NewTicker(batchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.flush()
		}
	}
}

// flush pushes the batch.
func (r *record) flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.push()
}

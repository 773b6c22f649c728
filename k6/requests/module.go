// Package requests is the k6 module k6/x/requests: many plain requests per second, without JavaScript per request. A
// call is one stage of a load. load-tests/types/requests.d.ts describes the API for scripts.
//
// The client is internal/http1 with k6's dialer (docs/results/requests-client.txt compares it with client libraries).
// It sends each request once. A request that a client library would silently repeat fails here.
package requests

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grafana/sobek"
	"go.k6.io/k6/v2/js/common"
	"go.k6.io/k6/v2/js/modules"
	"go.k6.io/k6/v2/js/promises"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/http1"
	"github.com/sse-soak/sse-soak/internal/proxy"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/k6/network"
)

const importPath = "k6/x/requests"

func init() { modules.Register(importPath, modules.Module(rootModule{})) }

type rootModule struct{}

type module struct {
	vu      modules.VU
	metrics *requestMetrics
	proxies proxy.Chooser // nil: the proxies of the environment
	exports modules.Exports
}

// requestMetrics holds the metrics of the module. requests.d.ts documents them for users.
type requestMetrics struct {
	duration, firstByte, wait, durationWithoutWait, delay, unrequestedBytes, sentAfter, inFlight *metrics.Metric
}

func (rootModule) NewModuleInstance(vu modules.VU) modules.Instance {
	r, rt := vu.InitEnv().Registry, vu.Runtime()
	m := &module{vu: vu, metrics: &requestMetrics{
		duration:            r.MustNewMetric(shard.RequestDuration, metrics.Trend, metrics.Time),
		firstByte:           r.MustNewMetric(shard.FirstByte, metrics.Trend, metrics.Time),
		wait:                r.MustNewMetric(shard.ConnectionWait, metrics.Trend, metrics.Time),
		durationWithoutWait: r.MustNewMetric(shard.DurationWithoutWait, metrics.Trend, metrics.Time),
		delay:               r.MustNewMetric(shard.ResponseDelay, metrics.Trend, metrics.Time),
		sentAfter:           r.MustNewMetric("sent_after", metrics.Trend, metrics.Time),
		inFlight:            r.MustNewMetric("server_in_flight", metrics.Trend),

		unrequestedBytes: r.MustNewMetric(shard.UnrequestedBytes, metrics.Counter),
	}}
	m.exports = modules.Exports{Named: map[string]any{
		"closed": rt.ToValue(m.call("closed", (*stage).closed)),
		"open":   rt.ToValue(m.call("open", (*stage).open)),
		"burst":  rt.ToValue(m.call("burst", (*stage).burst)),
	}}
	return m
}

func (m *module) Exports() modules.Exports { return m.exports }

// call returns the JavaScript function of a load model. That function returns a promise of the stage's counts.
func (m *module) call(name string, model func(*stage)) func(sobek.Value) *sobek.Promise {
	return func(v sobek.Value) *sobek.Promise {
		state := network.State(m.vu, importPath)
		s, err := m.parse(name, v, state)
		if err != nil {
			common.Throw(m.vu.Runtime(), err)
		}
		promise, resolve, _ := promises.New(m.vu)
		go func() {
			s.run(m.vu.Context(), model)
			resolve(map[string]any{"made": s.madeCount, "failed": s.failedCount, "dropped": s.droppedCount})
		}()
		return promise
	}
}

// A stage is one call of the module: its options, its lanes and the record of its requests.
type stage struct {
	options
	m     *module
	state *lib.State
	ctx   context.Context
	start time.Time
	tags  metrics.TagsAndMeta // of all samples
	tuple *lib.ExecutionTuple // of the segment of this runner

	prefix      string // of the texts that replace {unique}
	uniqueCount atomic.Int64

	dialer *http1.Dialer
	record
}

// run makes the requests. It returns when all of them have ended and all samples are pushed. When ctx is done, the
// requests end at once.
func (s *stage) run(ctx context.Context, model func(*stage)) {
	s.ctx, s.start = ctx, time.Now()
	var flushing sync.WaitGroup
	flushCtx, stop := context.WithCancel(context.Background())
	flushing.Go(func() { s.flushPeriodically(flushCtx) })
	model(s)
	s.closeLanes()
	stop()
	flushing.Wait()
	s.flush()
}

// end returns the end of a stage with a fixed duration. ok is false if the stage may end with its last request.
func (s *stage) end() (end time.Time, ok bool) {
	return s.start.Add(s.duration), s.duration > 0 && s.requests == 0
}

// share returns this runner's share of the concurrency, and the tuple that distributes requests among the runners with
// a share. No request is lost or duplicated by rounding. For a share of 0 the tuple is nil.
func (s *stage) share() (int, *lib.ExecutionTuple) {
	tuple, err := s.tuple.GetNewExecutionTupleFromValue(s.concurrency)
	if err != nil { // the share of this runner is 0
		return 0, nil
	}
	return int(s.tuple.ScaleInt64(s.concurrency)), tuple
}

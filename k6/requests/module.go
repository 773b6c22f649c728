// Package requests is the k6 module k6/x/requests: many plain requests per second, of which no JavaScript runs while they
// are made. A call is one stage of a load; see load-tests/types/requests.d.ts for the API as scripts see it.
//
// Requests go by internal/http1 (docs/results/requests-client.txt compares that with client libraries), through k6's dialer.
// So each request is sent once: what a client library would send again unseen has failed here.
package requests

import (
	"context"
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

type (
	rootModule struct{}

	// A module is the k6/x/requests of one virtual user.
	module struct {
		vu      modules.VU
		metrics *requestMetrics
		proxies proxy.Chooser // nil: the environment's
		exports modules.Exports
	}

	// requestMetrics are the metrics of the module. requests.d.ts documents them for users.
	requestMetrics struct {
		duration, first, waited, connected, late, unrequested, sentAfter, inFlight *metrics.Metric
	}
)

var (
	_ modules.Module   = (*rootModule)(nil)
	_ modules.Instance = (*module)(nil)
)

// New returns the root module.
func New() modules.Module { return new(rootModule) }

// NewModuleInstance is called by k6 once per VU.
func (*rootModule) NewModuleInstance(vu modules.VU) modules.Instance {
	r, rt := vu.InitEnv().Registry, vu.Runtime()
	m := &module{vu: vu, metrics: &requestMetrics{
		duration:  r.MustNewMetric(shard.RequestDuration, metrics.Trend, metrics.Time),
		first:     r.MustNewMetric(shard.FirstByte, metrics.Trend, metrics.Time),
		waited:    r.MustNewMetric(shard.Waited, metrics.Trend, metrics.Time),
		connected: r.MustNewMetric(shard.Connected, metrics.Trend, metrics.Time),
		late:      r.MustNewMetric(shard.AnsweredLate, metrics.Trend, metrics.Time),
		sentAfter: r.MustNewMetric("sent_after", metrics.Trend, metrics.Time),
		inFlight:  r.MustNewMetric("server_in_flight", metrics.Trend),

		unrequested: r.MustNewMetric(shard.Unrequested, metrics.Counter),
	}}
	m.exports = modules.Exports{Named: map[string]any{
		"closed": rt.ToValue(m.call("closed", (*stage).closed)),
		"open":   rt.ToValue(m.call("open", (*stage).open)),
		"burst":  rt.ToValue(m.call("burst", (*stage).burst)),
	}}
	return m
}

// Exports are the names that a script imports from k6/x/requests.
func (m *module) Exports() modules.Exports { return m.exports }

// call returns the JavaScript function of a load model. The function returns a promise of the stage's counts.
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
			resolve(map[string]any{"made": s.sent, "failed": s.failed, "dropped": s.dropped})
		}()
		return promise
	}
}

// A stage is one call: what is asked, by how many at a time, and what came of it.
type stage struct {
	options
	m     *module
	state *lib.State
	ctx   context.Context
	began time.Time
	tags  metrics.TagsAndMeta
	tuple *lib.ExecutionTuple

	prefix  string // of the texts that stand for {unique}
	uniques atomic.Int64

	dialer *http1.Dialer
	lanes  lanes
	record
}

// run runs a stage. It returns when all of its requests have ended and all of their samples are pushed, or at once when
// ctx is done.
func (s *stage) run(ctx context.Context, model func(*stage)) {
	s.ctx, s.began = ctx, time.Now()
	flushed := make(chan struct{})
	stopped, end := context.WithCancel(context.Background())
	go func() {
		defer close(flushed)
		s.flushEvery(stopped)
	}()
	model(s)
	s.closeLanes()
	end()
	<-flushed
	s.finish()
}

// end returns when a stage with a fixed length ends; ok is false for a stage that lasts as long as its requests.
func (s *stage) end() (end time.Time, ok bool) {
	return s.began.Add(s.length), s.length > 0 && s.requests == 0
}

// share returns the part of this runner's segment of a concurrency: that number, and the tuple that shares out the
// rest among the runners that have any. No request is lost or doubled in rounding.
func (s *stage) share(atATime int64) (int, *lib.ExecutionTuple) {
	tuple, err := s.tuple.GetNewExecutionTupleFromValue(atATime)
	if err != nil { // so few that none is ours
		return 0, nil
	}
	return int(s.tuple.ScaleInt64(atATime)), tuple
}

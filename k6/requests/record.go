package requests

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/shard"
)

// Samples are pushed in batches. Single samples would cost as much as the requests.
const (
	batchSize     = 512
	batchInterval = 100 * time.Millisecond
	maxSeries     = 1000 // servers choose their names; beyond this limit, new names are counted as shard.Other
)

// A record holds the results of a stage's requests. The lanes write to it.
type record struct {
	mu          sync.Mutex
	lanes       []*lane // all lanes of the stage
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

// note records an exchange. It ignores an exchange that k6 interrupted.
func (s *stage) note(x *exchange) {
	if x.code == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.madeCount++
	if x.code != shard.CodeOK {
		s.failedCount++
	}
	tags := s.tagsOf(x)
	s.add(s.m.metrics.duration, tags, x.end, metrics.D(x.end.Sub(x.start)))
	if !x.firstByte.IsZero() {
		s.add(s.m.metrics.firstByte, s.codeTags(x.code), x.end, metrics.D(x.firstByte.Sub(x.start)))
	}
	if x.laneWait > 0 {
		s.add(s.m.metrics.wait, s.tags.Tags, x.end, metrics.D(x.laneWait))
		s.add(s.m.metrics.durationWithoutWait, s.codeTags(x.code), x.end, metrics.D(x.end.Sub(x.start)-x.laneWait))
	}
	if end, fixed := s.end(); fixed && x.code == shard.CodeOK && x.end.After(end) {
		s.add(s.m.metrics.delay, tags, x.end, metrics.D(x.end.Sub(end)))
	}
	if !x.releasedAt.IsZero() {
		s.noteBurst(x)
	}
	if len(s.batch) >= batchSize {
		s.push()
	}
}

// noteBurst adds the samples that only an exchange of a burst has. The caller holds mu.
func (s *stage) noteBurst(x *exchange) {
	s.add(s.m.metrics.sentAfter, s.tags.Tags, x.sentAt, metrics.D(x.sentAt.Sub(x.releasedAt)))
	if n, err := strconv.ParseInt(x.inFlight, 10, 64); err == nil && n > 0 {
		s.add(s.m.metrics.inFlight, s.tags.Tags, x.end, float64(n))
	}
}

// tagsOf returns the tags of an exchange. The caller holds mu.
func (s *stage) tagsOf(x *exchange) *metrics.TagSet {
	key := series{x.op, x.server, x.code, x.laneWait > 0}
	if tags := s.series[key]; tags != nil {
		return tags
	}
	if len(s.series) >= maxSeries {
		key.server = shard.Other
		if tags := s.series[key]; tags != nil {
			return tags
		}
	}
	tags := s.tags.Tags.With(shard.TagEndpoint, x.op.name).With(shard.TagCode, x.code)
	if key.server != "" {
		tags = tags.With(shard.TagServer, key.server)
	}
	if key.hasWaited {
		tags = tags.With(shard.TagWaited, "yes")
	}
	s.series[key] = tags
	return tags
}

// codeTags returns the tags of metrics that are split only by stage and outcome. Each further tag would multiply the
// series of a run.
func (s *stage) codeTags(code string) *metrics.TagSet {
	tags := s.codeTagSets[code]
	if tags == nil {
		tags = s.tags.Tags.With(shard.TagCode, code)
		s.codeTagSets[code] = tags
	}
	return tags
}

// add adds a sample to the batch. The caller holds mu.
func (s *stage) add(m *metrics.Metric, tags *metrics.TagSet, at time.Time, value float64) {
	s.batch = append(s.batch, metrics.Sample{
		TimeSeries: metrics.TimeSeries{Metric: m, Tags: tags}, Time: at, Metadata: s.tags.Metadata, Value: value,
	})
}

// logFailure logs the first failure of each code. The code alone does not explain the failure.
func (s *stage) logFailure(x *exchange, format string, args ...any) {
	s.mu.Lock()
	isLogged := s.loggedCodes[x.code]
	s.loggedCodes[x.code] = true
	s.mu.Unlock()
	if !isLogged {
		s.state.Logger.Warnf("%s: a request failed (%s; later failures of this stage with this code are not logged): %s", x.op.name, x.code, fmt.Sprintf(format, args...))
	}
}

// noteUnrequested counts a connection on which the server sent bytes after the response to op, or before the first
// request. It logs the first such connection of the stage.
func (s *stage) noteUnrequested(op *operation, received []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(s.m.metrics.unrequestedBytes, s.tags.Tags.With(shard.TagEndpoint, op.name), time.Now(), 1)
	if !s.loggedCodes[shard.UnrequestedBytes] {
		s.loggedCodes[shard.UnrequestedBytes] = true
		s.state.Logger.Warnf("%s: the server sent unrequested bytes, starting with %q (further cases of this stage are not logged)", op.name, received)
	}
}

func (s *stage) drop(n int64) {
	if n == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.droppedCount += n
	s.add(s.state.BuiltinMetrics.DroppedIterations, s.tags.Tags, time.Now(), float64(n))
}

// push passes the batch to k6. The VU waits for the stage, so k6 still accepts its samples. The caller holds mu.
func (s *stage) push() {
	if len(s.batch) == 0 {
		return
	}
	s.state.Samples <- s.batch
	s.batch = make(metrics.Samples, 0, batchSize+4)
}

// flushPeriodically flushes until ctx ends, so that the outputs of k6 are up to date.
func (s *stage) flushPeriodically(ctx context.Context) {
	tick := time.NewTicker(batchInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.flush()
		}
	}
}

func (s *stage) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.push()
}

package suite

import (
	"fmt"
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// streamSettings are of every suite that holds streams; the backend that soak starts has the interval too.
var streamSettings = []Setting{
	{"NOOP_INTERVAL", "seconds between two noops of one stream"},
	{"LATE_MS", "milliseconds above which a noop counts as late"},
	{"ACCEPT_ENCODING", "compression that streams ask for: none, gzip, or browser (gzip, deflate, br, zstd)"},
	{"HTTP_VERSION", "HTTP that streams speak: auto (over TLS HTTP/2 where the server wants it), 1.1, or 2 (over http:// by prior knowledge)"},
	{"STREAMS_PER_CONNECTION", "streams of a virtual user that may share a connection over HTTP/2; 0: as many as the server allows"},
	{"FOLLOW_REDIRECTS", "follow redirects of streams to another origin"},
	{"END_TIMEOUT", "seconds that a stream may take to end after the server answered the DELETE"},
}

// streams are the event streams that a suite held, added up.
func (r *Run) streams() *verdict.Streams { return verdict.StreamsOf(r.Rounds[0], r.Server, r.OneHost) }

// everyStream makes a run invalid in which a planned stream was not observed.
func everyStream(m *shard.Merged) verdict.Check {
	problems := m.CheckConnections()
	if m.Plan.Connections == 0 {
		problems = append(problems, "the script planned no stream")
	}
	c := verdict.Check{
		ID: verdict.CheckObserved, Name: "every planned stream observed", Limit: count(float64(m.Plan.Connections)), Actual: "all", Pass: len(problems) == 0, Severity: verdict.SeverityInconclusive,
		Why: "what was not observed proves nothing",
	}
	for _, problem := range problems {
		if !slices.Contains(m.Problems, problem) { // of a plan that the merge knew: it has said so
			c.Reasons = append(c.Reasons, problem)
		}
	}
	if !c.Pass {
		c.Actual = "not all"
	}
	return c
}

// streamFacts are the first things to know of a suite that held streams.
func streamFacts(s *verdict.Streams, m *shard.Merged) []verdict.Fact {
	n, of := s.Messages, "streams"
	if s.Connections.Planned < m.Plan.Connections {
		of = "others" // than those to which the suite does something
	}
	facts := []verdict.Fact{
		{Name: of, Value: fmt.Sprintf("%s opened, %s held to the end", format.Thousands(s.Connections.Opened), format.Thousands(s.Connections.Completed))},
		{Name: m.Service.Noun() + "s", Value: fmt.Sprintf("%s of %s received, one every %v s on each stream", format.Thousands(n.Received), format.Thousands(n.Expected), m.Plan.NoopInterval)},
		{Name: "lateness", Value: fmt.Sprintf("p50 %s, p99 %s, max %s", ms(s.LatenessMS.P50), ms(s.LatenessMS.P99), ms(s.LatenessMS.Max))},
		{Name: "connect", Value: fmt.Sprintf("p50 %s, p99 %s, max %s", ms(s.ConnectMS.P50), ms(s.ConnectMS.P99), ms(s.ConnectMS.Max))},
	}
	if s.Server.Known {
		facts = append(facts, verdict.Fact{Name: "server", Value: s.Server.Says(n.Received)})
	}
	return facts
}

// sumsByStage are the sums of one metric, by stage.
func sumsByStage(m *shard.Merged, name string) map[string]shard.Metric {
	out := map[string]shard.Metric{}
	for _, metric := range m.Metrics {
		if metric.Name != name {
			continue
		}
		stage := metric.Tags[shard.TagStage]
		sum, ok := out[stage]
		if ok {
			sum.Merge(metric)
		} else {
			sum = metric
			sum.Trend, sum.Own = metric.Trend.Copy(), metric.Own.Copy()
		}
		out[stage] = sum
	}
	return out
}

// lateness is that of the buckets that begin and end within a span; nil where there is none.
func lateness(m *shard.Merged, from, to time.Time) *shard.Histogram {
	var sum *shard.Histogram
	for _, b := range m.Series {
		start := time.Unix(b.Unix, 0)
		if b.Lateness == nil || start.Before(from) || start.Add(shard.BucketWidth).After(to) {
			continue
		}
		h, err := b.Lateness.Unpack()
		if err != nil {
			continue // merged from histograms that could be read
		}
		if sum == nil {
			sum = shard.NewHistogram()
		}
		sum.Merge(h)
	}
	return sum
}

// trend is a quantile of a metric in milliseconds as text, "–" where there is none.
func trend(m shard.Metric, q float64) string {
	if m.Trend == nil || m.Trend.Count() == 0 { // of a stage without one
		return "–"
	}
	return figure(quantile(m.Trend, q))
}

// stagesOf are the stages that the script declared.
func stagesOf(m *shard.Merged) []shard.Stage {
	if m.Suite == nil {
		return nil
	}
	return m.Suite.Stages
}

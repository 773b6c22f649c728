package suite

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

func (r *Run) streams() *verdict.Streams { return verdict.StreamsOf(r.Rounds[0], r.Server, r.OneHost) }

func checkObserved(m *shard.Merged) verdict.Check {
	problems := m.CheckConnections()
	if m.Plan.Connections == 0 {
		problems = append(problems, "the script planned no stream")
	}
	actual, pass := "all", len(problems) == 0
	if !pass {
		actual = "not all"
	}
	unreported := slices.DeleteFunc(problems, func(problem string) bool { return slices.Contains(m.Problems, problem) })
	return invalidateIfUnmet(check(verdict.CheckObserved, "every planned stream observed", text(m.Plan.Connections), actual, pass, unreported...))
}

func streamFacts(s *verdict.Streams, m *shard.Merged) []verdict.Fact {
	n, unit := s.Messages, "streams"
	if s.Connections.Planned < m.Plan.Connections {
		unit = "other streams" // the streams that the suite does not disturb
	}
	times := func(q verdict.Quantiles) string {
		return fmt.Sprintf("p50 %s, p99 %s, max %s", ms(q.P50), ms(q.P99), ms(q.Max))
	}
	received := sentence("%v of %v received", n.Received, n.Expected)
	if m.Service.HasInterval() {
		received += fmt.Sprintf(", one every %v s on each stream", m.Plan.NoopInterval)
	}
	facts := []verdict.Fact{
		{Name: unit, Value: sentence("%v opened, ", s.Connections.Opened) + s.Connections.EndText()},
		{Name: m.Service.Noun() + "s", Value: received},
		{Name: "lateness", Value: times(s.LatenessMS)},
		{Name: "connect", Value: times(s.ConnectMS)},
	}
	if s.Server.Known {
		facts = append(facts, verdict.Fact{Name: "server", Value: s.Server.Comparison(n.Received)})
	}
	return facts
}

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
			sum.Trend, sum.Undelayed = metric.Trend.Copy(), metric.Undelayed.Copy()
		}
		out[stage] = sum
	}
	return out
}

// lateness returns the lateness of messages in the buckets that lie completely between two times, or nil if no bucket
// does.
func lateness(m *shard.Merged, from, to time.Time) *shard.Histogram {
	var sum *shard.Histogram
	for _, b := range m.Series {
		start := time.Unix(b.Unix, 0)
		if b.Lateness == nil || start.Before(from) || start.Add(shard.BucketWidth).After(to) {
			continue
		}
		if sum == nil {
			sum = shard.NewHistogram()
		}
		unpackInto(sum, b.Lateness)
	}
	return sum
}

// trend formats a quantile of a metric as figure does; "–" if the metric has no samples.
func trend(m shard.Metric, q float64) string { return quantiles(m.Trend, q)[0] }

func stagesOf(m *shard.Merged) []shard.Stage {
	if m.Suite == nil {
		return nil
	}
	return m.Suite.Stages
}

// isSelected reports whether load-tests/lib/share.js selects stream n, from 0: every EVERYth stream.
func (r *Run) isSelected(n int) bool { return n%max(int(r.number("EVERY")), 1) == 0 }

func (r *Run) isNotSelected(n int) bool { return !r.isSelected(n) }

// streamsOf returns the counts of the selected streams, with MAX_OPEN_LATE as their limit on late messages. It uses the
// moments of the control groups without the late messages of disturbed streams.
func (r *Run) streamsOf(selects func(n int) bool) *verdict.Streams {
	m := r.Rounds[0]
	part := *m
	part.FeedConnections = &m.Connections
	part.Connections, part.Plan.Connections, part.Plan.MaxLate = shard.Connections{}, 0, int(r.number(plan.MaxOpenLate))
	part.Runners = slices.Clone(m.Runners)
	for i := range part.Runners {
		part.Runners[i].ControlGroup = part.Runners[i].ControlGroup.Undisturbed()
	}
	for n := range m.Plan.Connections {
		if selects(n) {
			part.Plan.Connections++
		}
	}
	for _, c := range m.Connections.All() {
		if n, ok := m.Plan.Number(c.ID); ok && selects(n) {
			part.Connections.Add(c)
		}
	}
	s := verdict.StreamsOf(&part, r.Server, r.OneHost)
	s.LateSetting = plan.MaxOpenLate
	return s
}

// counterGauge reports whether GAUGE names a counter. A counter never falls, so it shows neither open streams nor
// memory.
func (r *Run) counterGauge() bool {
	return slices.ContainsFunc(r.Samples, func(s resources.Sample) bool { return s.Counter })
}

// counterReason states why a check cannot use GAUGE. subject is what the gauge should measure.
func counterReason(gauge, subject string) string {
	return fmt.Sprintf("%s is a counter, which never falls; set GAUGE to a gauge of %s", gauge, subject)
}

// isStreamLoss reports whether an outage started with the end of a stream that the client did not end. It always
// returns false if the service ends streams on purpose, because other checks find streams that ended too early.
func (r *Run) isStreamLoss(o ledger.Outage) bool {
	m := r.Rounds[0]
	return !o.Planned && m.Plan.TokenTTL == 0 && !m.Service.EndsStreams()
}

// checkBystanders returns the check that no bystander lost its stream and reconnected. The check of streams open to the
// end counts bystanders that did not reconnect.
func (r *Run) checkBystanders(s *verdict.Streams) verdict.Check {
	var reasons []string
	for _, c := range s.Records() {
		if slices.ContainsFunc(c.Outages, r.isStreamLoss) {
			reasons = append(reasons, c.ID+" lost its stream, which the suite does not disconnect")
		}
	}
	c := check(CheckBystanders, "other streams lost", "0", len(reasons), len(reasons) == 0, reasons...)
	if s.Connections.Opened == 0 {
		return c.NotJudged("no stream was opened")
	}
	return c
}

// checkDisturbed returns the check that the suite disturbed all planned clients. reason is a layout: "only %v of %v …".
func checkDisturbed(id verdict.CheckID, name string, disturbed, planned int, reason string) verdict.Check {
	return check(id, name, text(planned), disturbed, disturbed == planned && planned > 0, sentence(reason, disturbed, planned)).AsDoubt()
}

func reasonCounts(counts map[string]int) string {
	var out []string
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, sentence("%v × %s", counts[reason], reason))
	}
	if len(out) == 0 {
		return "–"
	}
	return strings.Join(out, ", ")
}

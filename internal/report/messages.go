package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

func (s *pageBuilder) service() string {
	text := s.v.Plan.ServiceName()
	if hash := s.v.Service.SHA256; hash != "" {
		text += fmt.Sprintf(" (description sha256 %.12s)", hash)
	}
	return text
}

func (s *pageBuilder) latencyName() string {
	name := "sent → received"
	if s.v.Messages.Published != nil {
		name = "publish → receive"
	}
	if l := s.v.LatencyMS; l != nil && l.Above == verdict.AboveFastest {
		name += ", above the fastest message"
	}
	return name
}

func (s *pageBuilder) completedText() string {
	if s.v.Service.EndRequest == "" {
		return "open to the end"
	}
	return "ended by the server on request"
}

func (s *pageBuilder) kindText(k ledger.Kind) string {
	if k == ledger.KindLost && s.v.Messages.Published != nil {
		return "lost: published, but not received"
	}
	return cmp.Or(kindNames[k], string(k))
}

// messageBasis adds the counts of other events, and notes on how messages were counted.
func (s *pageBuilder) messageBasis(out *Section) {
	if !s.v.Service.CountsMessages() {
		out.Short = "" // the title
	}
	if events := otherEvents(s.v.Messages); len(events) > 0 {
		t := Table{Columns: Columns("other events", "#count")}
		for _, event := range events {
			n, name, _ := strings.Cut(event, " ")
			t.Rows = append(t.Rows, Cells(name, n))
		}
		out.Tables = append(out.Tables, t)
	}
	e := s.v.Evidence
	if s.v.Service.CountsMessages() {
		out.Notes = append(out.Notes, "expected = received + missed + corrupted. Missed messages are found by "+e.Text()+".")
	}
	for _, reason := range e.Why {
		out.Notes = append(out.Notes, strings.ToUpper(reason[:1])+reason[1:]+".")
	}
}

func (s *pageBuilder) publishedSection() Section {
	out := Section{ID: "published", Title: "Published messages", Short: "Published"}
	p := s.v.Messages.Published
	if s.v.Service.ComparesClients() {
		return s.clientComparison()
	}
	if p == nil {
		return out
	}
	t := Table{Columns: Columns("publisher", "#planned", "#sent", "#confirmed", "#refused", "#no response", "#over 1 s late", "#most behind", "#response p50", "#p99", "#max")}
	row := Cells(fmt.Sprintf("%v/s to %s", p.Rate, format.Count(p.Topics, "topic")), format.Thousands(p.Planned), format.Thousands(p.Sent), format.Thousands(p.Confirmed),
		format.Thousands(p.Refused), format.Thousands(p.Open), format.Thousands(p.Late), format.Milliseconds(p.MaxLagMS), format.Milliseconds(p.ResponseMS.P50), format.Milliseconds(p.ResponseMS.P99), format.Milliseconds(p.ResponseMS.Max))
	row[4].Tone, row[5].Tone, row[6].Tone = faultTone(p.Refused), faultTone(p.Open), faultTone(p.Late)
	if p.Confirmed != p.Planned {
		row[3].Tone = Bad
	}
	t.Rows = []Row{row}
	out.Tables = []Table{t}
	if list := s.v.Messages.Topics; len(list) < p.Topics {
		out.Notes = append(out.Notes, fmt.Sprintf("The topics are not listed, because there are more than %d; connections.csv has the topic of each stream.", len(list)))
	} else if t, ok := topics(s.v, math.MaxInt); ok {
		out.Tables = append(out.Tables, t)
	}
	if q := s.v.Messages.LastSubscriberMS; q != nil {
		out.Notes = append(out.Notes, fmt.Sprintf("A message reached the last of its streams after %s (p50), %s (p99), %s at most.", format.Milliseconds(q.P50), format.Milliseconds(q.P99), format.Milliseconds(q.Max)))
	}
	return out
}

func (s *pageBuilder) clientComparison() Section {
	out := Section{ID: "published", Title: "Clients compared with each other", Short: "Clients"}
	t, ok := topics(s.v, math.MaxInt)
	if !ok {
		return out
	}
	out.Tables = []Table{t}
	out.Notes = []string{
		"The loss of a message that reached no client cannot be detected.",
	}
	return out
}

func (s *pageBuilder) spread() Section {
	out := Section{ID: "lateness-all", Title: "Spread between clients", Short: "Spread"}
	if s.Merged.Lateness.Count() == 0 {
		return out
	}
	s.distributions(&out, []distribution{{"first client → each other client", s.Merged.Lateness}}, "spread")
	out.Notes = append(out.Notes, "The spread is the time from the first arrival of a message at a runner to its arrival at each other client of that runner, on the clock of that runner.")
	return out
}

func (s *pageBuilder) latency() Section {
	out := Section{ID: "lateness-all", Title: "Latency"}
	var list []distribution
	if l := s.Merged.Latency; l != nil && l.Histogram.Count() > 0 {
		list = append(list, distribution{s.latencyName(), s.latencies(l)})
		out.Notes = append(out.Notes, "Latency is "+latencyBasis(s.v)+".")
	}
	if s.Merged.Reach != nil {
		list = append(list, distribution{"publish → last stream of the topic", s.Merged.Reach.Histogram()})
	}
	answers, lag := shard.NewHistogram(), shard.NewHistogram()
	for _, p := range s.Merged.Publishers() {
		answers.Merge(p.Answer)
		lag.Merge(p.Lag)
	}
	list = append(list, distribution{"publish → the service's response", answers}, distribution{"behind the publisher's schedule", lag})
	s.distributions(&out, list, s.latencyName())
	if len(out.Tables[0].Rows) == 0 {
		return Section{}
	}
	out.Notes = append(out.Notes, "Percentiles come from merged histograms, whose buckets are 0.8 % wide.")
	return out
}

// messagesOverTime adds the charts of received and expected messages and, if there is a publisher, of its messages.
func (s *pageBuilder) messagesOverTime(out *Section, width int) {
	if !s.v.Service.CountsMessages() {
		return
	}
	expected, received := s.messagesPerBar(width)
	seconds, sampleGap := width*int(s.series.step), s.series.sampleGap()
	interval := eachPeriod(seconds)
	note := fmt.Sprintf("%s; expected: open streams × %d s per bar / %v s per %s", interval, seconds, s.v.Plan.NoopInterval, s.v.Service.Noun())
	published := s.publishSeries()
	switch {
	case s.v.Messages.Expected > 0 && s.v.Messages.Received == s.v.Messages.Expected:
		expected, note = nil, interval+"; all expected "+s.nouns(false)+" were received"
	case published != nil:
		expected, note = sumBars(published.expected, width), interval+"; expected: published messages × the streams of their topic"
	case s.v.Service.CountBasis == shard.CountByNumber || s.v.Service.ComparesClients() || float64(seconds) < s.v.Plan.NoopInterval:
		expected, note = nil, interval
	}
	out.add(&Chart{ID: "messages", Title: s.nouns(true), Note: note, Wide: true},
		splitAtGaps("received", "bars", received, 2*width), splitAtGaps("expected", "steps", extendToEnd(expected, width), 2*width))
	if published != nil {
		out.add(&Chart{ID: "published", Title: "Published", Note: "messages " + s.series.eachStep()},
			splitAtGaps("sent", "", published.sent, sampleGap), splitAtGaps("confirmed", "dashed", published.confirmed, sampleGap))
		out.add(&Chart{ID: "answers", Title: "Responses to the publisher", Note: "longest response time, and longest delay behind the schedule, " + s.series.eachStep(), Unit: "ms"},
			splitAtGaps("response time", "", published.answer, sampleGap), splitAtGaps("behind", "", published.behind, sampleGap))
	}
}

// sumBars returns the sum of each bar of width points, at the first point of the bar (see messagesPerBar).
func sumBars(values []float64, width int) []float64 {
	out := slices.Repeat([]float64{math.NaN()}, len(values))
	for from := 0; from+width < len(values); from += width {
		if points := numbersOf(values, from+1, from+width+1); len(points) > 0 {
			out[from] = 0
			for _, v := range points {
				out[from] += v
			}
		}
	}
	return out
}

// publishSeries has the published messages by point of the time axis.
type publishSeries struct {
	sent, confirmed, expected []float64 // messages; expected: by all streams together
	answer, behind            []float64 // longest response time, and longest delay behind the schedule, in ms
}

// publishSeries returns the published messages over time; nil if the run has no publisher or no time axis.
func (s *pageBuilder) publishSeries() *publishSeries {
	publishers, n := s.Merged.Publishers(), s.series.n
	if len(publishers) == 0 || n == 0 {
		return nil
	}
	streams := map[string]int{}
	for _, c := range s.Merged.Connections.All() {
		if topic, _, ok := s.Merged.Topic(c); ok {
			streams[topic]++
		}
	}
	column := func() []float64 { return slices.Repeat([]float64{math.NaN()}, n) }
	out := &publishSeries{column(), column(), column(), column(), column()}
	for _, p := range publishers {
		s.addPublished(out, p, streams)
	}
	return out
}

// addPublished adds the messages of one publisher. streams has the number of streams of each topic.
func (s *pageBuilder) addPublished(out *publishSeries, p *shard.Published, streams map[string]int) {
	add := func(column []float64, i int, v float64) {
		if math.IsNaN(column[i]) {
			column[i] = 0
		}
		column[i] += v
	}
	setMax := func(column []float64, i int, us int64) {
		if ms := float64(us) / 1000; !(column[i] >= ms) {
			column[i] = ms
		}
	}
	for k, topic := range p.Topics {
		for n, m := range p.Topic(k) {
			at := m.SentUS/1e6 - s.series.from
			i := int(at/s.series.step) + 1
			if at < 0 || i >= s.series.n {
				continue
			}
			add(out.sent, i, 1)
			setMax(out.behind, i, m.SentUS-p.Due(uint64(n*len(p.Topics)+k)))
			if m.AnsweredUS > 0 {
				setMax(out.answer, i, m.AnsweredUS-m.SentUS)
			}
			if m.State == shard.Confirmed {
				add(out.confirmed, i, 1)
				add(out.expected, i, float64(streams[topic]))
			}
		}
	}
}

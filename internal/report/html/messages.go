package html

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// counted reports whether messages are counted.
func (s *subject) counted() bool { return s.v.Service.Counted() }

// sinceSent says that how late a message is counts from its sending, and not from the interval.
func (s *subject) sinceSent() bool {
	return !s.v.Service.ByInterval()
}

// nouns is what the messages of the service are called, as the first word of a sentence or not.
func (s *subject) nouns(first bool) string {
	noun := s.v.Service.Noun() + "s"
	if first {
		return strings.ToUpper(noun[:1]) + noun[1:]
	}
	return noun
}

// service names the service and its description.
func (s *subject) service() string {
	text := s.v.Plan.ServiceName()
	if hash := s.v.Service.SHA256; hash != "" {
		text += fmt.Sprintf(" (description sha256 %.12s)", hash)
	}
	return text
}

// latencyName is from when to when latency is measured.
func (s *subject) latencyName() string {
	name := "sent → received"
	if s.v.Messages.Published != nil {
		name = "publish → receive"
	}
	if l := s.v.LatencyMS; l != nil && l.Above == verdict.AboveFastest {
		name += ", above the fastest message"
	}
	return name
}

func (s *subject) latenessName() string {
	if s.sinceSent() {
		return "latency"
	}
	return "lateness"
}

func (s *subject) endedWell() string {
	if s.v.Service.EndRequest == "" {
		return "held to the end"
	}
	return "ended by the server when asked to"
}

// kind is a finding in words.
func (s *subject) kind(k ledger.Kind) string {
	if k == ledger.KindLost && s.v.Messages.Published != nil {
		return "lost: published, and it never came"
	}
	return cmp.Or(kinds[k], string(k))
}

// messageTiles are what became of messages, and of what was published.
func (s *subject) messageTiles() (tiles []Tile) {
	m := s.v.Messages
	if s.counted() {
		tiles = append(tiles,
			s.received(m.Totals),
			ofAll(Tile{Name: s.nouns(false) + " missed", Value: format.Thousands(m.Missed), Note: share(float64(m.Missed), float64(m.Expected)) + " of the expected"}, m.Expected, m.Missed == 0))
	} else {
		tiles = append(tiles, Tile{Name: s.nouns(false), Value: "not checked", Note: cmp.Or(strings.Join(report.Beside(m), ", "), "nothing came"), Tone: Doubt})
	}
	switch l := s.v.LatencyMS; {
	case s.v.Service.ByInterval():
		tiles = append(tiles, Tile{Name: "lateness p99", Value: duration(s.v.LatenessMS.P99), Note: "at most " + duration(s.v.LatenessMS.Max)})
	case l != nil:
		tiles = append(tiles, Tile{Name: "latency p99", Value: duration(l.P99), Note: s.latencyName() + "; at most " + duration(l.Max)})
	}
	if p := m.Published; p != nil {
		tiles = append(tiles, ofAll(Tile{Name: "confirmed", Value: format.Thousands(p.Confirmed), Note: "of " + format.Thousands(p.Planned) + " messages to publish"}, p.Planned, p.Confirmed == p.Planned))
	}
	return tiles
}

// accountOfMessages adds what came beside messages, and what the counts rest on.
func (s *subject) accountOfMessages(out *Section) {
	if !s.counted() {
		out.Title, out.Short, out.Notes = "What came", "", nil
	} else {
		out.Notes = []string{"expected = received + missed + corrupted, summed over what was owed to each single stream while it was open."}
	}
	if also := report.Beside(s.v.Messages); len(also) > 0 {
		t := Table{Columns: columns("what else came", "#how often")}
		if !s.counted() {
			t.Columns[0].Name = "what"
		}
		for _, what := range also {
			n, name, _ := strings.Cut(what, " ")
			t.Rows = append(t.Rows, cells(name, n))
		}
		out.Tables = append(out.Tables, t)
	}
	e := s.v.Evidence
	if s.counted() {
		out.Notes = append(out.Notes, "What is missed follows from "+e.Rests()+".")
	}
	for _, why := range e.Why {
		out.Notes = append(out.Notes, strings.ToUpper(why[:1])+why[1:]+".")
	}
}

// published is what the publisher sent, what the service said to it, and what came of it topic by topic.
func (s *subject) published() Section {
	out := Section{ID: "published", Title: "What was published", Short: "Published"}
	p := s.v.Messages.Published
	if p == nil {
		return out
	}
	t := Table{Columns: columns("publisher", "#planned", "#sent", "#confirmed", "#refused", "#no answer", "#over 1 s late", "#most behind", "#answer p50", "#p99", "#max")}
	row := cells(fmt.Sprintf("%v/s to %s", p.Rate, format.Count(p.Topics, "topic")), format.Thousands(p.Planned), format.Thousands(p.Sent), format.Thousands(p.Confirmed),
		format.Thousands(p.Refused), format.Thousands(p.Open), format.Thousands(p.Late), duration(p.MaxLagMS), duration(p.AnswerMS.P50), duration(p.AnswerMS.P99), duration(p.AnswerMS.Max))
	row[4].Tone, row[5].Tone, row[6].Tone = zero(p.Refused), zero(p.Open), zero(p.Late)
	if p.Confirmed != p.Planned {
		row[3].Tone = Bad
	}
	t.Rows = []Row{row}
	out.Tables = []Table{t}
	if topics := s.v.Messages.Topics; len(topics) < p.Topics {
		out.Notes = append(out.Notes, fmt.Sprintf("Topics are listed where there are at most %d; connections.csv has the topic of each stream.", len(topics)))
	} else if len(topics) > 0 {
		out.Tables = append(out.Tables, s.topicTable(topics))
	}
	if q := s.v.Messages.LastSubscriberMS; q != nil {
		out.Notes = append(out.Notes, fmt.Sprintf("A message had reached the last of its streams after %s (p50), %s (p99), %s at most.", duration(q.P50), duration(q.P99), duration(q.Max)))
	}
	return out
}

func (s *subject) topicTable(topics []*verdict.Topic) Table {
	t := Table{Caption: "Topics", Note: "expected: what its streams were owed", Columns: columns("topic", "#streams", "#published")}
	for _, total := range (ledger.Totals{}).Each() {
		t.Columns = append(t.Columns, columns("#"+total.Name)...)
	}
	for _, topic := range topics {
		row := cells(topic.Name, format.Thousands(topic.Streams), format.Thousands(topic.Published))
		for _, total := range topic.Each() {
			row = append(row, s.total(total))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// total is a count of messages, coloured if it should be 0.
func (s *subject) total(t ledger.Total) (c Cell) {
	c.Text = format.Thousands(t.Count)
	switch {
	case t.Fault:
		c.Tone = zero(t.Count)
	case t.Name == "late" && s.sinceSent() && s.v.LatencyMS == nil: // no message has a time in it
		c.Text = "–"
	}
	return c
}

// latency is how long messages took from their sending, over all of them and over time.
func (s *subject) latency() Section {
	out := Section{ID: "lateness-all", Title: "How long messages took", Short: "Latency"}
	var all []distribution
	if l := s.Merged.Latency; l != nil && l.Histogram.Count() > 0 {
		h := l.Histogram
		if s.v.LatencyMS != nil && s.v.LatencyMS.Above == verdict.AboveSend {
			h = shard.NewHistogram()
			h.MergeShifted(l.Histogram, microseconds(l.MinUS))
		}
		all = append(all, distribution{s.latencyName(), h})
		out.Notes = append(out.Notes, "Latency is "+report.LatencyBasis(s.v)+".")
	}
	if s.Merged.Reach != nil {
		all = append(all, distribution{"publish → last stream of the topic", s.Merged.Reach.Histogram()})
	}
	answers, lag := shard.NewHistogram(), shard.NewHistogram()
	for _, p := range s.Merged.Publishers() {
		answers.Merge(p.Answer)
		lag.Merge(p.Lag)
	}
	all = append(all, distribution{"publish → the service's answer", answers}, distribution{"behind the publisher's schedule", lag})
	s.distributions(&out, all, s.latencyName())
	if len(out.Tables[0].Rows) == 0 {
		return Section{}
	}
	out.Notes = append(out.Notes, "Percentiles are of merged histograms, 0.8 % wide.")
	return out
}

// messagesOverTime adds what came in each part of the run, against what was to come where that is known.
func (s *subject) messagesOverTime(out *Section, width int) {
	if !s.counted() {
		return
	}
	expected, received := s.noopsPer(width)
	note := fmt.Sprintf("in each %d s, against open connections × %d / %v", width*int(step), width*int(step), s.v.Plan.NoopInterval)
	sent := s.sending()
	switch {
	case sent != nil:
		expected, note = perWindow(sent.owed, width), fmt.Sprintf("in each %d s, against what was published × the streams of its topic", width*int(step))
	case s.v.Service.Counts == shard.CountsNumbers:
		expected, note = nil, fmt.Sprintf("in each %d s", width*int(step))
	}
	out.add(&Chart{ID: "messages", Title: s.nouns(true), Note: note, Wide: true},
		over("received", "bars", received, 2*width), over("expected", "dashed", expected, 2*width))
	if sent != nil {
		out.add(&Chart{ID: "published", Title: "Published", Note: "messages in each 5 s"},
			over("sent", "", sent.sent, sampleGap), over("confirmed", "dashed", sent.confirmed, sampleGap))
		out.add(&Chart{ID: "answers", Title: "Answers to the publisher", Note: "the longest, and how far it was behind its schedule at most, in each 5 s", Unit: "ms"},
			over("answer", "", sent.answer, sampleGap), over("behind", "", sent.behind, sampleGap))
	}
}

// perWindow adds up so many points at a time, as noopsPer does.
func perWindow(values []float64, width int) []float64 {
	out := slices.Repeat([]float64{math.NaN()}, len(values))
	for from := 0; from+width < len(values); from += width {
		if all := known(values, from+1, from+width+1); len(all) > 0 {
			out[from] = 0
			for _, v := range all {
				out[from] += v
			}
		}
	}
	return out
}

// A sending is what was published, by point of the time axis.
type sending struct {
	sent, confirmed, owed []float64 // messages; owed: what all streams together were to get
	answer, behind        []float64 // the longest, ms
}

// sending is nil where nothing was published, or no runner saw when.
func (s *subject) sending() *sending {
	all, n := s.Merged.Publishers(), s.series.n
	if len(all) == 0 || n == 0 {
		return nil
	}
	streams := map[string]int{}
	for _, c := range s.Merged.Connections.All() {
		if topic, _, ok := s.Merged.Topic(c); ok {
			streams[topic]++
		}
	}
	column := func() []float64 { return slices.Repeat([]float64{math.NaN()}, n) }
	out := &sending{column(), column(), column(), column(), column()}
	for _, p := range all {
		s.addSending(out, p, streams)
	}
	return out
}

func (s *subject) addSending(out *sending, p *shard.Published, streams map[string]int) {
	add := func(column []float64, i int, v float64) {
		if math.IsNaN(column[i]) {
			column[i] = 0
		}
		column[i] += v
	}
	most := func(column []float64, i int, us int64) {
		if ms := float64(us) / 1000; !(column[i] >= ms) {
			column[i] = ms
		}
	}
	for k, topic := range p.Topics {
		for n, m := range p.Topic(k) {
			at := m.SentUS/1e6 - s.series.from
			i := int(at/step) + 1
			if at < 0 || i >= s.series.n {
				continue
			}
			add(out.sent, i, 1)
			most(out.behind, i, m.SentUS-p.Due(uint64(n*len(p.Topics)+k)))
			if m.AnsweredUS > 0 {
				most(out.answer, i, m.AnsweredUS-m.SentUS)
			}
			if m.State == shard.Confirmed {
				add(out.confirmed, i, 1)
				add(out.owed, i, float64(streams[topic]))
			}
		}
	}
}

package shard

import (
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/plan"
)

func (m *Merged) addPublished(s *Shard) {
	r := &m.Runners[len(m.Runners)-1]
	r.published, r.feeds = s.Published, s.Feeds
	m.published = m.published || s.Published != nil
	if l := s.Latency; l != nil && l.Histogram.Count() > 0 {
		fastest := time.Duration(l.MinUS) * time.Microsecond
		r.fastest = &fastest
	}
}

// checkPublisher reports publishers of a group that differ from its plan. A plan with a publisher requires exactly one.
func (m *Merged) checkPublisher(g *group, runners []Runner) {
	count := 0
	for i := range runners {
		p := runners[i].published
		if p == nil {
			continue
		}
		count++
		switch runnerName := m.runnerName(g, runners[i].Index); {
		case !g.plan.Published():
			m.problem("%s published messages, but the plan has no publisher", runnerName)
		case !slices.Equal(p.Topics, topicsOf(&g.plan)):
			m.problem("%s did not publish to the topics of the plan", runnerName)
		case p.Rate != g.plan.PublishRate:
			m.problem("%s published %g messages per second, but the plan has %g", runnerName, p.Rate, g.plan.PublishRate)
		}
	}
	// If runner 1 left no shard, another problem reports that.
	hasRunner1 := slices.ContainsFunc(runners, func(r Runner) bool { return r.Index == 1 })
	switch {
	case g.plan.Published() && count == 0 && hasRunner1:
		m.problem("no runner%s recorded published messages; let runner 1 publish", m.groupName(g))
	case g.plan.Published() && count > 1:
		m.problem("%d runners%s published messages, which cannot be distinguished; let only runner 1 publish", count, m.groupName(g))
	}
}

func topicsOf(p *plan.Plan) []string {
	topics := make([]string, p.Topics)
	for k := range topics {
		topics[k] = p.TopicName(k)
	}
	return topics
}

// PublishedTo returns the messages published to the streams of a runner, or nil without a publisher.
func (m *Merged) PublishedTo(runner int) *Published {
	if p := m.PublisherOf(runner); p != nil {
		return p.published
	}
	return nil
}

// PublisherOf returns the runner that published to the streams of a runner, or nil if no runner published.
func (m *Merged) PublisherOf(runner int) *Runner {
	g := m.groupOf(runner)
	if g == nil || !m.published { // fast path for a million records
		return nil
	}
	runners := m.runnersOf(g)
	if at := slices.IndexFunc(runners, func(r Runner) bool { return r.published != nil }); at >= 0 {
		return &runners[at]
	}
	return nil
}

// Publishers returns the messages of each publisher of the run. A run has at most one publisher, or one per laptop.
func (m *Merged) Publishers() (out []*Published) {
	for i := range m.Runners {
		if p := m.Runners[i].published; p != nil {
			out = append(out, p)
		}
	}
	return out
}

// Topic returns the topic of a client and the messages published to it. ok is false without a publisher, or if the plan
// has no topic for the client.
func (m *Merged) Topic(c *Connection) (name string, messages []Message, ok bool) {
	p := m.PublishedTo(c.Runner)
	if p == nil {
		return "", nil, false
	}
	clients := &m.groupOf(c.Runner).plan
	n, known := clients.Number(c.ID)
	topic := clients.Topic(n)
	if !known || topic >= len(p.Topics) {
		return "", nil, false
	}
	return p.Topics[topic], p.Topic(topic), true
}

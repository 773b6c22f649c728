package shard

import (
	"slices"
	"time"

	"github.com/sse-soak/sse-soak/internal/plan"
)

// addPublished stores the published messages and the latency of the fastest message with the runner that was just added, and merges
// the reach of messages.
func (m *Merged) addPublished(s *Shard) {
	r := &m.Runners[len(m.Runners)-1]
	r.published, r.feeds = s.Published, s.Feeds
	m.published = m.published || s.Published != nil
	if l := s.Latency; l != nil && l.Histogram.Count() > 0 {
		fastest := time.Duration(l.MinUS) * time.Microsecond
		r.fastest = &fastest
	}
	if s.Reach != nil {
		if m.Reach == nil {
			m.Reach = NewReach(0, 0)
		}
		m.Reach.Merge(s.Reach)
	}
}

// checkPublisher checks that exactly one runner of a group published, if the plan publishes.
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
		case !slices.Equal(p.Topics, topicsOf(&g.plan)):
			m.problem("%s did not publish to the topics of the plan", runnerName)
		case p.Rate != g.plan.PublishRate:
			m.problem("%s published %g messages per second, and the plan has %g", runnerName, p.Rate, g.plan.PublishRate)
		}
	}
	switch {
	case !g.plan.Published() && count > 0:
		m.problem("%s published, and the plan has no publishing", m.runnerName(g, 1))
	case g.plan.Published() && count == 0:
		m.problem("no record of the published messages%s: runner 1 writes it", m.groupName(g))
	case g.plan.Published() && count > 1:
		m.problem("%d runners%s published, so their messages cannot be distinguished; only runner 1 may publish", count, m.groupName(g))
	}
}

func topicsOf(p *plan.Plan) []string {
	topics := make([]string, p.Topics)
	for k := range topics {
		topics[k] = p.TopicName(k)
	}
	return topics
}

// PublishedTo returns the messages published to the streams of a runner; nil: none.
func (m *Merged) PublishedTo(runner int) *Published {
	if p := m.PublisherOf(runner); p != nil {
		return p.published
	}
	return nil
}

// PublisherOf returns the runner that published to the streams of a runner; nil: none.
func (m *Merged) PublisherOf(runner int) *Runner {
	g := m.groupOf(runner)
	if g == nil || !m.published { // it is called for each of a million connections
		return nil
	}
	runners := m.runnersOf(g)
	if at := slices.IndexFunc(runners, func(r Runner) bool { return r.published != nil }); at >= 0 {
		return &runners[at]
	}
	return nil
}

// Publishers returns the messages of each publisher of the run: one, or one for each laptop.
func (m *Merged) Publishers() (out []*Published) {
	for i := range m.Runners {
		if p := m.Runners[i].published; p != nil {
			out = append(out, p)
		}
	}
	return out
}

// Topic returns the name of the topic of a connection, and the messages published to it; ok is false if there is none. On laptops
// each group has its own topics.
func (m *Merged) Topic(c *Connection) (name string, messages []Message, ok bool) {
	p := m.PublishedTo(c.Runner)
	if p == nil {
		return "", nil, false
	}
	of := &m.groupOf(c.Runner).plan
	n, known := of.Number(c.ID)
	topic := of.Topic(n)
	if !known || topic >= len(p.Topics) {
		return "", nil, false
	}
	return p.Topics[topic], p.Topic(topic), true
}

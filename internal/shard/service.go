package shard

import (
	"slices"
	"time"
)

// A Service is what was soaked, as far as a verdict has to know of its description.
type Service struct {
	Name     string  `json:"name"`
	SHA256   string  `json:"sha256"`                      // of the description
	Counts   Counts  `json:"counts"`                      // what is counted
	AnyOrder bool    `json:"any_order,omitempty"`         // the order of messages is not promised
	Every    float64 `json:"heartbeat_every_s,omitempty"` // heartbeats are so many seconds apart at most; 0: not said
	// LifetimeS is how long a stream lives at least where the service ends streams on purpose, in seconds.
	LifetimeS float64 `json:"lifetime_s,omitempty"`
}

// Counts says by what messages are counted.
type Counts string

// What is counted: messages by the clock, and by number where they have one; messages by the numbers in them alone; or
// nothing at all.
const (
	CountsInterval Counts = "interval"
	CountsNumbers  Counts = "numbers"
	CountsNothing  Counts = "nothing"
)

// Heartbeat is how far apart heartbeats are at most, 0 where the description does not say.
func (s *Service) Heartbeat() time.Duration { return time.Duration(s.Every * float64(time.Second)) }

// addPublished keeps what belongs to the runner that was just added, and adds up the rest.
func (m *Merged) addPublished(s *Shard) {
	r := &m.Runners[len(m.Runners)-1]
	r.published = s.Published
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

// checkServices compares the descriptions that the runners were given.
func (m *Merged) checkServices(parts []part) {
	hash := func(s *Service) string {
		if s == nil {
			return ""
		}
		return s.SHA256
	}
	for i := range parts {
		if i == 0 {
			m.Service = parts[0].service
		}
		if hash(parts[i].service) != hash(m.Service) {
			m.problem("%s had another description of the service than %s: what they counted cannot be added up", m.Runners[i].String(), m.Runners[0].String())
		}
	}
}

// checkPublisher finds out whether exactly one runner of a group published, where the plan says that one does.
func (m *Merged) checkPublisher(g *group, runners []Runner) {
	count := 0
	for i := range runners {
		if runners[i].published != nil {
			count++
		}
	}
	switch {
	case !g.plan.Published() && count > 0:
		m.problem("%s published, and the plan says that nothing is published", m.who(g, 1))
	case g.plan.Published() && count == 0:
		m.problem("nobody left an account of what was published%s: runner 1 does that", m.of(g))
	case g.plan.Published() && count > 1:
		m.problem("%d runners%s published, so what they sent cannot be told apart: only runner 1 does that", count, m.of(g))
	}
}

// PublishedTo is what was published to the streams of a runner, nil where nothing was.
func (m *Merged) PublishedTo(runner int) *Published {
	if p := m.PublisherOf(runner); p != nil {
		return p.published
	}
	return nil
}

// PublisherOf is the runner that published to the streams of a runner, nil where none did.
func (m *Merged) PublisherOf(runner int) *Runner {
	for i := range m.groups {
		g := &m.groups[i]
		if runner < g.first || runner >= g.first+g.runners {
			continue
		}
		runners := m.runnersOf(g)
		if at := slices.IndexFunc(runners, func(r Runner) bool { return r.published != nil }); at >= 0 {
			return &runners[at]
		}
	}
	return nil
}

// Publishers is what each publisher of the run sent: one, or one for each laptop.
func (m *Merged) Publishers() (out []*Published) {
	for i := range m.Runners {
		if p := m.Runners[i].published; p != nil {
			out = append(out, p)
		}
	}
	return out
}

// topicOf is the topic of a stream, and who published to it. On laptops each group has its own topics.
func (m *Merged) topicOf(runner int, id string) (p *Published, topic int, ok bool) {
	for i := range m.groups {
		g := &m.groups[i]
		if runner < g.first || runner >= g.first+g.runners {
			continue
		}
		n, known := g.plan.Number(id)
		p = m.PublishedTo(runner)
		if !known || p == nil {
			return nil, 0, false
		}
		topic = g.plan.Topic(n)
		return p, topic, topic < len(p.Topics)
	}
	return nil, 0, false
}

// Topic is what was published to the topic of a connection, and the topic's name; ok is false where nothing was.
func (m *Merged) Topic(c *Connection) (name string, messages []Message, ok bool) {
	p, topic, ok := m.topicOf(c.Runner, c.ID)
	if !ok {
		return "", nil, false
	}
	return p.Topics[topic], p.Topic(topic), true
}

package service

import (
	"fmt"
	"time"

	"github.com/sse-soak/sse-soak/internal/plan"
)

// idleIntervals is the number of intervals without data after which a client closes a stream.
const idleIntervals = 2.5

// FiniteSuite is the suite for responses that end with a terminal event.
const FiniteSuite = "finite"

// minIdle is the shortest idle timeout of a run that publishes, because such a run does not publish in its first and
// last seconds.
const minIdle = 10 * time.Second

// Complete derives two values of a plan for endless streams from the description: the interval between two messages of
// a stream, and whether clients reconnect. It returns an error if the plan and the description contradict each other.
func (s *Service) Complete(p *plan.Plan) error {
	explicit := p.Topics > 0 || p.PublishRate > 0
	switch finite := p.Suite == FiniteSuite; {
	case finite && s.Finite == nil:
		return fmt.Errorf("%s describes streams that do not end by themselves (end.by is not 'event'); soak them with `soak run`", s.Name)
	case !finite && s.Finite != nil:
		return fmt.Errorf("%s describes responses that end by themselves (end.by: 'event'); soak them with `soak run %s`", s.Name, FiniteSuite)
	case finite && explicit:
		return fmt.Errorf("TOPICS and PUBLISH_RATE need endless streams, but %s describes responses that end by themselves; remove both settings", s.Name)
	case finite:
		return nil
	case explicit && s.Publish == nil:
		return fmt.Errorf("TOPICS and PUBLISH_RATE need publish in the description of %s, got %d and %v; add publish to the description, or remove both settings", s.Name, p.Topics, p.PublishRate)
	case !explicit && s.Publish != nil && s.Message.Interval == 0:
		return fmt.Errorf("%s delivers only published messages; set TOPICS and PUBLISH_RATE, such as TOPICS=5 PUBLISH_RATE=2, or remove publish from the description if another program publishes", s.Name)
	}
	p.NoopInterval = s.interval(p)
	p.Reconnect = p.Reconnect || s.End.By == ByServer || p.TokenTTL > 0
	return nil
}

// interval returns the seconds between two messages of a stream. Without numbers and comparison, the interval of
// heartbeats replaces an unknown interval of messages. The default is the interval of the plan, but at most half of the
// time until streams end.
func (s *Service) interval(p *plan.Plan) float64 {
	switch {
	case p.Published():
		return p.PublishInterval()
	case s.Message.Interval > 0:
		return s.Message.Interval.Seconds()
	case !s.Message.Numbered && !s.Message.Shared && s.HeartbeatEvery > 0:
		return s.HeartbeatEvery.Seconds()
	}
	return min(p.NoopInterval, float64(p.Seconds-plan.DisconnectLead)/2)
}

// IdleTimeout returns the time without data after which a client closes a stream. The caller must have passed the plan
// to Complete.
func (s *Service) IdleTimeout(p *plan.Plan) time.Duration {
	interval := s.Message.Interval.Seconds()
	if p.Published() {
		interval = p.PublishInterval()
	}
	silence := max(interval, s.HeartbeatEvery.Seconds())
	if silence == 0 {
		silence = p.NoopInterval
	}
	timeout := time.Duration(silence * idleIntervals * float64(time.Second))
	if p.Published() {
		timeout = max(timeout, minIdle)
	}
	return timeout
}

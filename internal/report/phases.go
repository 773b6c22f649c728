package report

import (
	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// phases are the parts of a soak, in Unix seconds: streams are opened from start to held,
// held, and ended from ending to end.
type phases struct{ start, held, ending, end float64 }

func phasesOf(m *shard.Merged, v *verdict.Verdict) phases {
	p := phases{start: v.StartedUnix, held: v.StartedUnix, ending: v.EndedUnix, end: v.EndedUnix}
	seconds := func(c *shard.Connection, at ledger.Instant) float64 {
		return float64(m.Runners[c.Runner].At(at).UnixMicro()) / 1e6
	}
	for c := range v.Records() {
		if c.Streams > 0 {
			p.held = max(p.held, seconds(c, c.OpenedAt))
		}
		if c.State == ledger.Completed {
			p.ending = min(p.ending, seconds(c, c.ClosedAt))
		}
	}
	p.held = min(p.held, p.ending)
	return p
}

func (p phases) bands() []Band {
	return []Band{
		{Name: "connect", From: p.start, To: p.held},
		{Name: "hold", From: p.held, To: p.ending},
		{Name: "disconnect", From: p.ending, To: p.end},
	}
}

// steady are the points of the axis that lie in the hold, without its edges.
func (p phases) steady(s *series) (from, to int) {
	if s.n == 0 {
		return 0, 0
	}
	return min(s.index(p.held)+2, s.n), s.index(p.ending) + 1
}

package suite

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// lateBy are messages that were late by so much.
func lateBy(n int, by time.Duration) shard.Late {
	h := shard.NewHistogram()
	for range n {
		h.Record(by)
	}
	return shard.Late{Late: n, LateBy: h.Pack()}
}

// Whose delay it was that messages of held streams were late is not decided by those of the other streams: a client that reads
// on after half a minute finds messages that are far later than anything that a generator does.
func TestLatenessOfHeldStreamsAlone(t *testing.T) {
	t.Parallel()
	const second = time.Second
	for suite, of := range map[string]struct {
		run  func() *Run
		held int // a stream that is held
	}{
		"slow": {slowed, 7}, "storm": {dropping, 10}, "vanish": {vanishing, 7},
	} {
		for name, c := range map[string]struct {
			group time.Duration // by which the control group was late
			all   shard.Late
			held  []shard.Late // of the first held client; empty: not known
			want  verdict.Outcome
		}{
			"the generator was late, and others are late by themselves": {3 * second, lateBy(900, 30*second), []shard.Late{lateBy(5, 2*second)}, verdict.Invalid},
			"the service was late, and so were others":                  {0, lateBy(900, 2*second), []shard.Late{lateBy(5, 2*second)}, verdict.Fail},
			"the service was far later than the generator":              {3 * second, lateBy(900, 30*second), []shard.Late{lateBy(5, 30*second)}, verdict.Fail},
			"all are held, and were far later than the generator":       {3 * second, lateBy(5, 30*second), nil, verdict.Fail},
		} {
			t.Run(suite+"/"+name, func(t *testing.T) {
				t.Parallel()
				r := of.run()
				r.late(of.held, 5, 20*second)
				m := r.Rounds[0]
				m.Plan.LateMS = 1000
				m.Control = &shard.Control{Streams: 20, LateMS: 1000, Opened: 20, ControlCounts: shard.ControlCounts{Expected: 800, Received: 800, LongestUS: c.group.Microseconds()}}
				m.Runners[0].Controlled = &shard.RunnerControl{Control: *m.Control, Moments: []shard.ControlWindow{
					{At: began.Add(20 * second), Longest: c.group, Late: c.all.Late, LateBy: c.all.LateBy},
				}}
				for _, late := range c.held {
					m.Runners[0].Controlled.Moments[0].Undisturbed = &late
				}
				v := judged(r)
				require.Equal(t, c.want, v.Verdict, v.Reasons)
				require.Equal(t, c.all.Late, m.Runners[0].Controlled.Moments[0].Late, "what is judged is not changed")
			})
		}
	}
}

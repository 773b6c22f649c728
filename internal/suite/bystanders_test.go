package suite

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

func lateMessages(n int, by time.Duration) shard.LateMessages {
	h := shard.NewHistogram()
	for range n {
		h.Record(by)
	}
	return shard.LateMessages{Late: n, Lateness: h.Pack()}
}

// The lateness of bystanders is attributed without the lateness of the other streams: a client that resumes reading
// after half a minute receives messages that are far later than any delay of a generator.
func TestLatenessOfBystandersAlone(t *testing.T) {
	t.Parallel()
	const second = time.Second
	for suite, runs := range map[string]struct {
		newRun    func() *Run
		bystander int // number of an undisturbed stream
	}{
		"slow": {newSlowRun, 7}, "storm": {newStormRun, 10}, "vanish": {newVanishRun, 7},
	} {
		for name, c := range map[string]struct {
			group      time.Duration // lateness of the control group
			all        shard.LateMessages
			bystanders []shard.LateMessages // empty if unknown
			want       verdict.Outcome
		}{
			"the generator and disturbed streams were late": {3 * second, lateMessages(900, 30*second), []shard.LateMessages{lateMessages(5, 2*second)}, verdict.Invalid},
			"the service was late for all streams":          {0, lateMessages(900, 2*second), []shard.LateMessages{lateMessages(5, 2*second)}, verdict.Fail},
			"the service was far later than the generator":  {3 * second, lateMessages(900, 30*second), []shard.LateMessages{lateMessages(5, 30*second)}, verdict.Fail},
			"all streams were far later than the generator": {3 * second, lateMessages(5, 30*second), nil, verdict.Fail},
		} {
			t.Run(suite+"/"+name, func(t *testing.T) {
				t.Parallel()
				r := runs.newRun()
				r.delayNoops(runs.bystander, 5, 20*second)
				m := r.Rounds[0]
				m.Plan.LateMS = 1000
				m.Control = &shard.Control{Streams: 20, LateMS: 1000, Opened: 20, ControlCounts: shard.ControlCounts{Expected: 800, Received: 800, LongestUS: c.group.Microseconds()}}
				m.Runners[0].ControlGroup = &shard.RunnerControl{Control: *m.Control, Moments: []shard.ControlMoment{
					{At: start.Add(20 * second), Longest: c.group, Late: c.all.Late, Lateness: c.all.Lateness},
				}}
				for _, late := range c.bystanders {
					m.Runners[0].ControlGroup.Moments[0].Undisturbed = &late
				}
				v := judge(r)
				require.Equal(t, c.want, v.Verdict, v.Reasons)
				require.Equal(t, c.all.Late, m.Runners[0].ControlGroup.Moments[0].Late, "judging must not modify its input")
			})
		}
	}
}

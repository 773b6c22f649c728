package live

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/report"
	"github.com/sse-soak/sse-soak/internal/report/html"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// checkpoint returns the shard of a runner of two after one minute with an open stream, which was silent in the
// second half.
func checkpoint(p plan.Plan, index int, state shard.RunState, endedAt time.Time) *shard.Shard {
	h := shard.NewHistogram()
	h.Record(time.Millisecond)
	return &shard.Shard{
		Schema: shard.Schema, Plan: p, Connect: h, FirstNoop: h, Lateness: h,
		Runner: shard.Runner{
			TestID: p.TestID, Process: string(rune('p' + index)), Index: index, Segment: []string{"0:1/2", "1/2:1"}[index-1], Host: "h", State: state,
			StartedUS: endedAt.Add(-time.Minute).UnixMicro(), EndedUS: endedAt.UnixMicro(),
		},
		Series: []shard.Bucket{bucket(endedAt.Unix()/5*5-5, 1, time.Millisecond)},
		Connections: []ledger.Record{{
			ID: p.DeviceID(index - 1), State: ledger.Open, Numbered: true, Numberings: 1, Streams: 1, Attempts: 1, OpenedAt: time.Second, LastAt: 30 * time.Second, Last: 3,
			Counts: ledger.Counts{Received: 3},
		}},
	}
}

func TestPageOfFiles(t *testing.T) {
	t.Parallel()
	p := plan.Default()
	p.TestID, p.Connections, p.ConnectionsPerVU, p.Runners, p.NoopInterval, p.Seconds = "t", 2, 1, 2, 10, 600
	now := time.Unix(1_700_000_000, 0)
	f := &Files{Location: "results/t", clock: func() time.Time { return now }}
	l := f.Page()
	require.Equal(t, []string{"WAITING", "no runner has written data yet"}, []string{l.Banner.Word, l.Banner.Sentence})
	require.False(t, f.Ended())
	_, err := l.Parts()
	require.NoError(t, err)

	show := func(shards ...*shard.Shard) *html.Live {
		m := shard.Merge(p, shards)
		v, err := suite.Judge(&verdict.Evidence{Rounds: []*shard.Merged{m}})
		require.NoError(t, err)
		f.Show(v, m, nil)
		return f.Page()
	}
	l = show(checkpoint(p, 1, shard.Running, now))
	require.Equal(t, "RUNNING", l.Banner.Word)
	require.Equal(t, "nothing lost yet, 2 undecided", l.Banner.Sentence)
	require.Equal(t, []string{"1 runner of the plan wrote no data yet"}, l.Banner.Findings)
	require.Equal(t, report.Neutral, l.Banner.Tone)
	require.NotEmpty(t, l.Sections[1].Charts)

	l = show(checkpoint(p, 1, shard.Running, now), checkpoint(p, 2, shard.Running, now.Add(-2*time.Minute)))
	require.Equal(t, "runner 2: silent for 2 min", l.Banner.Findings[0])
	require.Equal(t, report.Doubt, l.Banner.Tone)
	f.SetNotice("the bucket does not answer; trying again")
	require.Contains(t, f.Page().Banner.Findings, "the bucket does not answer; trying again")

	l = show(checkpoint(p, 1, shard.Finished, now), checkpoint(p, 2, shard.Interrupted, now))
	require.Equal(t, "ENDED", l.Banner.Word)
	require.Contains(t, l.Banner.Findings, "runner 2: interrupted")
	require.True(t, f.Ended())
}

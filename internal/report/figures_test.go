package report

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// Runners detect a clock difference only if the latency of the first message is negative or longer than a second.
func TestLastSubscriberStatesDifferentClocks(t *testing.T) {
	t.Parallel()
	for above, isRelative := range map[string]bool{verdict.AboveSend: false, verdict.AboveFastest: true} {
		v := &verdict.Verdict{}
		v.LatencyMS = &verdict.Latency{Above: above}
		v.Messages.Received, v.Messages.LastSubscriberMS = 1, &verdict.Quantiles{P50: 800}
		var f facts
		f.latency(v)
		last := f.Rows[len(f.Rows)-1]
		require.Equal(t, "last subscriber", last[0].Text)
		if text := "it may include a clock difference of up to 1 s"; isRelative {
			require.Contains(t, last[1].Text, text)
		} else {
			require.NotContains(t, last[1].Text, text)
		}
	}
}

func TestLongListOfTopicsIsOmitted(t *testing.T) {
	t.Parallel()
	v := &verdict.Verdict{}
	v.Messages.Published = &verdict.Publication{Topics: 60}
	for range 50 {
		v.Messages.Topics = append(v.Messages.Topics, &verdict.Topic{})
	}
	section := (&pageBuilder{v: v}).publishedSection()
	require.Len(t, section.Tables, 1, "only the table of the publisher must remain")
	require.Equal(t, []string{"The topics are not listed, because there are more than 50; connections.csv has the topic of each stream."}, section.Notes)
}

// Without data, the numbers are unknown, not 0.
func TestRunWithoutDataHasNoNumbers(t *testing.T) {
	t.Parallel()
	start := shard.Runner{Index: 1, State: shard.Running, StartedUS: 1_700_000_000e6, EndedUS: 1_700_000_000.1e6, CPUSeconds: .1, RunDelaySeconds: .2}
	for kind, runners := range map[string][]shard.Runner{"": {start}, "storm": nil, "rampup": {start}} {
		p := plan.Default()
		p.TestID, p.Suite, p.Connections, p.BackendURL = "t", kind, 20, "http://127.0.0.1:41234"
		m := &shard.Merged{
			Plan: p, Service: shard.ServiceOf(service.Noop(p.Interval())),
			Problems: []string{"runner 1 of 2 left no shard"}, Runners: runners,
			Connect: shard.NewHistogram(), FirstMessage: shard.NewHistogram(), Lateness: shard.NewHistogram(),
		}
		v := newVerdict(t, m)
		text := textOf(t, Brief(v))
		require.Contains(t, text, "received     not known, because no runner stored data")
		for _, figure := range []string{"0 opened", "0 made", "0 of 0", "0.00 ms", " 0 ms", "0 stages", "judged by", "waited", "Results", "ok  "} {
			require.NotContains(t, text, figure)
		}
		page := Full(&Run{Verdict: v, Merged: m})
		require.Empty(t, page.Banner.Tiles)
		for _, s := range page.Sections {
			require.NotEqual(t, "account", s.ID)
			if s.ID == "checks" { // limits may be 0
				continue
			}
			for _, table := range s.Tables {
				for _, row := range table.Rows {
					require.NotContains(t, row, Cell{Text: "0"}, s.Title)
					require.NotEqual(t, "ended", row[0].Text)
				}
			}
		}
	}
}

package run

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A message is missing between two others. The runner of another part published it.
func TestPartReportsMissingPublishedMessages(t *testing.T) {
	t.Parallel()
	for anyOrder, want := range map[bool]verdict.Outcome{false: verdict.Fail, true: verdict.Pass} {
		var output bytes.Buffer
		s := newSession(Config{Suite: suite.Default(), Stdout: &output})
		s.runnerNumber, s.Plan.Runners = 2, 2
		outcome := s.reportPart(&shard.Shard{
			Service: shard.Service{AnyOrder: anyOrder}, Runner: shard.Runner{State: shard.Finished},
			Connections: []ledger.Record{{
				ID: "c0", State: ledger.Completed, Numbered: true, Streams: 1, First: 1, Last: 3, Holes: []ledger.Range{{2, 2}},
				Spans: []ledger.Span{{From: 1, To: 9, First: 1, Last: 3}}, Counts: ledger.Counts{Received: 2},
			}},
		})
		require.Equal(t, want, outcome)
		if !anyOrder {
			require.Contains(t, output.String(), "part 2 of 2 is finished: 1 stream opened, 0 refused, 0 dropped; 2 noops received, 1 missed, 0 faulty, 0 late\n")
		}
	}
}

package suite

import (
	"strings"
	"testing"
	"time"

	"github.com/davecgh/go-spew/spew"
	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// soaking returns a soak of which one stream was never opened, one did not return, and one lost its last noop, which
// only the server's ledger shows.
func soaking() *Run {
	r := runOf("", nil)
	m := r.Rounds[0]
	m.Suite, m.Plan = nil, plan.Default()
	m.Plan.TestID, m.Plan.Prefix, m.Plan.Connections, m.Plan.Seconds, m.Plan.NoopInterval = "t", "d-", 0, 15, 1
	r.holding(4, 10*time.Second)
	c := m.Connections.Edit
	c(0).Record = ledger.Record{ID: "d-0", State: ledger.Connecting, Attempts: 2, Refusals: []ledger.Refusal{{Reason: "status 503", Count: 2}}}
	c(1).State, c(1).Reason = ledger.Waiting, "reset"
	c(2).Findings = make([]ledger.Finding, 0, 9) // room behind what it holds
	e := r.Server["d-2"]
	e.Last, e.Sent = e.Last+1, e.Sent+1
	r.Server["d-2"] = e
	return r
}

// A verdict is made again at any time, and several readers share the evidence: Judge writes to nothing that it is given.
func TestJudgeLeavesTheEvidenceAlone(t *testing.T) {
	t.Parallel()
	dump := spew.ConfigState{Indent: " ", SortKeys: true, DisableMethods: true, DisablePointerAddresses: true}
	for name, r := range map[string]*Run{
		"soak": soaking(), "churn": churning(), "capacity": climbing(10, 20), "fanout": spreading(5, 10), "cluster": compared(), "burst": bursts(), "throughput": levels(), "rampup": ramp(nil, 20, 50), "upload": uploads(nil), "storm": dropping(), "vanish": vanishing(), "slow": slowed(),
	} {
		r.Warnings = append(make([]string, 0, 9), "known before")
		before := dump.Sdump(r)
		v := judged(r)
		require.Equal(t, before, dump.Sdump(r), name)
		require.Equal(t, v, judged(r), name)
		for _, c := range r.Rounds[0].Connections.All() {
			for _, behind := range c.Findings[len(c.Findings):cap(c.Findings)] {
				require.Zero(t, behind, "%s: nor behind what a record holds", name)
			}
		}
	}
}

// What only the end of a stream or the server's ledger shows is in the verdict, and in its records for the reports.
func TestRecordsHaveWhatTheVerdictFound(t *testing.T) {
	t.Parallel()
	v := judged(soaking())
	require.Equal(t, verdict.Fail, v.Verdict)
	require.Equal(t, verdict.Connections{Planned: 4, Opened: 3, Completed: 2, Refused: 1, Dropped: 1}, v.Connections)
	var states []string
	for c := range v.Records() {
		states = append(states, string(c.State))
		if c.ID == "d-2" {
			require.EqualValues(t, 1, c.Missed())
			require.Len(t, c.Findings, 1)
		}
	}
	require.Equal(t, "refused dropped completed completed", strings.Join(states, " "))
}

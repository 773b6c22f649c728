package report

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// newActions returns an action that disconnected streams, one that disconnected none, and one that did not start.
func newActions() []verdict.Action {
	seconds := func(s float64) *float64 { return &s }
	resumed := uint64(1234)
	result := func(name string, at time.Duration, duration float64) verdict.ActionResult {
		started := 1_700_000_000 + at.Seconds()
		return verdict.ActionResult{Action: plan.Action{Name: name, At: at, Command: "./" + name + ".sh | tee <log>"}, StartedUnix: started, EndedUnix: started + duration}
	}
	late := verdict.ActionResult{Action: plan.Action{Name: "late", At: 50 * time.Minute, Command: "true"}, ExitCode: -1, Problem: "it did not start, because the run ended first"}
	failed := result("reload", 10*time.Minute, .25)
	failed.ExitCode, failed.Output = 1, "one\ntwo\nthree\nfour"
	return []verdict.Action{
		{ActionResult: result("deploy", time.Minute, 12.5), Effect: &verdict.Effect{
			Until: 1_700_000_200, Lost: 1200, Losses: 1201, NotReconnected: 1, FirstLost: seconds(.4), Reconnected50: seconds(2.5), Reconnected99: seconds(9), Peak: 431,
			Refused: map[string]int{"status 502": 12, "connect_refused": 1}, Missed: 3, Resumed: &resumed, Duplicated: 1,
			Slowest: &verdict.Outage{ID: "d-7", Unix: 1_700_000_061, Seconds: 14.2}, Notes: []string{"1 outage of streams that were lost often is not listed"},
		}},
		{ActionResult: failed, Effect: &verdict.Effect{Until: 1_700_000_700}},
		{ActionResult: late},
	}
}

func TestActionSentences(t *testing.T) {
	t.Parallel()
	_, v, _ := newRun()
	v.Actions = newActions()
	p := &Page{Sections: []Section{actions(v)}}
	golden(t, "actions.txt", []byte(textOf(t, p)))
	golden(t, "actions.md", []byte(markdownOf(t, p)))
}

func TestCutsChartCountsPerStep(t *testing.T) {
	t.Parallel()
	r := simulatedRun(20, 600)
	charts := func() (ids []string) {
		for _, c := range newPageBuilder(r).timelines().Charts {
			ids = append(ids, c.ID)
		}
		return ids
	}
	require.NotContains(t, charts(), "cuts", "a run without disconnects must not have the chart")
	cut := func(at time.Duration, lastNumber, next, duplicated uint64) ledger.Cut {
		return ledger.Cut{Kind: "fin", At: at, LastNumber: lastNumber, Lost: true, ReconnectedAt: at + time.Second, ResumeRequested: true, NextAt: at + 2*time.Second, Next: next, Duplicated: duplicated}
	}
	r.Merged.Connections.Edit(3).Cuts = &ledger.Cuts{List: []ledger.Cut{cut(61*time.Second, 4, 6, 0), cut(64*time.Second, 6, 7, 0), cut(70*time.Second, 7, 7, 1)}}
	r.Merged.Connections.Edit(9).Cuts = &ledger.Cuts{List: []ledger.Cut{cut(62*time.Second, 4, 5, 0), cut(24*time.Hour, 5, 6, 0)}}
	require.Contains(t, charts(), "cuts")
	var out Section
	newPageBuilder(r).cutsOverTime(&out)
	require.Len(t, out.Charts, 1)
	disconnects, faulty := out.Charts[0].Series[0].Values, out.Charts[0].Series[1].Values
	require.Equal(t, []float64{0, 3, 0, 1, 0}, []float64(disconnects[11:16]), "disconnects in each 5 s, from 55 s")
	require.Equal(t, []float64{0, 1, 0, 1, 0}, []float64(faulty[11:16]))
}

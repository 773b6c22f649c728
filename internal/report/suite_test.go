package report

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/suite"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// SuiteRun is exported for the tests of pages.
var SuiteRun = suiteRun

// suiteRun returns a run of a suite with the processes of a simulated soak.
func suiteRun() *Run {
	r := simulatedRun(20, 600)
	p := plan.Plan{TestID: "s", Suite: "rampup", Runners: 2, BackendURL: "http://h"}
	m := &shard.Merged{Plan: p, Runners: r.Merged.Runners, Series: r.Merged.Series, Suite: &shard.Suite{
		Name: "rampup", Profile: "full", Parameters: map[string]string{"STAGES": "20,50"},
		Stages: []shard.Stage{{Name: "a", Title: "20/s", Start: 0, Seconds: simulatedConnect}, {Name: "b", Title: "50/s", Start: simulatedConnect, Seconds: 500}},
	}}
	kind, _ := suite.ByName(p)
	answers := shard.NewHistogram()
	for range 100 {
		answers.Record(3 * time.Millisecond)
	}
	m.Metrics = []shard.Metric{{Name: shard.RequestDuration, Tags: map[string]string{shard.TagStage: "b", shard.TagCode: shard.CodeOK}, Trend: answers}}
	r.Merged = m
	r.Verdict = verdict.Judge(&verdict.Evidence{Rounds: []*shard.Merged{m}}, verdict.Assessment{
		Layout:  kind.Layout(),
		Checks:  []verdict.Check{{Name: "responses are correct", Limit: "all", Actual: "0 wrong", Pass: true}},
		Facts:   []verdict.Fact{{Name: "breaks", Value: "between 20 and 50 requests/s"}},
		Metrics: []verdict.Metric{{Name: "sustained", Unit: "requests/s", Value: 20}, {Name: "peak", Unit: "requests/s", Value: 50_794.4}, {Name: "p95", Unit: "ms", Value: 1500}},
		Tables:  []verdict.Table{{Title: "Stages", Note: "good: under 1 % failed", Columns: []string{"stage", "requests", "status"}, Rows: [][]string{{"low", "600", "good"}, {"high", "1,500", "bad"}}}},
		Passed:  []string{"20 requests/s were sustained"},
	})
	return r
}

func TestOnlyStartedStagesHaveBands(t *testing.T) {
	t.Parallel()
	v := suiteRun().Verdict
	v.EndedUnix = v.StartedUnix + 1
	require.Equal(t, []Band{{Name: "20/s", From: v.StartedUnix, To: v.EndedUnix}}, stages(v))
}

func TestCurvesMergeRoundsAndSkipOtherStages(t *testing.T) {
	t.Parallel()
	r := suiteRun()
	first := r.Merged.Metrics[0]
	r.Merged.Metrics, r.Verdict.Suite.Stages = nil, nil
	add := func(kind, title string) {
		name := fmt.Sprint(len(r.Merged.Metrics))
		first.Tags = map[string]string{shard.TagStage: name, shard.TagCode: shard.CodeOK}
		r.Merged.Metrics = append(r.Merged.Metrics, first)
		r.Verdict.Suite.Stages = append(r.Verdict.Suite.Stages, shard.Stage{Name: name, Kind: kind, Title: title})
	}
	add("warmup", "warm-up")
	for n := range maxCurves + 4 {
		add("load", fmt.Sprintf("%d at a time, round 1", n))
		add("load", fmt.Sprintf("%d at a time, round 2", n))
		add("health", "health after it")
	}
	chart := (&pageBuilder{Run: r, v: r.Verdict}).curves().Charts[0]
	var names []string
	for _, series := range chart.Series {
		names = append(names, series.Name)
	}
	require.Equal(t, []string{"0 at a time", "1 at a time", "3 at a time", "4 at a time", "6 at a time", "7 at a time", "9 at a time", "11 at a time"}, names)
	require.Contains(t, chart.Note, "8 of 12 loads")
}

// A suite names the sections of its page; an unknown name would cause a panic.
func TestSuiteSectionsExist(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, kind := range append(suite.All(), suite.Default()) {
		for _, name := range kind.Layout().Page {
			require.Contains(t, sections, name, kind.Name)
			names[name] = true
		}
	}
	require.Len(t, names, len(sections), "each section must be used by a suite")
}

// A page has the section only if the runners read counters of machines.
func TestMachinesSection(t *testing.T) {
	t.Parallel()
	r := simulatedRun(20, 600)
	require.NotContains(t, sectionIDs(r), "machines")
	r.Verdict.Machines = []verdict.MachineReport{{Name: "ip-10-0-0-7", Runners: []int{1, 2}, Counters: []verdict.MachineCounter{{Name: "conntrack_allowance_exceeded", Increase: 14}}}}
	require.Contains(t, sectionIDs(r), "machines")
	s := machines(r.Verdict)
	require.Equal(t, "runners 1 and 2 (ip-10-0-0-7)", s.Tables[0].Rows[0][0].Text)
	require.Equal(t, "14 conntrack", s.Tables[0].Rows[0][1].Text)
}

func sectionIDs(r *Run) (out []string) {
	for _, s := range newPageBuilder(r).page().Sections {
		out = append(out, s.ID)
	}
	return out
}

// The ledger is not compared for a runner that ended early. A 0 would state that the server sent nothing.
func TestRunnersWithoutComparisonHaveNoServerCount(t *testing.T) {
	t.Parallel()
	v := new(verdict.Verdict)
	v.Server = verdict.Server{Known: true, Sent: 90, Uncompared: 40}
	v.Runners = []verdict.Runner{
		{Index: 1, State: string(shard.Interrupted), Totals: ledger.Totals{Received: 40}},
		{Index: 2, State: string(shard.Finished), Totals: ledger.Totals{Received: 90}, ServerSent: 90},
	}
	table := runnersOf(v).Tables[0]
	column := len(table.Columns) - 3
	require.Equal(t, "server sent", table.Columns[column].Name)
	require.Equal(t, "–", table.Rows[0][column].Text)
	require.Equal(t, "90", table.Rows[1][column].Text)
}

// Without send times, 0 late messages would state that all were on time.
func TestRunnersWithoutSendTimesHaveNoLateMessages(t *testing.T) {
	t.Parallel()
	for basis, want := range map[shard.CountBasis]bool{shard.CountByNumber: false, shard.CountByInterval: true} {
		v := new(verdict.Verdict)
		v.Evidence.Kind, v.Service.CountBasis = verdict.ByNumbers, basis
		v.Runners = []verdict.Runner{{Index: 1, State: string(shard.Finished)}}
		table := runnersOf(v).Tables[0]
		require.Equal(t, want, slices.Contains(table.Columns, Columns("#late")[0]), basis)
		require.Len(t, table.Rows[0], len(table.Columns))
	}
}

// The runners of a suite of responses count neither streams nor messages. Zeros would contradict the sum over all
// runners, and a row of sums would be empty.
func TestRunnersOfASuiteOfResponsesHaveNoCounts(t *testing.T) {
	t.Parallel()
	v := new(verdict.Verdict)
	v.Layout.Declared, v.Evidence.Kind, v.Responses = true, verdict.ByNumbers, new(verdict.Responses)
	v.Messages.Totals = ledger.Totals{Expected: 80, Received: 80}
	v.Runners = []verdict.Runner{{Index: 1, State: string(shard.Finished)}, {Index: 2, State: string(shard.Finished)}}
	table := runnersOf(v).Tables[0]
	require.Equal(t, Columns("runner", "host", "state", "#memory", "#CPU time"), table.Columns)
	require.Len(t, table.Rows, 2)
}

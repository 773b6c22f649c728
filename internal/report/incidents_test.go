package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// incidentRows returns the rows of the incidents as text: time, faults, clients, and actions.
func incidentRows(s *pageBuilder) (rows []string) {
	for _, t := range s.incidentSection().Tables {
		for _, row := range t.Rows {
			var texts []string
			for _, c := range row {
				texts = append(texts, c.Text)
			}
			rows = append(rows, strings.Join(texts, " | "))
		}
	}
	return rows
}

func TestIncidentsGroupFaultsByTime(t *testing.T) {
	t.Parallel()
	run := simulatedRun(100, 1200)
	at := func(seconds float64) float64 { return simulatedStart + seconds }
	run.Verdict.Incidents = []verdict.Incident{
		{FirstUnix: at(600), LastUnix: at(612), Kinds: []verdict.KindCount{{Kind: "lost", Count: 1}, {Kind: "dropped", Count: 4}}, Connections: 4, IDs: []string{"d-1", "d-2", "d-3"}},
		{FirstUnix: at(900), LastUnix: at(900), Kinds: []verdict.KindCount{{Kind: "late", Count: 1}}, Connections: 1, IDs: []string{"d-9"}},
	}
	run.Verdict.Actions = []verdict.Action{{ActionResult: verdict.ActionResult{Action: plan.Action{Name: "deploy"}, StartedUnix: at(590)}}}
	s := newPageBuilder(run)
	rows := incidentRows(s)
	require.Len(t, rows, 2)
	require.Regexp(t, `^22:23:20 to 22:23:32 \| 1 × missed; 4 × dropped \| d-1, d-2, d-3 and 1 more \| deploy started 10 s before$`, rows[0])
	require.Regexp(t, `^22:28:20 \| 1 × late \| d-9 \| `, rows[1])
	require.NotContains(t, rows[1], "deploy")
	require.Equal(t, "2 incidents, the first at 22:23:20 UTC: 1 × missed; 4 × dropped.", s.incidentSection().Lead[0])
	require.Equal(t, at(600), s.incidentSection().Tables[0].Rows[0][0].At, "the charts must be able to show the time of the incident")
}

func TestPassedRunHasNoIncidents(t *testing.T) {
	t.Parallel()
	run := simulatedRun(100, 600)
	require.Equal(t, "story", newPageBuilder(run).page().Sections[0].ID)
	run.Verdict.Verdict = verdict.Pass
	require.Equal(t, "timelines", newPageBuilder(run).page().Sections[0].ID)
	run = simulatedRun(100, 600)
	run.Verdict.Incidents = nil
	require.Equal(t, "checks", newPageBuilder(run).page().Sections[0].ID)
}

func TestIncidentsAreLimited(t *testing.T) {
	t.Parallel()
	run := simulatedRun(20, 1200)
	run.Verdict.Incidents = nil
	for i := range 20 {
		at := simulatedStart + float64(50*i)
		run.Verdict.Incidents = append(run.Verdict.Incidents, verdict.Incident{FirstUnix: at, LastUnix: at, Kinds: []verdict.KindCount{{Kind: "lost", Count: 1}}, Connections: 1, IDs: []string{"d-1"}})
	}
	s := newPageBuilder(run)
	require.Len(t, incidentRows(s), maxIncidents)
	require.Equal(t, "the first 12 of 20", s.incidentSection().Tables[0].Note)
	run.Verdict.Actions = nil
	require.Equal(t, "Faults at most 15 s apart form one incident.", s.incidentSection().Notes[0])
}

// A failure of the target is part of the incident at its time, or an incident of its own.
func TestIncidentsIncludeTargetFailures(t *testing.T) {
	t.Parallel()
	run := simulatedRun(100, 1200)
	at := func(seconds float64) float64 { return simulatedStart + seconds }
	run.Verdict.Failures = []verdict.TargetFailure{{Unix: at(601), Text: "the backend died"}, {Unix: at(900), Text: "nginx died"}}
	run.Verdict.Incidents = []verdict.Incident{{
		FirstUnix: at(602), LastUnix: at(603), Kinds: []verdict.KindCount{{Kind: "dropped", Count: 60}}, Connections: 60, IDs: []string{"d-0", "d-1", "d-2"},
	}}
	rows := incidentRows(newPageBuilder(run))
	require.Len(t, rows, 2)
	require.Regexp(t, `^22:23:21 to 22:23:23 \| the backend died; 60 × dropped \| d-0, d-1, d-2 and 57 more`, rows[0])
	require.Regexp(t, `^22:28:20 \| nginx died \|`, rows[1])

	run.Verdict.Failures = []verdict.TargetFailure{{Text: "a replica died"}}
	s := newPageBuilder(run)
	rows = incidentRows(s)
	require.Len(t, rows, 2)
	require.Regexp(t, `^– \| a replica died \|`, rows[1], "a failure at an unknown time must be last")
	require.Regexp(t, `^2 incidents, the first at 22:23:22 UTC: 60 × dropped`, s.incidentSection().Lead[0])
	run.Verdict.Incidents = nil
	require.Equal(t, "1 incident at an unknown time: a replica died.", newPageBuilder(run).incidentSection().Lead[0])
}

func TestBannerOmitsCountsOfUnobservedClients(t *testing.T) {
	t.Parallel()
	v := &verdict.Verdict{Verdict: verdict.Invalid, Sentence: "INVALID: runner 2 did not finish", Checks: []verdict.Check{
		{ID: verdict.CheckComplete, Severity: verdict.SeverityInconclusive, Reasons: []string{"runner 2 did not finish", "10 of 20 planned clients were not observed"}},
		{ID: verdict.CheckOpenToEnd, Severity: verdict.SeverityFail, Name: "streams open to the end", Limit: "20", Actual: "10"},
	}}
	for i := range v.Checks {
		v.Reasons = append(v.Reasons, v.Checks[i].Sentences()...)
	}
	require.Equal(t, []string{"10 of 20 planned clients were not observed"}, Brief(v).Banner.Findings)
}

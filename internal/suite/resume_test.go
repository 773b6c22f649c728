package suite

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// The plan of each profile has disconnects of every kind.
func TestResumeProfilesAreValid(t *testing.T) {
	t.Parallel()
	for name, settings := range resume.Plan.Profiles {
		p := plan.Default()
		p.Reconnect, p.BackendURL = true, "http://h"
		values := map[string]string{}
		for _, setting := range settings {
			key, value, ok := strings.Cut(setting, "=")
			require.True(t, ok)
			values[key] = value
		}
		require.NoError(t, p.ReadEnvironment(func(name string) string { return values[name] }), name)
		require.NoError(t, p.Check(), name)
		kinds := map[string]int{}
		for _, c := range p.PlannedCuts() {
			kinds[c.Kind]++
		}
		require.Len(t, kinds, len(plan.CutKinds()), name)
		if name == "smoke" {
			require.LessOrEqual(t, p.Seconds, 20)
		}
	}
}

func TestResumeHasMetricsOfCuts(t *testing.T) {
	t.Parallel()
	v := &verdict.Verdict{Counts: verdict.Counts{Cuts: []verdict.Cuts{{Kind: plan.CutFIN, Count: 1}, {Kind: plan.CutHalf, OutageMS: verdict.Quantiles{P50: 1200}}}}}
	require.Equal(t, verdict.Metric{Name: "outage after half p50", Unit: "ms", Value: 1200}, resumeMetrics(v)[0], "the disconnect by FIN has no outage, so it must have no metric")
}

// The report of a resume run has a table of disconnects in place of the table of end requests.
func TestResumePageHasNoEndRequests(t *testing.T) {
	t.Parallel()
	require.Contains(t, soak.Page.Sections, "teardown")
	require.Contains(t, resume.Page.Sections, "results")
	require.NotContains(t, resume.Page.Sections, "teardown")
}

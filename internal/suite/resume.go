package suite

import (
	"slices"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// resume is a soak whose streams are disconnected while messages continue: its plan has rate and kinds
// (plan/cuts.go).
var resume = Suite{
	Name:     "resume",
	Short:    "disconnect event streams while messages continue, and account for every message in between",
	Script:   []string{"load-tests", "sse", "resume.js"},
	Target:   soak.Target,
	Sampling: soak.Sampling,
	Plan: Plan{Known: true, Profiles: map[string][]string{
		"full":  {"CONNECTIONS=600", "SECONDS=600", "NOOP_INTERVAL=1", "CUTS_PER_SECOND=4"},
		"smoke": {"CONNECTIONS=60", "SECONDS=20", "NOOP_INTERVAL=1", "CUTS_PER_SECOND=6", "PAUSE=2"},
	}},
	Page:   Page{Doc: "docs/suites.md", Sections: slices.Insert(slices.Clone(soak.Page.Sections), 2, "found")},
	Assess: assessResume, Metrics: resumeMetrics,
}

func assessResume(r *Run) verdict.Assessment {
	a := assessSoak(r)
	a.Tables = []verdict.Table{a.Streams.CutTable()}
	return a
}

// resumeMetrics are those of a soak, and how long clients were without a message.
func resumeMetrics(v *verdict.Verdict) (out []verdict.Metric) {
	for _, c := range v.Cuts {
		out = append(out, verdict.Metric{Name: "away after " + c.Kind + " p50", Unit: "ms", Value: c.AwayMS.P50})
	}
	return append(out, soakMetrics(v)...)
}

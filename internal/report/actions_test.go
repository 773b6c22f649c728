package report

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

// someActions are one that cost streams, one that cost none, and one that did not begin.
func someActions() []verdict.Action {
	seconds := func(s float64) *float64 { return &s }
	resumed := uint64(1234)
	begun := func(name string, at time.Duration, took float64) verdict.Acted {
		started := 1_700_000_000 + at.Seconds()
		return verdict.Acted{Action: plan.Action{Name: name, At: at, Command: "./" + name + ".sh | tee <log>"}, StartedUnix: started, EndedUnix: started + took}
	}
	late := verdict.Acted{Action: plan.Action{Name: "late", At: 50 * time.Minute, Command: "true"}, ExitCode: -1, Problem: "it did not begin, since the run ended before"}
	failed := begun("reload", 10*time.Minute, .25)
	failed.ExitCode, failed.Output = 1, "one\ntwo\nthree\nfour"
	return []verdict.Action{
		{Acted: begun("deploy", time.Minute, 12.5), Effect: &verdict.Effect{
			Until: 1_700_000_200, Lost: 1200, Times: 1201, Never: 1, FirstLost: seconds(.4), Back50: seconds(2.5), Back99: seconds(9), Peak: 431,
			Refused: map[string]int{"status 502": 12, "connect_refused": 1}, Missed: 3, Resumed: &resumed, Doubled: 1,
			Slowest: &verdict.Outage{ID: "d-7", Unix: 1_700_000_061, Seconds: 14.2}, Notes: []string{"1 outage of streams that were lost often is not listed"},
		}},
		{Acted: failed, Effect: &verdict.Effect{Until: 1_700_000_700}},
		{Acted: late},
	}
}

func TestActionsInWords(t *testing.T) {
	t.Parallel()
	_, v, _ := handmade()
	v.Actions = someActions()
	p := &Page{Sections: []Section{actions(v)}}
	var text, page strings.Builder
	require.NoError(t, Text(&text, p))
	golden(t, "actions.txt", []byte(text.String()))
	require.NoError(t, Markdown(&page, p))
	golden(t, "actions.md", []byte(page.String()))
}

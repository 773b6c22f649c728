package html

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/verdict"
)

func TestActionsHaveASectionAndALineOnEachChart(t *testing.T) {
	t.Parallel()
	r := madeUp(20, 600)
	_, doc := render(t, r)
	require.Zero(t, doc.Find("#actions").Length(), "without an action there is no section")
	evil := `</script><img src=x onerror=alert(1)>`
	resumed, back := uint64(7), 4.5
	r.Verdict.Actions = []verdict.Action{{
		Acted: verdict.Acted{
			Action: plan.Action{Name: "deploy", At: time.Minute, Command: evil}, StartedUnix: madeUpStart + 60, EndedUnix: madeUpStart + 62, Output: evil,
		},
		Effect: &verdict.Effect{
			Until: madeUpStart + 122, Lost: 20, Times: 20, FirstLost: &back, Back50: &back, Back99: &back, Back100: &back, Peak: 20, Resumed: &resumed,
			Slowest: &verdict.Outage{ID: evil, Unix: madeUpStart + 60, Seconds: 4.5},
		},
	}}
	page, doc := render(t, r)
	require.Equal(t, []string{"20 streams, the first 4.5 s after the action began"}, row(t, doc, "actions", "lost"))
	require.Equal(t, []string{"50 % after 4.5 s, 99 % after 4.5 s, 100 % after 4.5 s"}, row(t, doc, "actions", "back"))
	require.Equal(t, []string{"0 missed, 7 resumed, 0 duplicated"}, row(t, doc, "actions", "messages"))
	require.Equal(t, []string{evil}, row(t, doc, "actions", "command"))
	require.Zero(t, doc.Find("img").Length())
	require.Contains(t, page, `"lines":[{"name":"deploy","at":1700000060}]`)
	require.Contains(t, doc.Find("#spikes").Text(), "clients connecting")
	require.True(t, strings.Contains(doc.Find("nav").Text(), "Actions"))
}

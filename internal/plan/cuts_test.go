package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func planWithCuts() Plan {
	p := validPlan()
	p.Connections, p.Seconds, p.NoopInterval, p.Reconnect, p.CutsPerSecond = 600, 600, 1, true, 4
	return p
}

// The same seed gives the same cuts. All cuts are in the cut period, and their kinds match the shares.
func TestPlannedCuts(t *testing.T) {
	t.Parallel()
	p := planWithCuts()
	p.CutShares = "fin:2,rst,half:0,pause:1"
	require.NoError(t, p.Check())
	all := p.PlannedCuts()
	from, to := p.CutPeriod()
	require.Equal(t, 4*time.Second, from)
	require.Equal(t, 584*time.Second, to)
	require.Len(t, all, 4*580)
	counts := map[string]int{}
	for i, c := range all {
		counts[c.Kind]++
		require.GreaterOrEqual(t, c.At, from)
		require.Less(t, c.At, to)
		if i > 0 {
			require.LessOrEqual(t, all[i-1].At, c.At)
		}
	}
	require.Equal(t, map[string]int{"fin": 1160, "rst": 580, "pause": 580}, counts)
	require.Equal(t, all, p.PlannedCuts())
	p.Seed++
	require.NotEqual(t, all, p.PlannedCuts())
	p.CutsPerSecond = 0
	require.Empty(t, p.PlannedCuts())
}

func TestCheckRejectsInvalidCuts(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(p *Plan){
		"": func(*Plan) {},
		`CUTS must be shares of fin, rst, half and pause, such as fin:1,rst:1,half:1,pause:1, got "fin:1,fan:2"`:                             func(p *Plan) { p.CutShares = "fin:1,fan:2" },
		`CUTS must be shares of fin, rst, half and pause, such as fin:1,rst:1,half:1,pause:1, got ":x"`:                                      func(p *Plan) { p.CutShares = ":x" },
		`the share of fin in CUTS must be a whole number up to 1000, got "-1"`:                                                               func(p *Plan) { p.CutShares = "fin:-1" },
		`CUTS must have a share over 0, got "fin:0"`:                                                                                         func(p *Plan) { p.CutShares = "fin:0" },
		"CUTS_PER_SECOND needs RECONNECT=1, because clients must reconnect after a disconnect":                                               func(p *Plan) { p.Reconnect = false },
		"SECONDS must leave time for cuts after the first message of each stream and before its last, got 0s at 4 cuts per second":           func(p *Plan) { p.Seconds = 20 },
		"CUTS_PER_SECOND must be at most 150 with CONNECTIONS 600, because a client can be disconnected again only after about 4 s, got 400": func(p *Plan) { p.CutsPerSecond = 400 },
		"CUTS_PER_SECOND must be from 0.001 to 1000 per second, or 0 (none), got 2000":                                                       func(p *Plan) { p.CutsPerSecond = 2000 },
		"ALLOW_ANNOUNCED_GAPS needs published messages":                                                                                      func(p *Plan) { p.AllowGaps = true },
		"ALLOW_ANNOUNCED_GAPS needs published messages, because":                                                                             func(p *Plan) { p.CutsPerSecond, p.AllowGaps = 0, true },
	} {
		p := planWithCuts()
		change(&p)
		if err := p.Check(); want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, want)
		}
	}
}

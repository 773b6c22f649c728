package plan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func cut() Plan {
	p := validPlan()
	p.Connections, p.Seconds, p.NoopInterval, p.Reconnect, p.CutsPerSecond = 600, 600, 1, true, 4
	return p
}

// The same seed draws the same cuts, in the time for them and by their shares.
func TestCutsArePlanned(t *testing.T) {
	t.Parallel()
	p := cut()
	p.CutShares = "fin:2,rst,half:0,pause:1"
	require.NoError(t, p.Check())
	all := p.PlannedCuts()
	from, to := p.CutWindow()
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

func TestInvalidCuts(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(p *Plan){
		"": func(*Plan) {},
		`CUTS is "fin:1,fan:2": there is no cut "fan"; write shares of fin, rst, half and pause, such as fin:1,rst:1,half:1,pause:1`:           func(p *Plan) { p.CutShares = "fin:1,fan:2" },
		`CUTS is "fin:-1": the share of fin must be a whole number up to 1000`:                                                                 func(p *Plan) { p.CutShares = "fin:-1" },
		`CUTS is "fin:0": one of the shares must be over 0`:                                                                                    func(p *Plan) { p.CutShares = "fin:0" },
		"CUTS_PER_SECOND needs RECONNECT=1: clients must reconnect after a disconnect":                                                         func(p *Plan) { p.Reconnect = false },
		"CUTS_PER_SECOND is 4, but SECONDS leaves 0s for cuts":                                                                                 func(p *Plan) { p.Seconds = 20 },
		"CUTS_PER_SECOND is 400 for 600 streams, each of which is away or without a new message for about 4 s after a cut: write at most 150,": func(p *Plan) { p.CutsPerSecond = 400 },
		"CUTS_PER_SECOND is 2000: it must be a number of cuts per second, up to 1000":                                                          func(p *Plan) { p.CutsPerSecond = 2000 },
		"ALLOW_ANNOUNCED_GAPS is for messages that the run publishes":                                                                          func(p *Plan) { p.AllowGaps = true },
	} {
		p := cut()
		change(&p)
		if err := p.Check(); want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, want)
		}
	}
}

// Only the suite that cuts has the settings for it.
func TestSoakHasNoCutSettings(t *testing.T) {
	t.Parallel()
	names := func(suite string) (out []string) {
		p := Default()
		for _, s := range ForSuite(suite, p.Settings()) {
			out = append(out, s.Name)
		}
		return out
	}
	require.NotContains(t, names(""), "CUTS_PER_SECOND")
	require.Contains(t, names(""), "SECONDS")
	require.Contains(t, names("resume"), "CUTS_PER_SECOND")
}

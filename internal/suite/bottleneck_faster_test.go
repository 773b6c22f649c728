package suite

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWhyAMedianFallsUnderLoad(t *testing.T) {
	t.Parallel()
	at := func(rate, median float64, edit func(*Machine)) StageResult {
		st := stageAt(rate, func(st *StageResult) {
			st.Requests = NewRequests()
			for range 100 {
				st.OK.Record(time.Duration(median * float64(time.Millisecond)))
			}
		})
		st.Machine.Usage.PerRequest, st.Machine.Usage.Runs, st.Machine.Usage.Each = true, 6, 300e-6
		if edit != nil {
			edit(&st.Machine)
		}
		return st
	}
	says := func(stages ...StageResult) string {
		var levels []Level
		for _, st := range stages {
			levels = append(levels, level(st.Rate, nil))
		}
		facts := fasterUnderLoad(stages, levels, limits)
		if len(facts) == 0 {
			return ""
		}
		require.Equal(t, "p50 under load", facts[0].Name)
		return facts[0].Value
	}
	require.Empty(t, says())
	require.Empty(t, says(at(20, .5, nil)))
	require.Empty(t, says(at(20, .5, nil), at(100, .6, nil)), "it rises")
	require.Empty(t, says(at(20, .5, nil), at(100, .46, nil)), "hardly")
	require.Empty(t, says(at(100, .5, nil), at(20, .3, nil)), "in the other order it rises")
	few := at(20, .5, nil)
	few.Requests = NewRequests()
	few.OK.Record(time.Second)
	require.Empty(t, says(few, at(100, .2, nil)), "one answer has no median")
	for name, c := range map[string]struct {
		low, fast func(*Machine)
		want      string
	}{
		"cores sleep": {
			func(m *Machine) { m.ServiceBusy = .05 }, func(m *Machine) { m.ServiceBusy = .75 },
			"it falls from 0.50 ms at 20/s to 0.20 ms at 1,000/s: cores were idle for 95 % of the time and then 25 %, and an idle core has to wake up for an answer",
		},
		"connections stay": {
			func(m *Machine) { m.Usage.Accepts = .5 }, func(m *Machine) { m.Usage.Accepts = .001 },
			": 0.50 connections were made for each request and then 0.00",
		},
		"wake-ups are shared": {
			func(m *Machine) { m.Usage.Runs = 6 }, func(m *Machine) { m.Usage.Runs = 2 },
			": threads of backend and nginx were scheduled 6.0 times for each request and then 2.0, as a thread that wakes up handles several requests",
		},
		"caches are warm": {
			func(m *Machine) { m.Usage.Each = 500e-6 }, func(m *Machine) { m.Usage.Each = 100e-6 },
			": backend and nginx used 500 µs of CPU for each answer and then 100, as more answers share",
		},
		"nothing of it": {nil, nil, ": neither idle cores nor new connections, wake-ups or CPU of an answer differ enough to explain it"},
		"nobody knows": {
			func(m *Machine) { m.Usage, m.Apart = Usage{}, false }, nil,
			": the cause is not known: no samples cover it",
		},
	} {
		require.Contains(t, says(at(20, .5, c.low), at(200, .4, nil), at(1000, .2, c.fast)), c.want, name)
	}
}

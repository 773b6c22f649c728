package verdict

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/shard"
)

func TestSaturatedGenerator(t *testing.T) {
	t.Parallel()
	late := func(m *shard.Merged) {
		m.Plan.MaxLate = 0
		m.Connections.Edit(0).Late = 1
	}
	cases := []struct {
		name      string
		edit      func(m *shard.Merged)
		want      Outcome
		saturated bool
	}{
		{"the generator was on time, and a noop was late", late, Fail, false},
		{"the generator stalled, and no noop was late", func(m *shard.Merged) {
			m.Runners[1].StallMaxUS = 8_000_000
		}, Pass, true},
		{"the generator stalled, and a noop was late", func(m *shard.Merged) {
			late(m)
			m.Runners[1].StallMaxUS = 8_000_000
		}, Invalid, true},
		{"the generator waited for a core in short periods, and a noop was late", func(m *shard.Merged) {
			late(m)
			m.Runners[0].RunDelaySeconds = 3600 // of the 2 × 3600 s of both runners
		}, Fail, true},
		{"the generator waited for a core, but used one for longer", func(m *shard.Merged) {
			m.Runners[0].RunDelaySeconds, m.Runners[0].CPUSeconds = 3600, 3700
		}, Pass, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m, server := cleanRun()
			c.edit(m)
			v := requireOutcome(t, c.want, judgeSoak(m, server, Evidence{}))
			require.Equal(t, c.saturated, v.Generator.Saturated)
			if c.saturated {
				require.Regexp(t, `times may be up to .* too long`, v.Warnings[len(v.Warnings)-1])
			} else {
				require.Empty(t, v.Warnings)
			}
		})
	}
}

// The reason of a generator that waited for cores names the wait, not its stall.
func TestExceededGeneratorLimitIsNamed(t *testing.T) {
	t.Parallel()
	m, server := cleanRun()
	m.Runners[0].RunDelaySeconds, m.Runners[0].StallMaxUS = 1800, 6000
	v := judgeSoak(m, server, Evidence{})
	c := check(t, v, "load generator on time")
	require.Equal(t, "stall under 500 ms, CPU wait under 5 % or below CPU time", c.Limit)
	require.Contains(t, c.Actual, "runner threads waited 1800.0 s (25 % of the time) for a CPU that other processes used, and ran for ")
	require.NotContains(t, c.Actual, "stalled")
	require.Contains(t, v.Warnings[0], c.Actual)
}

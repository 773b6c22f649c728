package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/plan"
)

func TestMachinesWithAPriceAreKeptWithIt(t *testing.T) {
	t.Parallel()
	s := newSession(Config{Local: plan.Local{Machines: "us-east-1,c5.large=2,gp3=50"}})
	require.NoError(t, s.rate())
	require.Equal(t, map[string]int{"c5.large": 2}, s.seen.Rate.Hosts)
	require.Positive(t, s.seen.Rate.PerHour)

	s = newSession(Config{})
	require.NoError(t, s.rate())
	require.Nil(t, s.seen.Rate)
	for machines, want := range map[string]string{"two of them": "MACHINES: ", "us-east-1,c9x.large=1": "no price known for c9x.large"} {
		require.ErrorContains(t, newSession(Config{Local: plan.Local{Machines: machines}}).rate(), want)
	}
}

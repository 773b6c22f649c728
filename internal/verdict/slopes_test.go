package verdict

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/shard"
)

func TestMemorySlopeHasALimit(t *testing.T) {
	t.Parallel()
	const start = 1_700_000_000
	for name, c := range map[string]struct {
		limit, grows float64 // MiB per hour
		windowS      float64
		want         Outcome
		says         string
	}{
		"without a limit":    {0, 90, 300, Pass, ""},
		"flat":               {5, 0, 300, Pass, ""},
		"below the limit":    {100, 90, 300, Pass, ""},
		"above the limit":    {5, 90, 300, Fail, "the memory of the target grew by +90.0 MiB per hour (95 % interval: +90.0 MiB to +90.0 MiB); the limit is 5.0 MiB (MAX_MEMORY_SLOPE)"},
		"too few windows":    {5, 90, 1200, Invalid, "MAX_MEMORY_SLOPE needs 10 windows with samples of it; shorten WINDOW"},
		"no memory is known": {5, -1, 300, Invalid, "MAX_MEMORY_SLOPE needs 10 windows"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, server := cleanRun()
			m.Plan.MaxMemorySlope, m.Plan.WindowS = c.limit, c.windowS
			var samples []resources.Sample
			for at := range int64(720) { // an hour
				m.Series = append(m.Series, shard.Bucket{Unix: start + 5*at, Open: 3, Noops: 1})
				if at%60 == 0 && c.grows >= 0 {
					samples = append(samples, resources.Sample{Unix: start + 5*at, BackendRSS: 100<<20 + uint64(c.grows*float64(at)/720*(1<<20))})
				}
			}
			v := judgeSoak(m, server, Evidence{Samples: samples})
			require.Equal(t, c.want, v.Verdict, v.Reasons)
			if c.says != "" {
				require.Contains(t, v.Reasons[0], c.says)
			}
		})
	}
}

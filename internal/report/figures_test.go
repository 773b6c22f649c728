package report

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// Runners detect a clock difference only if the latency of the first message is negative or longer than a second.
func TestLastSubscriberStatesDifferentClocks(t *testing.T) {
	t.Parallel()
	for above, isRelative := range map[string]bool{verdict.AboveSend: false, verdict.AboveFastest: true} {
		v := &verdict.Verdict{}
		v.LatencyMS = &verdict.Latency{Above: above}
		v.Messages.Received, v.Messages.LastSubscriberMS = 1, &verdict.Quantiles{P50: 800}
		var f facts
		f.latency(v)
		last := f.Rows[len(f.Rows)-1]
		require.Equal(t, "last subscriber", last[0].Text)
		if text := "it may include a clock difference of up to 1 s"; isRelative {
			require.Contains(t, last[1].Text, text)
		} else {
			require.NotContains(t, last[1].Text, text)
		}
	}
}

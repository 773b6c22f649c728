package sseclient

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// The delay is at least the reconnection time (section 9.2.3, "reestablish the connection").
func TestDelayGrowsAndSpreads(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for _, tt := range []struct {
		base       time.Duration
		failures   int
		retryAfter time.Duration
		minDelay   time.Duration
		maxDelay   time.Duration
	}{
		{s, 0, 0, s, 2 * s},
		{s, 1, 0, s, 2 * s},
		{s, 3, 0, 4 * s, 8 * s},
		{s, 60, 0, 30 * s, 60 * s},
		{time.Hour, 60, 0, time.Hour, 2 * time.Hour},
		{0, 0, 0, 0, 0},
		{0, 1, 0, 50 * time.Millisecond, 100 * time.Millisecond},
		{s, 1, 20 * s, 20 * s, 30 * s},
	} {
		lowest, highest := time.Duration(1<<62), time.Duration(0)
		for range 1000 {
			d := delay(tt.base, tt.failures, tt.retryAfter)
			lowest, highest = min(lowest, d), max(highest, d)
		}
		assert.GreaterOrEqual(t, lowest, tt.minDelay, tt)
		assert.LessOrEqual(t, highest, tt.maxDelay, tt)
		assert.Greater(t, highest-lowest, (tt.maxDelay-tt.minDelay)*9/10-1, "the delays of %v must be spread", tt)
	}
}

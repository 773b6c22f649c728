package ledger

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A client that is away when the run ends, since the service had ended its stream as planned, is not owed what fell due
// meanwhile: it did not come back for it. What fell due while the stream was open, it is owed.
func TestWhatFallsDueBehindTheLastStreamIsNotOwed(t *testing.T) {
	t.Parallel()
	const tenth = time.Second / 10
	for _, c := range []struct {
		name             string
		last             uint64
		ended, requested Instant
		dialed           Instant // 0: not yet
		missed, hidden   uint64
	}{
		{"away for a moment", 5, 60 * tenth, 62 * tenth, 0, 0, 0},
		{"away while one fell due", 5, 60 * tenth, 72 * tenth, 0, 0, 0},
		{"away while many fell due", 5, 60 * tenth, 124 * tenth, 0, 0, 0},
		{"just coming back", 5, 60 * tenth, 72 * tenth, 71 * tenth, 0, 0},
		{"asking to come back, without an answer", 5, 60 * tenth, 124 * tenth, 70 * tenth, 6, 0},
		{"silent, then away", 5, 92 * tenth, 102 * tenth, 0, 3, 0},
		{"one was due at the end", 5, 65 * tenth, 72 * tenth, 0, 0, 1},
	} {
		for _, numbered := range []uint64{0, 1} {
			l := New("s0", &Config{Counting: Noops, Interval: time.Second, Late: time.Second, Lifetime: 2 * time.Second, ClientEnds: true})
			l.Connecting(tenth)
			l.Opened(5 * tenth)
			for n := uint64(1); n <= c.last; n++ {
				l.Noop(Noop{At: Instant(n)*time.Second + 5*tenth, Number: n * numbered, Intact: true})
			}
			l.Closed(c.ended, "server", true, true)
			if c.dialed > 0 {
				l.Connecting(c.dialed)
			}
			l.CloseRequested(c.requested)
			r := l.Record()
			require.Equal(t, Completed, r.State, c.name)
			require.Equal(t, c.missed, r.Missed(), "%s, numbered %d", c.name, numbered)
			require.Equal(t, c.hidden+1-numbered, r.Hidden, "%s, numbered %d: the clock does not know of the last outage", c.name, numbered)
		}
	}
}

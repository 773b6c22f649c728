package feed

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A client that joins late receives the last messages again. Other clients do not expect them, and they are not copies.
func TestHistoryAtTheStart(t *testing.T) {
	t.Parallel()
	b := newBroadcast(1, 0, 0, 0)
	connected := func(i int) int { return 1 - i/2 }
	b.interval = time.Second
	for n := 1; n <= 50; n++ {
		b.send(n, connected)
	}
	b.deliver(0)
	b.ledgers[2].Closed(b.now, "server", true, true) // without any message
	b.now += time.Minute
	b.open(2)
	for _, n := range []int{1001, 47, 48, 49, 50} { // a greeting, and the history
		b.perform(2, step{message: n})
	}
	for n := 51; n <= 60; n++ {
		b.now += time.Second
		b.send(n, single)
	}
	records, f := b.end()
	require.Len(t, f.Messages, 61)
	live := 0
	for _, m := range f.Messages {
		if m.Live {
			live++
		}
	}
	require.Equal(t, 59, live, "the greeting and the first message must not be expected")
	c := correct(f, 0, records[2])
	require.Zero(t, c.Duplicated+c.Reordered)
	require.Empty(t, c.Holes)
}

// A client that reconnects receives a history for three seconds. It had received most of these messages before the
// disconnect.
func TestLongHistoryAfterReconnect(t *testing.T) {
	t.Parallel()
	for _, runners := range [][]int{{0, 0, 0}, {0, 1, 2}, {0, 0, 1}} {
		b := newBroadcast(1, runners...)
		connected := func(i int) int { return 1 - i/2 }
		for n := 1; n <= 50; n++ {
			b.send(n, single)
		}
		b.deliver(0)
		b.ledgers[2].Closed(b.now, "server", true, true)
		for n := 51; n <= 60; n++ {
			b.send(n, connected)
		}
		b.open(2)
		for n := 61; n <= 90; n++ { // these messages wait until the history has arrived
			b.send(n, connected)
			b.perform(2, step{message: n - 30})
		}
		for n := 61; n <= 90; n++ {
			b.perform(2, step{message: n})
		}
		for n := 91; n <= 120; n++ {
			b.send(n, single)
		}
		records, f := b.end()
		require.Len(t, f.Messages, 120)
		for i, r := range records {
			c := correct(f, b.runner[i], r)
			require.Zero(t, c.Duplicated+c.Reordered+c.Corrupted, "runners %v, stream %d: %+v", runners, i, c)
			require.Zero(t, missing(c), "runners %v, stream %d", runners, i)
			require.Equal(t, uint64(120), c.Received, "runners %v, stream %d", runners, i)
		}
	}
}

package feed

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

// A broadcast sends messages to all streams, each of which may lag by some messages.
type broadcast struct {
	*simulation
	random   *rand.Rand
	queues   [][]step
	interval time.Duration
	lag      int // messages by which a stream may lag
}

func newBroadcast(seed uint64, runners ...int) *broadcast {
	b := &broadcast{simulation: newSimulation(runners), random: rand.New(rand.NewPCG(seed, 7)), queues: make([][]step, len(runners)), interval: 100 * time.Millisecond, lag: 3} // #nosec G404 -- no secret
	for i := range runners {
		b.open(i)
	}
	return b
}

// send sends a message copies(i) times to each stream i.
func (b *broadcast) send(message int, copies func(i int) int) {
	for i := range b.queues {
		for range copies(i) {
			b.queues[i] = append(b.queues[i], step{message: message})
		}
	}
	b.now += b.interval
	b.deliver(b.lag)
}

// deliver delivers messages to streams in random order, but in their order on each stream, until at most maxQueued wait
// for each stream.
func (b *broadcast) deliver(maxQueued int) {
	for {
		var candidates []int
		for i, q := range b.queues {
			if len(q) > maxQueued || len(q) > 0 && b.random.IntN(3) == 0 {
				candidates = append(candidates, i)
			}
		}
		if len(candidates) == 0 {
			return
		}
		i := candidates[b.random.IntN(len(candidates))]
		b.perform(i, b.queues[i][0])
		b.queues[i] = b.queues[i][1:]
	}
}

func (b *broadcast) reconnect(i int) {
	b.ledgers[i].Closed(b.now, "server", true, true)
	b.open(i)
}

func (b *broadcast) end() ([]*ledger.Record, *Feed) {
	b.deliver(0)
	return b.simulation.end()
}

// requireNoWrongMessage ends all streams, and requires that none received a duplicated, reordered or corrupted message.
// Messages may be missed.
func (b *broadcast) requireNoWrongMessage(t *testing.T, format string, args ...any) {
	t.Helper()
	records, f := b.end()
	for i, r := range records {
		c := correct(f, b.runner[i], r)
		require.Zerof(t, c.Duplicated+c.Reordered+c.Corrupted, "stream %d, "+format, append([]any{i}, args...)...)
	}
}

func single(int) int { return 1 }

// prices returns a random walk of prices: a price often stays the same for several messages, and may return later.
func prices(random *rand.Rand, count int) []int {
	out := make([]int, count)
	price := 1000
	for i := range out {
		if random.IntN(3) > 0 {
			price += random.IntN(21) - 10
		}
		out[i] = price
	}
	return out
}

func TestRepeatedContentWithoutFaults(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		b := newBroadcast(seed, 0, 0, 1, 1, 2)
		for _, p := range prices(b.random, 300) {
			b.send(p, single)
		}
		records, f := b.end()
		require.Len(t, f.Messages, 300, "seed %d", seed)
		for i, r := range records {
			c := correct(f, b.runner[i], r)
			require.Equal(t, [5]uint64{300, 0, 0, 1, 300}, [5]uint64{c.Received, c.Duplicated, c.Reordered, c.First, c.Last}, "seed %d, stream %d", seed, i)
			require.Empty(t, c.Holes)
		}
	}
}

// One message is lost or duplicated on one stream. If its neighbors have the same content, the fault may be attributed
// to one of them.
func TestRepeatedContentWithOneFault(t *testing.T) {
	t.Parallel()
	exact := 0
	const runs = 300
	for seed := range uint64(runs) {
		b := newBroadcast(seed, 0, 0, 1, 1, 2)
		b.lag = 0
		at, faulty, times := 50+b.random.IntN(200), b.random.IntN(5), 2*b.random.IntN(2)
		for n, p := range prices(b.random, 300) {
			b.send(p, func(i int) int {
				if n == at && i == faulty {
					return times
				}
				return 1
			})
		}
		records, f := b.end()
		good, faults := len(f.Messages) == 300, uint64(0)
		for i, r := range records {
			c := correct(f, b.runner[i], r)
			lost, duplicated := uint64(0), uint64(0)
			if i == faulty {
				lost, duplicated = uint64(1-times/2), uint64(times/2) // #nosec G115 -- 0 or 1
			}
			faults += missing(c) + c.Duplicated
			good = good && missing(c) == lost && c.Duplicated == duplicated && c.Reordered == 0
		}
		require.NotZero(t, faults, "seed %d: the fault was not found", seed)
		if good {
			exact++
		} else {
			t.Logf("seed %d: message %d arrived on stream %d %d times: not exact", seed, at+1, faulty, times)
		}
	}
	t.Logf("%d of %d runs are exact", exact, runs)
	require.GreaterOrEqual(t, exact, runs*97/100)
}

// Three messages with unique content are lost on one stream or, if inverted, on all others. The other messages have
// contents that occur several times. Streams lag by up to three messages.
func TestRepeatedContentAfterSeveralLosses(t *testing.T) {
	t.Parallel()
	const runs, count, lost = 300, 300, 3
	exact, undecided := 0, 0
	for seed := range uint64(runs) {
		b := newBroadcast(seed, 0, 0, 0, 1, 1)
		b.interval = 4 * time.Millisecond
		at, faulty, inverted := 50+b.random.IntN(200), b.random.IntN(5), b.random.IntN(4) == 0
		contents := prices(b.random, count)
		for n := at; n <= at+lost; n++ {
			contents[n] = 100_000 + n
		}
		for n, p := range contents {
			b.send(p, func(i int) int {
				if n >= at && n < at+lost && (i == faulty) != inverted {
					return 0
				}
				return 1
			})
		}
		records, f := b.end()
		good, faults, uncertain := len(f.Messages) == count, uint64(0), false
		for i, r := range records {
			corrected, want := f.Correct(b.runner[i], r), uint64(0)
			if (i == faulty) != inverted {
				want = lost
			}
			uncertain = uncertain || corrected.Uncertain // the verdict is then invalid
			c := corrected.Record
			found := [4]uint64{missing(c), c.Duplicated, c.Reordered, c.Corrupted}
			good, faults = good && found == [4]uint64{want}, faults+found[0]+found[1]+found[2]+found[3]
		}
		if faults == 0 {
			require.True(t, uncertain, "seed %d: no fault was found", seed)
			undecided++
		}
		if good {
			exact++
		} else {
			t.Logf("seed %d: %d messages from %d on were lost on stream %d (inverted: %t): not exact", seed, lost, at+1, faulty, inverted)
		}
	}
	t.Logf("%d of %d runs are exact", exact, runs)
	require.GreaterOrEqual(t, exact, runs*9/10)
	require.LessOrEqual(t, undecided, runs*3/100)
}

// Streams join and leave at different messages of a feed with few values. The first message of one runner may have the
// content of the last message of another one.
func TestStreamsOfFewValuesJoinAndLeave(t *testing.T) {
	t.Parallel()
	for _, values := range []int{1, 10, 100, 1000} {
		for seed := range uint64(100) {
			b := newBroadcast(seed, 0, 0, 1, 1, 2)
			b.lag, b.interval = 0, 50*time.Millisecond
			firsts, ends := make([]int, len(b.queues)), make([]int, len(b.queues)) // of each stream: first message, and message after the last
			for i := range firsts {
				firsts[i], ends[i] = b.random.IntN(8), 200-b.random.IntN(8)
			}
			for n := range 200 {
				for i := range firsts {
					if firsts[i] == n {
						b.reconnect(i)
					}
				}
				b.send(1+b.random.IntN(values), func(i int) int {
					if n < firsts[i] || n >= ends[i] {
						return 0
					}
					return 1
				})
			}
			b.requireNoWrongMessage(t, "%d values, seed %d", values, seed)
		}
	}
}

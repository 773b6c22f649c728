package feed

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

func (w *simulation) receive(stream int, contents ...int) {
	for _, content := range contents {
		w.perform(stream, step{message: content})
	}
}

// The service restarts, and no stream resumes. Each of the two runners receives a message that the other one lacks.
func TestMessagesOfOneRunnerInAnOutageOfAnother(t *testing.T) {
	t.Parallel()
	for _, runners := range [][]int{{0, 1, 1}, {1, 0, 0}, {0, 0, 0}} {
		w := newOpenSimulation(runners)
		for content := 1; content <= 5; content++ {
			for stream := range runners {
				w.receive(stream, content)
			}
		}
		w.perform(1, step{})
		w.perform(2, step{})
		w.receive(0, 6)
		w.now += 100 * time.Millisecond
		w.receive(1, 8)
		w.receive(2, 8)
		w.perform(0, step{})
		w.now += 2 * time.Second
		for content := 9; content <= 15; content++ {
			for stream := range runners {
				w.receive(stream, content)
			}
		}
		records, f := w.end()
		require.Len(t, f.Messages, 14, "runners %v", runners)
		for stream, r := range records {
			c := correct(f, runners[stream], r)
			require.Zero(t, c.Corrupted+c.Duplicated+c.Reordered, "runners %v, stream %d: %v", runners, stream, c.Findings)
		}
		c := correct(f, runners[0], records[0])
		require.Equal(t, []ledger.Range{{7, 7}}, c.Holes, "runners %v", runners)
		require.Equal(t, uint64(6), c.Spans[0].Last, "runners %v", runners)
	}
}

// Stream 0 receives B before A. At that time the log does not have B, but an earlier message with the same content.
func TestSwapOfRepeatedContent(t *testing.T) {
	t.Parallel()
	for _, runners := range [][]int{{0, 0, 0, 0}, {0, 0, 1, 1}} {
		w := newOpenSimulation(runners)
		all := func(contents ...int) {
			for _, content := range contents {
				for _, stream := range []int{3, 2, 1, 0} {
					w.receive(stream, content)
				}
			}
		}
		all(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 3, 13, 14, 2, 15)
		const a, b = 20, 5
		w.receive(1, a)
		w.receive(0, b, a)
		w.receive(1, b)
		w.receive(2, a, b)
		w.receive(3, a, b)
		all(6, 16, 17, 18, 19)
		records, f := w.end()
		require.Len(t, f.Messages, 24, "runners %v", runners)
		for stream, r := range records {
			c := correct(f, runners[stream], r)
			want := uint64(0)
			if stream == 0 {
				want = 1
			}
			require.Equal(t, want, c.Reordered, "runners %v, stream %d", runners, stream)
			require.Zero(t, c.Duplicated+c.Corrupted+missing(c), "runners %v, stream %d: %v", runners, stream, c.Findings)
		}
	}
}

// A message with unique content shows the position of a stream, even if the stream loses many messages.
func TestUniqueContentShowsThePlace(t *testing.T) {
	t.Parallel()
	w := newOpenSimulation([]int{0, 0, 0})
	for n := range 60 {
		content := 100 + n
		if n%2 == 0 {
			content = 1 + n/2%3
		}
		for stream := range 3 {
			if stream > 0 || n == 0 || n%4 != 0 { // stream 0 loses every second message with repeated content
				w.receive(stream, content)
			}
		}
	}
	records, f := w.end()
	require.Len(t, f.Messages, 60)
	certain := f.Correct(0, records[0]).CertainFrom
	require.Less(t, certain[0], 3050*time.Millisecond, "the second message has unique content, so the position must be certain from then on")
}

// The greetings of streams that join are the last entries of the log, and no other stream receives them.
func TestGreetingsOfStreamsThatJoin(t *testing.T) {
	t.Parallel()
	runners := []int{0, 0, 0}
	w := newSimulation(runners)
	for n := range 60 {
		for stream := range runners {
			switch {
			case n == 3*stream:
				w.open(stream)
				w.receive(stream, 1000, 1001+stream)
			case n > 3*stream:
				w.receive(stream, 1+n%2)
			}
		}
		w.now += 100 * time.Millisecond
	}
	records, f := w.end()
	require.Greater(t, len(f.Messages), 59)
	for stream, r := range records {
		c := correct(f, 0, r)
		require.Zero(t, c.Duplicated+c.Reordered+c.Corrupted, "stream %d: %v", stream, c.Findings)
		if c.Deviations != nil {
			require.Less(t, len(c.Deviations.UnknownAt), 20, "stream %d", stream)
		}
	}
}

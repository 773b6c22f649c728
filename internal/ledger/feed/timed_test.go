package feed

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

// A timedFeed sends messages with random content for ten seconds. Its streams open in the first two seconds, and end in
// the last two.
type timedFeed struct {
	contents int
	interval time.Duration
	spread   time.Duration // maximum time by which a message arrives later on one stream than on another one
	lost     func(stream, message int) bool
	changed  func(stream, message int) bool
}

type timedStep struct {
	at      ledger.Instant
	stream  int
	content int // positive: the stream receives it
}

// The steps without content.
const (
	opens = 0
	ends  = -1
)

func (f *timedFeed) run(seed uint64, runners ...int) *simulation {
	const length, margin = 10 * time.Second, 2 * time.Second
	random := rand.New(rand.NewPCG(seed, 7)) // #nosec G404 -- no secret
	upTo := func(limit time.Duration) time.Duration { return time.Duration(random.Int64N(int64(limit))) }
	contents := make([]int, length/f.interval)
	for n := range contents {
		contents[n] = 1 + random.IntN(f.contents)
	}
	var steps []timedStep
	for stream := range runners {
		from, to := upTo(margin), length-upTo(margin)
		steps = append(steps, timedStep{from, stream, opens}, timedStep{to, stream, ends})
		last := from
		for n, content := range contents {
			sent := time.Duration(n) * f.interval
			if sent < from || f.lost != nil && f.lost(stream, n) {
				continue
			}
			if last = max(sent+time.Millisecond+upTo(f.spread), last+1); last >= to {
				break
			}
			if f.changed != nil && f.changed(stream, n) {
				content = f.contents + 1
			}
			steps = append(steps, timedStep{last, stream, content})
		}
	}
	slices.SortStableFunc(steps, func(a, b timedStep) int { return cmp.Compare(a.at, b.at) })
	w := newSimulation(runners)
	for _, s := range steps {
		l, at := w.ledgers[s.stream], s.at+time.Second
		switch s.content {
		case opens:
			l.Connecting(at)
			l.Opened(at)
		case ends:
			l.Closed(at, ledger.ReasonClient, false, false)
		default:
			l.DeliveredUnnumbered(ledger.Fingerprint{At: at, Sum: uint64(s.content)}) // #nosec G115 -- positive
		}
	}
	return w
}

// faults returns the number of lost messages, and the number of other faults. A message counts as lost on a stream if
// it arrived on other streams while that stream was open and had a certain position.
func faults(w *simulation) (lost, others uint64) {
	records, f := w.end()
	for i, r := range records {
		log := w.runner[i]
		corrected := f.Correct(log, r)
		certain, c := corrected.CertainFrom, corrected.Record
		others += c.Duplicated + c.Reordered + c.Corrupted
		for n := range f.Messages {
			at := f.ArrivedAt(n, log)
			if f.Messages[n].Live && !c.HasReceived(uint64(n)+1) && at >= certain[0] && wasOpen(c, at, time.Second) { // #nosec G115 -- positive
				lost++
			}
		}
	}
	return lost, others
}

// A loss long after the start of a stream is found. Exceptions: all messages have the same content, or the position of
// the stream was uncertain until then. If most messages are uncertain, the verdict is invalid.
func TestTimedFeedWithOneLoss(t *testing.T) {
	t.Parallel()
	const runs, stream, message, interval = 30, 1, 60, 100 * time.Millisecond
	for _, contents := range []int{2, 3, 5, 20} {
		exact, uncertain := 0, 0
		for seed := range uint64(runs) {
			feed := timedFeed{contents: contents, interval: interval, spread: 5 * time.Millisecond}
			feed.lost = func(s, m int) bool { return s == stream && m == message }
			w := feed.run(seed, 0, 0, 0, 1, 1, 2)
			lost, others := faults(w)
			records, f := w.end()
			switch {
			case lost == 1 && others == 0:
				exact++
			case lost+others > 0:
			default:
				require.True(t, f.Correct(0, records[stream]).Uncertain, "%d contents, seed %d: no fault was found", contents, seed)
				uncertain++
			}
		}
		t.Logf("%d contents: %d of %d runs are exact, %d uncertain", contents, exact, runs, uncertain)
		require.LessOrEqual(t, uncertain, runs/10, "%d contents", contents)
		if contents >= 5 {
			require.GreaterOrEqual(t, exact, runs*3/4, "%d contents", contents)
		}
	}
}

// A message that arrives with different content on one stream is found although content repeats, unless the position of
// the stream is uncertain.
func TestTimedFeedWithOneChange(t *testing.T) {
	t.Parallel()
	const runs, stream, message, interval = 30, 1, 60, 100 * time.Millisecond
	exact := 0
	for seed := range uint64(runs) {
		feed := timedFeed{contents: 20, interval: interval, spread: 5 * time.Millisecond}
		feed.changed = func(s, m int) bool { return s == stream && m == message }
		w := feed.run(seed, 0, 0, 0, 1, 1, 2)
		lost, others := faults(w)
		if lost == 0 && others == 1 {
			exact++
		}
		if lost+others == 0 {
			records, f := w.end()
			require.True(t, f.Correct(0, records[stream]).Uncertain, "seed %d: no fault was found", seed)
		}
	}
	require.GreaterOrEqual(t, exact, runs*2/3)
}

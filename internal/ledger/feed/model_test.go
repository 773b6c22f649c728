package feed

import (
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

var cases = flag.Int("feed.cases", 100_000, "number of cases to compare with the model")

// TestMain removes the margin at the ends of streams, because in the model a stream receives all messages that are sent
// while it is open.
func TestMain(m *testing.M) {
	edgeTime = 0
	m.Run()
}

// A step is one step of a client: a message arrives, or the client reconnects.
type step struct {
	message int  // 0: the stream ends, and a new one opens
	resumed bool // the new stream resumes
}

// A script contains the steps of one client, and the counts that the model expects.
type script struct {
	name       string
	steps      []step
	duplicated uint64
	reordered  uint64
}

func messages(numbers ...int) (steps []step) {
	for _, n := range numbers {
		steps = append(steps, step{message: n})
	}
	return steps
}

// scripts lists how one stream may receive the messages 1 to 4. Each stream receives the first and the last one, unless
// it joins later.
var scripts = []script{
	{name: "all", steps: messages(1, 2, 3, 4)},
	{name: "lost 2", steps: messages(1, 3, 4)},
	{name: "lost 3", steps: messages(1, 2, 4)},
	{name: "lost 2 and 3", steps: messages(1, 4)},
	{name: "duplicated 1", steps: messages(1, 1, 2, 3, 4), duplicated: 1},
	{name: "duplicated 2", steps: messages(1, 2, 2, 3, 4), duplicated: 1},
	{name: "2 again after 3", steps: messages(1, 2, 3, 2, 4), duplicated: 1},
	{name: "swapped", steps: messages(1, 3, 2, 4), reordered: 1},
	{name: "joined before 2", steps: messages(2, 3, 4)},
	{name: "joined before 3", steps: messages(3, 4)},
	{name: "reconnected without 2", steps: slices.Concat(messages(1), []step{{}}, messages(3, 4))},
	{name: "reconnected in time", steps: slices.Concat(messages(1, 2), []step{{}}, messages(3, 4))},
	{name: "resumed", steps: slices.Concat(messages(1), []step{{resumed: true}}, messages(2, 3, 4))},
	{name: "resumed without 2", steps: slices.Concat(messages(1), []step{{resumed: true}}, messages(3, 4))},
}

func (s *script) received() (numbers []int) {
	for _, step := range s.steps {
		if step.message > 0 && !slices.Contains(numbers, step.message) {
			numbers = append(numbers, step.message)
		}
	}
	return numbers
}

// A simulation passes the steps of clients to ledgers of one or more runners.
type simulation struct {
	logs    []*ledger.Log
	ledgers []*ledger.Ledger
	runner  []int // of each ledger
	now     ledger.Instant
}

func config() *ledger.Config {
	return &ledger.Config{Interval: time.Second, Counting: ledger.Numbered, Published: true, AnyOrder: true, IgnoresSilence: true, Resumes: true}
}

func newOpenSimulation(runners []int) *simulation {
	w := newSimulation(runners)
	for i := range runners {
		w.open(i)
	}
	w.now += 2 * time.Second
	return w
}

func newSimulation(runners []int) *simulation {
	w := &simulation{runner: runners, now: time.Second}
	cfg := config()
	for i, r := range runners {
		for len(w.logs) <= r {
			w.logs = append(w.logs, ledger.NewLog())
		}
		l := ledger.New(fmt.Sprint(i), cfg)
		l.UseLog(w.logs[r])
		w.ledgers = append(w.ledgers, l)
	}
	return w
}

func (w *simulation) open(i int) {
	w.ledgers[i].Connecting(w.now)
	w.ledgers[i].Opened(w.now)
}

func (w *simulation) perform(i int, s step) {
	w.now += 5 * time.Millisecond
	if s.message > 0 {
		w.ledgers[i].DeliveredUnnumbered(ledger.Fingerprint{At: w.now, Sum: uint64(s.message)}) // #nosec G115 -- positive
		return
	}
	if s.resumed {
		w.ledgers[i].IDReceived()
	}
	w.ledgers[i].Closed(w.now, "server", true, true)
	w.open(i)
}

func (w *simulation) end() ([]*ledger.Record, *Feed) {
	records := make([]*ledger.Record, len(w.ledgers))
	for i, l := range w.ledgers {
		r := l.Record()
		records[i] = &r
	}
	var logs []*Log
	for _, l := range w.logs {
		entries, extras, _ := l.Entries()
		logs = append(logs, &Log{Entries: entries, Extras: extras})
	}
	var all Records = func(yield func(int, *ledger.Record) bool) {
		for i, r := range records {
			if !yield(w.runner[i], r) {
				return
			}
		}
	}
	return records, Align(logs, false, false, all)
}

func correct(f *Feed, log int, r *ledger.Record) *ledger.Record {
	return f.Correct(log, r).Record
}

func missing(r *ledger.Record) (n uint64) {
	for _, h := range r.Holes {
		n += h[1] - h[0] + 1
	}
	return n
}

func check(streams []script, runners []int, order []int) error {
	w := newSimulation(runners)
	for i := range streams {
		w.open(i)
	}
	w.now += time.Second
	next := make([]int, len(streams))
	for _, i := range order {
		w.perform(i, streams[i].steps[next[i]])
		next[i]++
	}
	records, f := w.end()
	var known []int // messages that a client received
	complete := false
	for i := range streams {
		received := streams[i].received()
		known = append(known, received...)
		complete = complete || len(received) == 4 && streams[i].reordered == 0
	}
	slices.Sort(known)
	known = slices.Compact(known)
	if len(f.Messages) != len(known) {
		return fmt.Errorf("the feed has %d messages instead of %d", len(f.Messages), len(known))
	}
	for i := range streams {
		if err := streams[i].compare(correct(f, runners[i], records[i]), known, complete); err != nil {
			return fmt.Errorf("stream %d (%s): %w", i, streams[i].name, err)
		}
	}
	return nil
}

// compare compares the record of a client with the model. complete reports whether a client received all messages in
// order, so that their numbers are known.
func (s *script) compare(r *ledger.Record, known []int, complete bool) error {
	received := s.received()
	low, high := slices.Min(received), slices.Max(received)
	var lost uint64
	for _, n := range known {
		if n > low && n < high && !slices.Contains(received, n) {
			lost++
		}
	}
	switch {
	case r.Received != uint64(len(received)):
		return fmt.Errorf("received %d instead of %d", r.Received, len(received))
	case r.Duplicated != s.duplicated:
		return fmt.Errorf("duplicated %d instead of %d", r.Duplicated, s.duplicated)
	case r.Reordered != s.reordered:
		return fmt.Errorf("reordered %d instead of %d", r.Reordered, s.reordered)
	case complete && (r.First != uint64(low) || r.Last != uint64(high)):
		return fmt.Errorf("numbers from %d to %d instead of %d to %d", r.First, r.Last, low, high)
	case complete && missing(r) != lost:
		return fmt.Errorf("missing %d instead of %d", missing(r), lost)
	}
	return nil
}

// decidable reports whether a majority of the streams shows which messages were sent. If a stream received two messages
// in a different order, or one of them again later, the streams that received both once and in order decide.
func decidable(streams []script) bool {
	faulty, correct := 0, 0
	for i := range streams {
		received := streams[i].received()
		switch {
		case streams[i].reordered > 0 || streams[i].name == "2 again after 3":
			faulty++
		case slices.Contains(received, 2) && slices.Contains(received, 3) && streams[i].duplicated == 0:
			correct++
		}
	}
	return (faulty == 0 || 2*correct > len(streams)) && !hasRepeat(streams) && !hasChange(streams)
}

// hasChange reports whether a stream may have received a changed message: no other stream received that message, and
// two streams received a message that this stream lacks.
func hasChange(streams []script) bool {
	count := map[int]int{}
	for i := range streams {
		for _, n := range streams[i].received() {
			count[n]++
		}
	}
	for i := range streams {
		received := streams[i].received()
		for n := 1; n <= 4; n++ {
			if !slices.Contains(received, n) && count[n] > 1 && slices.ContainsFunc(received, func(m int) bool { return count[m] == 1 }) {
				return true
			}
		}
	}
	return false
}

// hasRepeat reports whether a message may have been sent twice: two streams, or most of them, received it twice.
func hasRepeat(streams []script) bool {
	counts := map[int]int{}
	for i := range streams {
		for at, s := range streams[i].steps {
			if s.message > 0 && slices.Contains(streams[i].steps[:at], s) {
				counts[s.message]++
			}
		}
	}
	for _, n := range counts {
		if 2*n > len(streams) || n > 1 {
			return true
		}
	}
	return false
}

func interleavings(streams []script) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		remaining := make([]int, len(streams))
		total := 0
		for i := range streams {
			remaining[i] = len(streams[i].steps)
			total += remaining[i]
		}
		order := make([]int, 0, total)
		var walk func() bool
		walk = func() bool {
			if len(order) == total {
				return yield(order)
			}
			for i := range remaining {
				if remaining[i] == 0 {
					continue
				}
				remaining[i]--
				order = append(order, i)
				if !walk() {
					return false
				}
				order = order[:len(order)-1]
				remaining[i]++
			}
			return true
		}
		walk()
	}
}

func shuffle(streams []script, random *rand.Rand) (order []int) {
	for i := range streams {
		for range streams[i].steps {
			order = append(order, i)
		}
	}
	random.Shuffle(len(order), func(a, b int) { order[a], order[b] = order[b], order[a] })
	return order
}

func describe(streams []script, runners, order []int) string {
	var names []string
	for i := range streams {
		names = append(names, streams[i].name)
	}
	return fmt.Sprintf("%q on runners %v in the order %v", names, runners, order)
}

// The test tries all decidable pairs of clients in all orders of arrival.
func TestTwoStreamsAgreeWithModel(t *testing.T) {
	t.Parallel()
	count := 0
	for _, a := range scripts {
		for _, b := range scripts {
			streams := []script{a, b}
			if !decidable(streams) {
				continue
			}
			for _, runners := range [][]int{{0, 0}, {0, 1}} {
				for order := range interleavings(streams) {
					count++
					require.NoError(t, check(streams, runners, order), describe(streams, runners, order))
				}
			}
		}
	}
	t.Log(count, "cases")
}

// At the start, two streams lag behind the other stream of their runner.
func TestLaggingStreamsAgreeWithModel(t *testing.T) {
	t.Parallel()
	find := func(name string) script {
		return scripts[slices.IndexFunc(scripts, func(s script) bool { return s.name == name })]
	}
	streams, runners := []script{find("all"), find("joined before 3"), find("duplicated 1"), find("duplicated 2")}, []int{0, 1, 1, 1}
	require.NoError(t, check(streams, runners, []int{1, 0, 3, 2, 2, 0, 1, 3, 0, 3, 2, 3, 2, 3, 0, 2}))
}

// The test tries three and four clients on up to three runners.
func TestStreamsAgreeWithModel(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2)) // #nosec G404 -- no secret
	for count := 0; count < *cases; {
		streams := make([]script, 3+random.IntN(2))
		runners := make([]int, len(streams))
		for i := range streams {
			if streams[i] = scripts[0]; random.IntN(2) > 0 {
				streams[i] = scripts[random.IntN(len(scripts))]
			}
			if i > 0 {
				runners[i] = runners[i-1] + random.IntN(2)
			}
		}
		if !decidable(streams) {
			continue
		}
		for range 10 {
			order := shuffle(streams, random)
			require.NoError(t, check(streams, runners, order), describe(streams, runners, order))
			count++
		}
	}
}

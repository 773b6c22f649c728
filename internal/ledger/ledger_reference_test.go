package ledger

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// shortStream returns a random stream of a few slots, in thousandths of an interval. tight reports whether its jitter
// is so small that the maximum number of undetectable losses is known.
func shortStream(r *rand.Rand) (s *reference, tight bool) {
	s = &reference{late: []int{67, 333, 500}[r.IntN(3)], jitter: 300, latest: 1500, early: 8} // drifts are tried in steps of 2
	numbered := r.IntN(2) == 0
	slots := 3 + r.IntN(7)
	interval := 990 + r.IntN(21)
	firstDue := 5 + r.IntN(1100)
	jitter := r.IntN(301)
	if r.IntN(2) == 0 {
		jitter = r.IntN(20)
	}
	faults := .25 * r.Float64()
	if r.IntN(4) == 0 {
		faults = 0
	} else { // more jitter would look like faults, and hide some
		jitter /= 2
	}
	floor, delayed, number, faulty := 0, 0, 0, 0
	calm, early := true, false
	deliver := func(at int) int {
		at = max(at, floor, delayed)
		floor = at
		n := 0
		if numbered {
			n = number
		}
		s.arrivals = append(s.arrivals, refArrival{at, n})
		return at
	}
	for slot := range slots {
		at := firstDue + slot*interval
		if jitter > 0 {
			at += r.IntN(jitter)
		}
		number++
		if at > delayed && !calm { // delayed noops arrive together; the next delay is separate
			deliver(at)
			calm = true
			continue
		}
		if at <= delayed || r.Float64() >= faults || slot == 1 && early || faulty == 2 {
			deliver(at)
			continue
		}
		faulty++
		early = early || slot == 0 // at most one of the first two noops is faulty, because they determine the schedule
		kind := r.IntN(5)
		if numbered && slot == 0 { // the start of a numbered stream is not determined by the clock
			kind = 2 * r.IntN(2)
		}
		switch kind {
		case 0: // lost
		case 1: // never served
			number--
		case 2: // twice
			at = deliver(at)
			if r.IntN(2) == 0 {
				at += r.IntN(450)
			}
			deliver(at)
		default: // delayed
			delayed, calm = at+r.IntN(3500), false
			deliver(at)
		}
	}
	s.end = firstDue + (slots-1)*interval + r.IntN(1000)
	for len(s.arrivals) > 0 && s.arrivals[len(s.arrivals)-1].at > s.end {
		s.arrivals = s.arrivals[:len(s.arrivals)-1]
	}
	return s, jitter <= 20 && s.late > refTolerance
}

func (s *reference) play() Record {
	const every = 15 * sec
	var noops []Noop
	for _, a := range s.arrivals {
		noops = append(noops, noopAt(every, float64(a.at)/1000, uint64(a.number)))
	}
	l := New("a-1", &Config{Interval: every, LatenessLimit: every * time.Duration(s.late) / 1000})
	l.Connecting(0)
	l.Opened(sec)
	for _, n := range noops {
		l.Noop(n)
	}
	end := sec + Instant(s.end)*every/1000
	l.CloseRequested(end)
	l.Closed(end+time.Millisecond, "server", true, false)
	return l.Record()
}

// fewFaults is the maximum number of faults that the ledger must count exactly. With more faults, the ledger must find
// at least one.
const fewFaults = 3

// disagreement describes how a record contradicts the reference, or returns "" if it does not. Only a complete stream
// may be reported as complete. With faults, an explanation with one more event is permitted, because the ledger does
// not look back. undecided reports whether several explanations are equally simple.
func (o *explanations) disagreement(r Record, tight bool) (difference string, undecided bool) {
	simplest, next, events, maxLost := o.counts()
	got := count{int(r.Missed()), int(r.Duplicated)}
	complete, numbered := got == count{}, r.Numbered
	switch {
	case len(simplest) == 0:
	case events == 0 && !complete:
		difference = "a false alarm"
	case complete && !simplest[got] && r.Undetectable == 0:
		difference = "a false pass"
	case !complete && !simplest[got] && !next[got] && !covered(simplest, got, r.Undetectable) && events <= fewFaults:
		difference = "another count"
	case tight && (events == 0 || !numbered) && got.lost+int(r.Undetectable) < maxLost:
		difference = "more undetectable losses than the record reports"
	}
	return difference, len(simplest) > 1
}

// covered reports whether an explanation has as many repeated noops as the ledger counted, and as many lost ones, or up
// to undetectable more.
func covered(simplest map[count]bool, got count, undetectable uint64) bool {
	for c := range simplest {
		if c.repeated == got.repeated && got.lost <= c.lost && c.lost <= got.lost+int(undetectable) {
			return true
		}
	}
	return false
}

// agreesWithOtherBounds reports whether the ledger agrees with the reference for slightly different bounds.
func (s *reference) agreesWithOtherBounds(r Record, tight bool) bool {
	for _, edit := range []func(*reference){
		func(o *reference) { o.jitter += 60 }, func(o *reference) { o.jitter -= 60 },
		func(o *reference) { o.latest += 300 }, func(o *reference) { o.latest -= 300 },
		func(o *reference) { o.late += 30 }, func(o *reference) { o.late -= 30 },
		func(o *reference) { o.early += 200 },
		func(o *reference) { o.end += 80 }, func(o *reference) { o.end -= 80 },
	} {
		other := *s
		edit(&other)
		o := other.explain()
		if d, _ := o.disagreement(r, tight); d == "" {
			return true
		}
	}
	return false
}

// streamCount returns the number of streams to compare, and the seed. To change them:
//
//	STREAMS=1000000 SEED=7 go test -timeout 1h -run Reference ./internal/ledger
func streamCount(t *testing.T) (count int, seed uint64) {
	t.Helper()
	count, seed = 20_000, 13
	if v := os.Getenv("STREAMS"); v != "" {
		count, _ = strconv.Atoi(v)
	}
	if v := os.Getenv("SEED"); v != "" {
		seed, _ = strconv.ParseUint(v, 10, 64)
	}
	t.Logf("seed %d", seed)
	return count, seed
}

func TestLedgerAgreesWithReference(t *testing.T) {
	t.Parallel()
	count, seed := streamCount(t)
	wrong, undecided, edge := map[string]int{}, 0, 0
	for i := range uint64(count) {
		s, tight := shortStream(rand.New(rand.NewPCG(seed, i)))
		o, r := s.explain(), s.play()
		d, open := o.disagreement(r, tight)
		if d != "" && s.agreesWithOtherBounds(r, tight) {
			d = ""
			edge++
		}
		if open {
			undecided++
		}
		if d != "" {
			wrong[d]++
			if wrong[d] <= 3 {
				t.Log(d, fmt.Sprintf("(%d): %+v\n%s\n%+v", i, *s, o.text(), r))
			}
		}
	}
	t.Logf("%d are undecided, %d agree only with other bounds", undecided, edge)
	differ := 0
	for _, n := range wrong {
		differ += n
	}
	require.LessOrEqual(t, differ, count/100_000, "the ledger must agree with the reference on all but one stream in 100,000: %v", wrong)
}

func (o *explanations) text() string {
	simplest, next, events, maxLost := o.counts()
	return fmt.Sprintf("%v with %d events, or %v with one more; at most %d lost", simplest, events, next, maxLost)
}

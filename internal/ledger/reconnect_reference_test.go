package ledger

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A refClient contains the noops that one client received on several streams. Its methods are slow and simple: they try
// all schedules that explain these noops. They share no code with the ledger. Times are in thousandths of an interval
// since the first headers.
type refClient struct {
	numbered  bool
	streams   []refStream
	end       int // when the close was requested; the client was disconnected then if the last stream ended earlier
	late      int // LATE_MS, at most half an interval
	latest    int // maximum time from the headers of a stream to its first due time
	maxOutage int
}

type refStream struct {
	opened, closed int // closed is at most the end of the client
	arrivals       []refArrival
}

const (
	refMinReplay = 3   // noops up to this long after the headers of a later stream are replayed
	refMaxReplay = 250 // noops up to this long after the headers may be replayed
	refNoise     = 20  // maximum delay of a noop after its slot
)

// replays returns the number of noops that arrived within the given time after the headers, and may be replays.
func (s *refStream) replays(within int) (n int) {
	for n < len(s.arrivals) && s.arrivals[n].at-s.opened <= within {
		n++
	}
	return n
}

// emptySlots tries all times at which the first noop of a stream may have been due, and returns the minimum number of
// empty slots up to until. replays is the number of arrivals that may have been replayed and belong to no slot.
func (l *refClient) emptySlots(s *refStream, replays, until int) (fewest int) {
	fewest = refMaxNoops
	regular := s.arrivals[replays:]
	for firstDue := 0; firstDue <= l.latest; firstDue++ {
		explained := len(regular) == 0
		if !explained {
			offset := (regular[0].at - s.opened - firstDue) % refInterval
			explained = regular[0].at-s.opened >= firstDue && offset <= refNoise
		}
		if !explained {
			continue
		}
		due := 0
		for at := s.opened + firstDue; at <= until; at += refInterval {
			due++
		}
		arrived := 0
		for _, a := range regular {
			if a.at-refNoise <= until {
				arrived++
			}
		}
		fewest = min(fewest, max(due-arrived, 0))
	}
	return fewest
}

// A refSum is the minimum number of lost noops, and the number of further undetectable losses.
type refSum struct{ lost, undetectable int }

// explain adds up the losses. Between two noops on their slots, the numbers show the lost noops, except slots without a
// number. By the clock, each slot between them is a loss.
func (l *refClient) explain() (sum refSum) {
	var number, replayed int    // number of the last noop on its slot; number of replayed noops after it
	var empty, emptyAfter int   // empty slots of open streams after that noop: before the last replayed noop, and after it
	highest, lastSlotAt := 0, 0 // highest number; arrival of the last noop on its slot, or 0
	last := len(l.streams) - 1
	for k := range l.streams {
		s := &l.streams[k]
		replays := 0
		if k > 0 && l.numbered {
			replays = s.replays(refMinReplay)
		}
		for _, a := range s.arrivals[:replays] {
			replayed++
			highest = max(highest, a.number)
		}
		if len(s.arrivals) > 0 {
			empty, emptyAfter = empty+emptyAfter, 0
		}
		regular := s.arrivals[replays:]
		slots := l.emptySlots(s, replays, s.closed-l.late)
		switch {
		case len(regular) == 0:
			emptyAfter += slots
		case l.numbered:
			first, final := regular[0], regular[len(regular)-1]
			before := max(int(float64(first.at-s.opened)/refInterval-float64(l.latest-refInterval)/refInterval), 0)
			used := first.number - number - 1
			sum.lost += used - replayed + max(empty+before-used, 0)
			sum.lost += final.number - first.number - (len(regular) - 1)
			number, highest, replayed, lastSlotAt = final.number, final.number, 0, final.at
			empty = max(slots-before-(final.number-first.number-(len(regular)-1)), 0)
		default:
			sum.lost += slots
			if k > 0 {
				sum.lost += max((s.opened-l.clockStart(k, lastSlotAt))/refInterval, 0)
			}
			lastSlotAt = regular[len(regular)-1].at
			if k < last { // the slots that the end of the stream leaves empty are counted until the next headers
				for at := lastSlotAt + refInterval; at <= s.closed-l.late; at += refInterval {
					sum.lost--
				}
			}
		}
	}
	if l.numbered {
		sum.lost += highest - number - replayed + max(empty-(highest-number), 0) + emptyAfter
	}
	l.atEnd(&sum, max(highest-number, 0), lastSlotAt)
	return sum
}

// atEnd adds the losses after the last noop that arrived on its slot. detected is the number of noops after it that the
// numbers show.
func (l *refClient) atEnd(sum *refSum, detected, lastSlotAt int) {
	s := &l.streams[len(l.streams)-1]
	if !l.numbered && len(s.arrivals) == 0 && len(l.streams) > 1 {
		sum.lost += max((min(s.opened, s.closed-l.late)-l.clockStart(len(l.streams)-1, lastSlotAt))/refInterval, 0) + l.emptySlots(s, 0, s.closed-l.late)
	}
	if lastSlotAt == 0 {
		return
	}
	settled := len(s.arrivals) > s.replays(refMaxReplay) || len(l.streams) == 1
	until := s.opened // noops that are due on a stream that is not settled are not expected
	if settled || s.closed < l.end {
		until = l.end
	}
	for due := lastSlotAt + refInterval; due <= until-refTolerance; due += refInterval {
		outage := !l.open(due)
		if outage && l.numbered || due > s.closed {
			sum.undetectable++
		}
	}
	sum.undetectable -= min(detected, sum.undetectable)
}

// clockStart returns the time from which the clock counts noops that were due before the headers of stream k. It is the
// time of the last noop. Without a noop, it is the time of the first headers, or the end of a short stream.
func (l *refClient) clockStart(k, lastSlotAt int) int {
	if lastSlotAt > 0 {
		return lastSlotAt
	}
	since := l.streams[0].opened
	for _, s := range l.streams[:k] {
		if s.closed-s.opened-l.late < l.latest {
			since = s.closed
		}
	}
	return since
}

func (l *refClient) open(at int) bool {
	for _, s := range l.streams {
		if s.opened <= at && at <= s.closed {
			return true
		}
	}
	return false
}

// disagreement describes how a record contradicts the reference, or returns "" if it does not. A count may differ by
// one loss.
func (l *refClient) disagreement(r Record) string {
	want := l.explain()
	missed, undetectable := int(r.Missed()), int(r.Undetectable)
	closed := l.streams[len(l.streams)-1].closed
	state := Completed
	if l.end-closed > l.maxOutage {
		state = Waiting
	}
	switch {
	case r.State != state:
		return fmt.Sprintf("the state is %s, not %s", r.State, state)
	case state == Waiting || r.Received == 0 || r.Numbered != l.numbered:
		return ""
	case r.Duplicated+r.Reordered+r.Corrupted > 0:
		return "a fault that did not happen"
	case want.lost == 0 && missed > 0:
		return fmt.Sprintf("a false alarm: want %+v", want)
	case want.lost > 0 && missed+undetectable == 0:
		return fmt.Sprintf("a false pass: want %+v", want)
	case missed > want.lost+1 || missed+undetectable+1 < want.lost:
		return fmt.Sprintf("another count: want %+v", want)
	// Replays may hide the schedule, and thus one loss.
	case missed+undetectable < want.lost+want.undetectable && (undetectable == 0 || missed+undetectable < want.lost+want.undetectable-1):
		return fmt.Sprintf("more undetectable losses than the record reports: want %+v", want)
	}
	return ""
}

// agreesWithOtherBounds reports whether the ledger agrees with the reference for slightly different bounds.
func (l *refClient) agreesWithOtherBounds(r Record) bool {
	for _, edit := range []func(*refClient){
		func(o *refClient) { o.latest += 60 }, func(o *refClient) { o.latest -= 60 }, func(o *refClient) { o.latest += 300 },
		func(o *refClient) { o.late += 50 }, func(o *refClient) { o.late -= 50 },
		func(o *refClient) { o.late = max(o.late, 320) }, // the tolerance of the ledger while few noops have arrived
		func(o *refClient) { o.maxOutage++ }, func(o *refClient) { o.maxOutage-- },
	} {
		other := *l
		edit(&other)
		if other.disagreement(r) == "" {
			return true
		}
	}
	return false
}

// shortClient returns a random client with up to three streams. Its service continues one schedule or starts a new one
// per stream. The service replays noops that become due between two streams, or drops them. faults reports whether some
// noops are lost.
func shortClient(r *rand.Rand) (l *refClient, faults bool) {
	l = &refClient{numbered: r.IntN(2) == 0, late: []int{67, 333, 500}[r.IntN(3)], latest: 1500, maxOutage: 2000}
	restarts, replays := r.IntN(2) == 0, l.numbered && r.IntN(2) == 0
	loss := 0.
	if r.IntN(2) == 0 {
		loss = .25 * r.Float64()
	}
	due, number := 5+r.IntN(1000), 0
	at := 0
	var missed []int // numbers of the noops to replay
	for k, n := 0, 1+r.IntN(3); k < n; k++ {
		s := refStream{opened: at, closed: at + 100 + r.IntN(4500)}
		if k > 0 && restarts {
			due = at + 5 + r.IntN(1400)
		}
		for _, n := range missed {
			if r.Float64() >= loss {
				s.arrivals = append(s.arrivals, refArrival{at: at + 1, number: n})
			} else {
				faults = true
			}
		}
		missed = nil
		for ; due <= s.closed; due += refInterval {
			if number++; r.Float64() < loss {
				faults = true
				continue
			}
			s.arrivals = append(s.arrivals, refArrival{at: due, number: number})
		}
		l.streams = append(l.streams, s)
		at = s.closed + 30 + r.IntN(2500)
		for ; !restarts && due < at; due += refInterval {
			if replays {
				number++
				missed = append(missed, number)
			} else if !l.numbered {
				number++
				faults = true
			}
		}
	}
	l.end = l.streams[len(l.streams)-1].closed
	if r.IntN(2) == 0 {
		l.end += 1 + r.IntN(3000)
	}
	return l, faults
}

func (l *refClient) play() Record {
	const every = 15 * sec
	instant := func(at int) Instant { return sec + Instant(at)*every/1000 }
	ledger := New("a-1", &Config{Interval: every, LatenessLimit: every * time.Duration(l.late) / 1000, MaxOutage: every * time.Duration(l.maxOutage) / 1000})
	for k, s := range l.streams {
		ledger.Connecting(instant(s.opened))
		ledger.Opened(instant(s.opened))
		for _, a := range s.arrivals {
			n := Noop{At: instant(a.at), Intact: true}
			if l.numbered {
				n.Number = uint64(a.number)
			}
			ledger.Noop(n)
		}
		if k < len(l.streams)-1 || l.end > s.closed {
			ledger.Closed(instant(s.closed), "server", true, true)
		}
	}
	if ledger.CloseRequested(instant(l.end)) {
		ledger.Closed(instant(l.end)+time.Millisecond, "server", true, false)
	}
	return ledger.Record()
}

func TestLedgerAgreesWithReferenceOnReconnects(t *testing.T) {
	t.Parallel()
	count, seed := streamCount(t)
	wrong, edge := 0, 0
	for i := range uint64(count) {
		l, faults := shortClient(rand.New(rand.NewPCG(seed, i)))
		r := l.play()
		d := l.disagreement(r)
		if d != "" && l.agreesWithOtherBounds(r) {
			d = ""
			edge++
		}
		if d == "" && l.numbered && r.Numbered && !faults && r.Missed() > 0 {
			d = "a false alarm: nothing was lost"
		}
		if d != "" {
			if wrong++; wrong <= 5 {
				t.Logf("%s (%d): %+v\n%+v", d, i, *l, r)
			}
		}
	}
	t.Logf("%d agree only with other bounds", edge)
	require.Zero(t, wrong, "number of records, of %d, that contradict the reference", count)
}

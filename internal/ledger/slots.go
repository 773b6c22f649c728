package ledger

import "time"

// What is assumed of a service; docs/accounting.md says why.
const (
	// jitter is how far after its due time a noop may come without being held up, in intervals.
	jitter = .3
	// early is how far before its slot an arrival may come and still be the noop of that slot, in
	// intervals. It is small, because the earliest arrivals show the schedule and nothing arrives before
	// it is sent. earlyAtFirst holds while few noops have come, all of which may have been somewhat late.
	early, earlyAtFirst = .125, .2
	// startsAtOnce: if the first noop of a stream comes earlier than this after the headers, in intervals,
	// it is the first that was owed: one before it would have been due before the headers.
	startsAtOnce = .98
	// latest is the longest time from the headers of a stream until its first noop is due, in intervals.
	latest = 1.5
	// aboutDue is how exactly it is known when a slot is due, in intervals.
	aboutDue = .02
)

// slots is the schedule of a stream as its arrivals show it. The service owes one noop per
// interval; anchor is the time of the slot that the last arrival was put on.
//
// When an arrival comes n slots after the last one, n−1 slots are in doubt: their noops were
// never sent, or they were held up and are right behind (TCP keeps order, so they come in one
// burst). balance is the number of slots in doubt. Arrivals before the next slot lower it. Without
// numbers, the first arrival on a later slot ends the doubt: the rest is missed. With numbers no later
// noop can be mistaken for an earlier one, so the doubt lasts to the end.
type slots struct {
	anchor  Instant
	balance int64 // > 0: slots in doubt; < 0: numbers ahead of the clock
	// spread is the most by which an arrival came after its slot without being held up.
	spread time.Duration
	next   bool // the last arrival came one slot after another
	steady bool // that happened once without a hole: the phase is known
	// arrivals are those on a slot of their own, up to knownPhase.
	arrivals int8
	headLate bool // the first arrival of the stream came after its first slot
	loose    bool // the last gap was longer than jitter makes it, while the phase was unknown
}

func (s *slots) start(at Instant) { *s = slots{anchor: at} }

// resume starts anew after an outage. Noops in doubt before it may still be replayed; n and
// covered are those of fill.
func (s *slots) resume(at Instant, n, covered int64) {
	*s = slots{anchor: at, balance: max(max(s.balance, 0)+n-covered, 0)}
}

// advance moves the anchor to the slot of an arrival and says how many slots that is past
// the last one, 0 for an arrival before the next slot.
func (s *slots) advance(at Instant, interval time.Duration) int64 {
	since := at - s.anchor
	s.next = since >= interval/2 && since < interval*3/2
	if since < interval/2 {
		return 0
	}
	s.arrivals = min(s.arrivals+1, knownPhase)
	n := int64((since + interval/2) / interval)
	s.anchor += time.Duration(n) * interval
	drift := at - s.anchor
	if n == 1 {
		s.spread = max(s.spread, min(drift, share(interval, jitter)))
	}
	switch {
	case n == 1 && drift < 0 && (s.balance <= 0 || !s.steady):
		// Nearer to the true schedule than the anchor was: nothing arrives before it is sent.
		s.anchor = at
	case n == 1 && drift < 0:
		// Or still late from the slot before: follow a faster clock, but slowly.
		s.anchor += max(drift, -interval/100)
	case drift > 0:
		// Late, or a server whose clock is slower than ours: follow, but slowly.
		s.anchor += min(drift, interval/100)
	}
	return n
}

// fill compares the n slots that passed with an arrival at the instant at with the covered noops
// (arrived, or known by their number). settle ends the doubt: fill then returns how many slots were
// never served. burst: the arrival came right behind the one before, so it does not show when it was due.
// Numbers may be ahead of the clock by as many as are missing below them, as two swapped noops are for
// a moment. If they are further ahead, the schedule is earlier than it was taken for, and the anchor
// moves. So a server that sends too fast cannot make up for a later silence.
func (s *slots) fill(at Instant, n, covered, ahead int64, burst, settle bool) (unsent uint64) {
	switch {
	case settle && n > 0 && s.balance > 0:
		unsent, s.balance = uint64(s.balance), 0
	case !s.steady && n < covered && !burst:
		// The phase is unknown yet: what came before was a replay, or late. This one knows the
		// phase better, and it is no noop that could be missing later.
		s.anchor, ahead = at, 0
	}
	s.steady = s.steady || s.next && covered == 1
	s.balance += n - covered
	if s.balance < -ahead {
		s.balance = -ahead
		if covered > 0 {
			s.anchor = at
		}
	}
	return unsent
}

// settle ends the doubt, since nothing more can arrive, and returns how many slots stayed empty.
func (s *slots) settle() uint64 {
	left := max(s.balance, 0)
	s.balance = 0
	return uint64(left)
}

// stands says that the last arrival, at the instant last, is the noop of the anchor's slot. One that came
// well before that slot is a late noop of an earlier slot.
func (s *slots) stands(last Instant, interval time.Duration) bool {
	return last >= s.anchor-s.early(interval)
}

// early is how far before its slot an arrival may come and still be the noop of that slot.
func (s *slots) early(interval time.Duration) time.Duration {
	if s.arrivals < knownPhase {
		return share(interval, earlyAtFirst)
	}
	return share(interval, early)
}

// tooEarly says that an arrival cannot be the noop of the first slot that is in doubt: that is not
// due yet.
func (s *slots) tooEarly(at Instant, interval time.Duration) bool {
	return at < s.anchor-time.Duration(s.balance-1)*interval-s.early(interval)
}

// tolerance is how long before the end a noop may be due and still be on its way: at least configured, and
// half as long again as noops of this stream were seen to come late; where few have come, as jitter allows.
func (s *slots) tolerance(configured, interval time.Duration) time.Duration {
	seen := s.spread * 3 / 2
	if s.arrivals > 0 && s.arrivals < few {
		seen = share(interval, jitter)
	}
	return max(configured, seen)
}

// few is the number of arrivals up to which their jitter is not known.
const few = 4

// notDue is how many of the empty slots up to the anchor are due after end, or less than tolerance before
// it: no noop is owed for them.
func (s *slots) notDue(end, last Instant, interval, tolerance time.Duration) uint64 {
	latest := s.anchor // of the slots that may be empty
	if s.stands(last, interval) {
		latest -= interval
	}
	return whole(latest-(end-tolerance)+interval-1, interval)
}

// owed is how many slots passed empty between the anchor and end.
func (s *slots) owed(end Instant, interval, tolerance time.Duration) uint64 {
	return whole(end-s.anchor-tolerance, interval)
}

// nextDue is when the first slot after the instant at is due for which nothing has come.
func (s *slots) nextDue(at, last Instant, interval time.Duration) Instant {
	next := s.anchor
	if s.stands(last, interval) {
		next += interval
	}
	if next <= at {
		next += time.Duration(whole(at-next, interval)+1) * interval //nolint:gosec // G115: intervals of one run
	}
	return next
}

// whole is how many whole intervals are in d.
func whole(d, interval time.Duration) uint64 {
	return uint64(max(d, 0) / interval) //nolint:gosec // G115: bounded in this expression
}

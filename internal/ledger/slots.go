package ledger

import "time"

// The assumptions about a service; see docs/accounting.md.
const (
	// jitter is the maximum time by which a noop that was not delayed arrives after its slot, in intervals.
	jitter = .3
	// earlyShare is the maximum time before a slot at which an arrival may be the noop of that slot, in intervals. It
	// is small, because the earliest arrivals show the schedule. earlyAtFirst applies while few noops have arrived,
	// because these may all have been late.
	earlyShare, earlyAtFirst = .125, .2
	// immediateStart is the time after the headers of a stream up to which its first noop is certainly the first
	// expected one, in intervals. A noop before it would have been due before the headers.
	immediateStart = .98
	// maxFirstDue is the maximum time from the headers of a stream until its first noop is due, in intervals.
	maxFirstDue = 1.5
	// duePrecision is the precision of the time at which a slot is due, in intervals.
	duePrecision = .02
)

// slots is the schedule of a stream as its arrivals show it. One noop is expected per interval; anchor is the time of
// the slot to which the last arrival was assigned.
//
// If an arrival is n slots after the last one, n−1 slots are in doubt. Their noops are missing, or were delayed and
// follow in one burst, because TCP keeps the order. balance is the number of slots in doubt. Arrivals before the next
// slot decrement balance. Without numbers, the first arrival on a later slot ends the doubt, and the remaining slots
// are missed. With numbers, the doubt lasts to the end, because no later noop can be mistaken for an earlier one.
type slots struct {
	anchor  Instant
	balance int64 // > 0: slots in doubt; < 0: numbers ahead of the clock
	// spread is the maximum time by which a noop that was not delayed arrived after its slot.
	spread        time.Duration
	consecutive   bool // the last arrival was one slot after the previous one
	scheduleKnown bool // there were two consecutive arrivals without a hole
	// arrivals is the number of arrivals on their own slot, up to scheduleNoops.
	arrivals  int8
	firstLate bool // the first arrival of the stream was after its first slot
	longGap   bool // while the schedule was unknown, the last gap was longer than jitter explains
}

func (s *slots) start(at Instant) { *s = slots{anchor: at} }

// resume restarts the schedule after an outage. Noops in doubt may still be replayed; see fill for n and covered.
func (s *slots) resume(at Instant, n, covered int64) {
	*s = slots{anchor: at, balance: max(max(s.balance, 0)+n-covered, 0)}
}

// advance moves the anchor to the slot of an arrival, and returns the number of slots that passed. It returns 0 for an
// arrival that is closer to the anchor than to the next slot.
func (s *slots) advance(at Instant, interval time.Duration) int64 {
	since := at - s.anchor
	s.consecutive = since >= interval/2 && since < interval*3/2
	if since < interval/2 {
		return 0
	}
	s.arrivals = min(s.arrivals+1, scheduleNoops)
	n := int64((since + interval/2) / interval)
	s.anchor += time.Duration(n) * interval
	drift := at - s.anchor
	if n == 1 {
		s.spread = max(s.spread, min(drift, share(interval, jitter)))
	}
	switch {
	case n == 1 && drift < 0 && (s.balance <= 0 || !s.scheduleKnown):
		// An early arrival is closer to the true schedule than the anchor, because no noop arrives before it is sent.
		s.anchor = at
	case n == 1 && drift < 0:
		// The arrival may also be a late noop of the previous slot, so the anchor follows a faster clock slowly.
		s.anchor += max(drift, -interval/100)
	case drift > 0:
		// The arrival is late, or the server's clock is slower than ours, so the anchor follows the arrival slowly.
		s.anchor += min(drift, interval/100)
	}
	return n
}

// fill compares the n slots that passed up to an arrival with the covered noops, which arrived or are known by their
// number. If settle is set and n is not 0, fill ends the doubt about earlier slots, and returns how many are empty.
// burst reports whether the arrival directly followed the previous one, so that it does not show when it was due.
//
// Numbers may be ahead of the slots by lead, the count of missing lower numbers, as between two swapped noops. If they
// are further ahead, the schedule is earlier than assumed, and the anchor moves. Thus noops that a server sends too
// early do not make up for a later silence.
func (s *slots) fill(at Instant, n, covered, lead int64, burst, settle bool) (unsent uint64) {
	switch {
	case settle && n > 0 && s.balance > 0:
		unsent, s.balance = uint64(s.balance), 0
	case !s.scheduleKnown && n < covered && !burst:
		// The schedule is unknown, because the earlier arrivals were replayed or late. This arrival shows it better, and
		// does not count for a later slot.
		s.anchor, lead = at, 0
	}
	s.scheduleKnown = s.scheduleKnown || s.consecutive && covered == 1
	s.balance += n - covered
	if s.balance < -lead {
		s.balance = -lead
		if covered > 0 {
			s.anchor = at
		}
	}
	return unsent
}

// settle ends the doubt, because no noop can arrive anymore, and returns the number of empty slots.
func (s *slots) settle() uint64 {
	empty := max(s.balance, 0)
	s.balance = 0
	return uint64(empty)
}

// isOnSlot reports whether the last arrival is the noop of the anchor's slot, not a late noop of an earlier slot.
func (s *slots) isOnSlot(last Instant, interval time.Duration) bool {
	return last >= s.anchor-s.maxEarliness(interval)
}

func (s *slots) maxEarliness(interval time.Duration) time.Duration {
	if s.arrivals < scheduleNoops {
		return share(interval, earlyAtFirst)
	}
	return share(interval, earlyShare)
}

// isTooEarly reports whether an arrival is too early for the first slot in doubt.
func (s *slots) isTooEarly(at Instant, interval time.Duration) bool {
	return at < s.anchor-time.Duration(s.balance-1)*interval-s.maxEarliness(interval)
}

// tolerance returns the time before the end in which a due noop may be in transit: the configured time, or 1.5 times
// the spread if that is longer. After 1 to minJitterArrivals−1 arrivals, jitter replaces that product.
func (s *slots) tolerance(configured, interval time.Duration) time.Duration {
	spread := s.spread * 3 / 2
	if s.arrivals > 0 && s.arrivals < minJitterArrivals {
		spread = share(interval, jitter)
	}
	return max(configured, spread)
}

// minJitterArrivals is the minimum number of arrivals that show their jitter.
const minJitterArrivals = 4

// notDue returns the number of empty slots up to the anchor that are due after end, or less than tolerance before end.
func (s *slots) notDue(end, last Instant, interval, tolerance time.Duration) uint64 {
	latest := s.anchor // the latest slot that may be empty
	if s.isOnSlot(last, interval) {
		latest -= interval
	}
	return wholeIntervals(latest-(end-tolerance)+interval-1, interval)
}

// isOneBurst reports whether all noops of the stream arrived in one burst, with fewer noops than slots. The slot of the
// anchor may then be empty.
func (s *slots) isOneBurst() bool { return s.arrivals == 0 && s.balance > 0 }

// expected returns the number of slots that passed between the anchor and the instant that is tolerance before end.
func (s *slots) expected(end Instant, interval, tolerance time.Duration) uint64 {
	return wholeIntervals(end-s.anchor-tolerance, interval)
}

// nextDue returns the time of the first slot that is after an instant and has no noop.
func (s *slots) nextDue(at, last Instant, interval time.Duration) Instant {
	next := s.anchor
	if s.isOnSlot(last, interval) {
		next += interval
	}
	if next <= at {
		next += time.Duration(wholeIntervals(at-next, interval)+1) * interval // #nosec G115 -- intervals of one run
	}
	return next
}

func wholeIntervals(d, interval time.Duration) uint64 {
	return uint64(max(d, 0) / interval) // #nosec G115 -- bounded in this expression
}

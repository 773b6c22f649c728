package feed

import (
	"cmp"
	"slices"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

// A series contains the messages among which chains are placed. It excludes a message that only one stream received,
// directly after the start of the stream.
type series struct {
	numbers []uint64          // feed numbers of the messages
	sums    []ledger.Checksum // sums[n] is the checksum of the first n messages
	times   []ledger.Instant  // when the messages were sent, ascending
	unique  []bool            // no other message has this content
	live    []uint32          // live[n] is the number of expected messages up to number n
	proven  []bool            // a chain that has a place received it
	follows []bool            // such a chain received it and the next one; see cover
	open    []period          // when such chains were open, by the clock of the first log
}

type period struct{ from, to ledger.Instant }

func (p period) has(at ledger.Instant) bool { return at >= p.from && at <= p.to }

func (f *Feed) setSeries(records Records) {
	s, late := &f.series, f.lateFirstMessages(records)
	s.sums = append(s.sums, 0)
	for i := range f.Messages {
		if m := &f.Messages[i]; m.Count > 1 || f.nodes[m.id].live || late[m.id] {
			s.numbers = append(s.numbers, uint64(i)+1)
			s.sums = append(s.sums, s.sums[len(s.sums)-1].Add(f.nodes[m.id].print))
			s.times = append(s.times, m.At)
		}
	}
	times := map[uint64]int{}
	for i := range f.Messages {
		times[f.nodes[f.Messages[i].id].print]++
	}
	s.proven, s.follows, s.unique = make([]bool, len(s.numbers)), make([]bool, len(s.numbers)), make([]bool, len(s.numbers))
	_, s.times = orderedTimes(s.times)
	for i, n := range s.numbers {
		s.unique[i] = times[f.nodes[f.Messages[n-1].id].print] == 1
	}
}

// lateFirstMessages returns the messages that only one stream received, as its first message, but not directly after
// its start. A message directly after the start is a greeting.
func (f *Feed) lateFirstMessages(records Records) map[uint32]bool {
	late, singles := map[uint32]bool{}, make([][]uint64, len(f.logs))
	for log, l := range f.logs {
		for i := range l.Entries {
			if e := &l.Entries[i]; e.Count == 1 && !e.Live {
				singles[log] = append(singles[log], uint64(i)+1)
			}
		}
	}
	for log, r := range records {
		for _, n := range singles[log] {
			if at := f.logs[log].Entries[n-1].At; r.HasReceived(n) && wasOpen(r, at, 0) && !hasJustOpened(r, at, f.JoinTime) {
				late[f.ids[log][n-1]] = true
			}
		}
	}
	return late
}

func hasJustOpened(r *ledger.Record, at, duration ledger.Instant) bool {
	return slices.ContainsFunc(r.Spans, func(s ledger.Span) bool { return s.From <= at && at < s.From+duration })
}

// isCertain reports whether it is certain that a message was followed by the next one.
func (s *series) isCertain(i int) bool { return s.follows[i] || s.unique[i] && s.unique[i+1] }

// sum returns the checksum of the messages with the indexes i, from ≤ i < to.
func (s *series) sum(from, to int) ledger.Checksum {
	return s.sums[to] - s.sums[from].Shift(uint64(to-from)) // #nosec G115 -- positive
}

// between returns the index of the first message that was sent between two instants, and the index after the last one.
func (s *series) between(from, to ledger.Instant) (first, end int) {
	first, _ = slices.BinarySearch(s.times, from)
	end, _ = slices.BinarySearch(s.times, to+1)
	return first, end
}

// betweenNumbers returns the index of the first message with a number in a range, and the index after the last one.
func (s *series) betweenNumbers(low, high uint64) (first, end int) {
	first, _ = slices.BinarySearch(s.numbers, low)
	end, _ = slices.BinarySearch(s.numbers, high+1)
	return first, end
}

// cover records which messages the chains with a place received, and when these chains were open. A message certainly
// precedes the next one only if at least half of the chains there have a place.
func (f *Feed) cover(records Records) {
	s := &f.series
	// placings has, at each message, the change in the excess: chains with a place minus chains without one.
	placings := make([]int, len(s.numbers)+1)
	for log, r := range records {
		shift := f.offset(log, 0)
		for _, c := range f.chains(log, r) {
			at := period{r.Spans[c.from].From + f.JoinTime + shift, endOf(r, c) + shift}
			if c.state != placed {
				if first, end := s.between(at.from, at.to); first < end {
					placings[first]--
					placings[end]++
				}
				continue
			}
			if c.first == 0 {
				continue
			}
			first, end := s.betweenNumbers(c.first, c.last)
			placings[first]++
			placings[end]--
			for i := first; i < end; i++ {
				s.proven[i], s.follows[i] = true, s.follows[i] || i < end-1
			}
			s.open = append(s.open, at)
		}
	}
	excess := 0
	for i := range s.follows {
		excess += placings[i]
		s.follows[i] = s.follows[i] && excess >= 0
	}
	slices.SortFunc(s.open, func(a, b period) int { return cmp.Compare(a.from, b.from) })
	var joined []period
	for _, p := range s.open {
		if last := len(joined) - 1; last >= 0 && p.from <= joined[last].to {
			joined[last].to = max(joined[last].to, p.to)
			continue
		}
		joined = append(joined, p)
	}
	s.open = joined
}

// dropUnproven clears Live of the messages that no chain with a place received, because they may be copies or changed
// messages. A message with unique content that two streams received needs no chain. dropUnproven also counts the live
// messages.
func (f *Feed) dropUnproven() {
	s := &f.series
	proven := make([]bool, len(f.Messages))
	for i, n := range s.numbers {
		proven[n-1] = s.proven[i] || s.unique[i] && f.Messages[n-1].Count > 1
	}
	s.live = make([]uint32, len(f.Messages)+1)
	for i := range f.Messages {
		m := &f.Messages[i]
		m.Live, s.live[i+1] = m.Live && proven[i], s.live[i]
		if m.Live {
			s.live[i+1]++
		}
	}
}

func (s *series) longestOpen(other period) (longest period) {
	covered := ledger.Instant(0)
	for _, p := range s.open {
		if d := min(p.to, other.to) - max(p.from, other.from); d > covered {
			longest, covered = p, d
		}
	}
	return longest
}

// shifts reports whether the first messages of a part equal earlier messages, or its last messages equal later ones.
// In that case, it is unknown whether a stream that received the part lagged, or lost messages inside the part.
func (s *series) shifts(from, to, first, end int) bool {
	length := min(to-from, 2*contextLength)
	for at := first; at < from; at++ {
		if s.sum(at, at+length) == s.sum(from, from+length) {
			return true
		}
	}
	for at := to + 1; at <= end; at++ {
		if s.sum(at-length, at) == s.sum(to-length, to) {
			return true
		}
	}
	return false
}

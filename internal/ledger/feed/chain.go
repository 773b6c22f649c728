package feed

import (
	"time"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

// A chain is a stream and the streams that resumed it, one after the other. A chain has a place in the feed if it
// received every message from its first to its last one exactly once and in order.
type chain struct {
	from, to    int    // indexes of its first and last span
	first, last uint64 // if placed: numbers of its first and last message, or 0 if it received none
	state       placement
}

type placement int

const (
	unplaced  placement = iota // no part of the feed equals the messages of the chain
	placed                     // exactly one part equals these messages, or the chain received none
	ambiguous                  // several parts equal these messages, or may equal them if a clock is wrong
)

func (f *Feed) chains(log int, r *ledger.Record) (chains []chain) {
	for i := range r.Spans {
		if last := len(chains) - 1; last >= 0 && r.Spans[i].Resumed {
			chains[last].to = i
			continue
		}
		chains = append(chains, chain{from: i, to: i})
	}
	for i := range chains {
		f.placeChain(log, r, &chains[i])
	}
	return chains
}

func (f *Feed) placeChain(log int, r *ledger.Record, c *chain) {
	s := &f.series
	count, sum := sumOf(r.Spans[c.from : c.to+1])
	shift, tolerance := f.offset(log, 0), f.Lag(log).Abs()+maxSpread
	from, to := r.Spans[c.from].From+shift, endOf(r, *c)+shift
	if !r.Spans[c.from].Resumed { // its checksum omits the first second
		from += max(2*time.Second-f.JoinTime-r.MaxLateness, 0)
	}
	first, end := s.between(from-tolerance, to+tolerance)
	switch {
	case count == 0:
		c.state = placed
		return
	case count > uint64(end-first): // #nosec G115 -- positive
		return
	}
	length := int(count) // #nosec G115 -- at most the number of messages
	best := -1
	for at := first; at+length <= end; at++ {
		if s.sum(at, at+length) != sum {
			continue
		}
		if best >= 0 {
			c.state = ambiguous
			return
		}
		best, c.state = at, placed
	}
	if best < 0 {
		return
	}
	c.first, c.last = s.numbers[best], s.numbers[best+length-1]
	if s.shifts(best, best+length, max(first-contextLength, 0), min(end+contextLength, len(s.numbers))) { // the clocks may be wrong
		c.state = ambiguous
	}
}

// endOf returns the end of a chain, or the arrival of the last message if the runner was killed.
func endOf(r *ledger.Record, c chain) ledger.Instant {
	if to := r.Spans[c.to].To; to != 0 {
		return to
	}
	return r.LastAt
}

// A part is a range of the series whose messages certainly were sent in this order, because chains with a known place
// received them. Messages with unique content need no chain.
type part struct {
	first, end int    // indexes of the messages
	time       period // when the messages were sent, by the clock of the chain that is compared
}

// certainPart returns the longest certain part of the series sent while a chain was open. ok is false if no part is
// certain.
func (f *Feed) certainPart(log int, r *ledger.Record, c chain) (longest part, ok bool) {
	s, shift := &f.series, f.offset(log, 0)
	at := period{r.Spans[c.from].From + f.JoinTime + shift, endOf(r, c) + shift}
	open := s.longestOpen(at)
	first, end := s.between(max(at.from, open.from), min(at.to, open.to))
	for start := first; start < end; {
		stop := start + 1
		// A message that the series omits may be a copy, so it ends the part.
		for stop < end && s.isCertain(stop-1) && s.numbers[stop] == s.numbers[stop-1]+1 {
			stop++
		}
		if stop-start > longest.end-longest.first {
			longest = part{start, stop, period{s.times[start] - shift - maxSpread, s.times[stop-1] - shift + maxSpread}}
		}
		start = stop
	}
	return longest, longest.end > longest.first
}

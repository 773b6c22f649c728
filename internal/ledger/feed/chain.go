package feed

import (
	"github.com/sse-soak/sse-soak/internal/ledger"
)

// A chain is a stream and those that resumed it, one after the other. It has a place in the feed if it received all messages from one to
// another: nothing is missing between, nothing arrived twice, and all came in order, whatever their contents.
type chain struct {
	from, to    int    // spans
	first, last uint64 // numbers of the messages; 0: none
	state       placing
}

// A placing is how well the place of a chain in the feed is known.
type placing int

const (
	unplaced  placing = iota // no part of the feed is what it received
	placed                   // exactly one part is
	ambiguous                // several parts are
)

// chains returns the chains of a connection.
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

// placeChain finds the place of a chain.
func (f *Feed) placeChain(log int, r *ledger.Record, c *chain) {
	s, count, sum := &f.series, uint64(0), ledger.Checksum(0)
	for i := c.from; i <= c.to; i++ {
		span := &r.Spans[i]
		count, sum = count+span.Prints, sum.Shift(span.Prints)+ledger.Checksum(span.Sum)
	}
	shift, tolerance := f.offset(log, 0), f.Lag(log).Abs()+maxSpread
	from, to := r.Spans[c.from].From+shift, endOf(r, *c)+shift
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
	if s.shifts(best, best+length, first, end) {
		c.state = ambiguous
	}
}

// endOf returns when a chain ended.
func endOf(r *ledger.Record, c chain) ledger.Instant { return end(r, r.Spans[c.to]) }

// agreed returns the part of a chain's time in which it is certain which messages were sent, from one number to another one: chains that
// have their place were open as well, and received these messages in this order. Messages with unique content are certain without them.
func (f *Feed) agreed(log int, r *ledger.Record, c chain, low, high uint64) (part period, ok bool) {
	s, shift := &f.series, f.offset(log, 0)
	from, to := r.Spans[c.from].From+f.Joining+shift, endOf(r, c)+shift
	edge := min(f.Joining/2, max(to-from, 0)/4)
	inner := period{from + edge, to - edge}
	open := s.longestOpen(inner)
	covered := open.from <= inner.from && inner.to <= open.to
	if isOnly := c.from == 0 && c.to == len(r.Spans)-1; low == 0 || open.from >= open.to || !covered && !isOnly {
		return period{}, false // the places of chains of one client depend on each other
	}
	first, end := s.numbered(low, high)
	start, stop := s.between(max(inner.from, open.from), min(inner.to, open.to))
	if first, end = max(first, start), min(end, stop); first >= end {
		return period{}, false
	}
	if uint64(end-first) != s.numbers[end-1]-s.numbers[first]+1 { // #nosec G115 -- positive
		return period{}, false // some may be copies
	}
	for i := first; i < end-1; i++ {
		if !s.follows[i] && !(s.unique[i] && s.unique[i+1]) {
			return period{}, false
		}
	}
	return period{max(from, open.from) - shift, min(to, open.to) - shift}, true
}

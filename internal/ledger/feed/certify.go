package feed

import (
	"cmp"
	"slices"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

// certifies reports whether chains are placed: content repeats, and the service sends each message once and in order.
func (f *Feed) certifies() bool {
	return f.repeated && !f.AnyOrder && !f.Repeats
}

// certify sets the received messages from the places of the chains. It reports whether it is certain which messages the
// client received. A chain without a place is faulty if other streams prove that it received the wrong messages. certify
// keeps the recorded messages of a faulty chain, and assumes messages for any other chain without a place.
func (c *correction) certify() (certain bool) {
	r := &c.record
	recordedRanges := subtract([]ledger.Range{{r.First, r.Last}}, r.Holes)
	var received []ledger.Range
	var faulty []period
	certain = true
	for _, chain := range c.chains(c.log, c.source) {
		at := period{c.source.Spans[chain.from].From, endOf(c.source, chain)}
		c.certainFrom[chain.from] = at.from + c.JoinTime + maxSpread
		low, high := numberRange(r.Spans[chain.from : chain.to+1])
		recorded := clip(recordedRanges, low, high)
		switch {
		case chain.state == placed:
			received = append(received, c.receivedFirst(at.from, chain.first, recordedRanges)...)
			received = append(received, c.place(chain)...)
			c.dropFaults(at)
		case chain.state == unplaced && c.isFaulty(chain, recorded):
			received = append(received, recorded...)
			faulty = append(faulty, at)
		default:
			certain = false
			received = append(received, c.assume(chain, recorded)...)
			c.dropFaults(at)
		}
	}
	c.setReceived(received)
	c.dropUnknown(faulty)
	return certain
}

// place sets the numbers of a chain that has a place, and returns them.
func (c *correction) place(chain chain) []ledger.Range {
	spans := c.record.Spans[chain.from : chain.to+1]
	for i := range spans {
		spans[i].First, spans[i].Last = 0, 0
	}
	spans[0].First, spans[0].Last = chain.first, chain.last
	if chain.first == 0 {
		return nil
	}
	return []ledger.Range{{chain.first, chain.last}}
}

func (c *correction) setReceived(received []ledger.Range) {
	r := &c.record
	slices.SortFunc(received, func(a, b ledger.Range) int { return cmp.Compare(a[0], b[0]) })
	r.First, r.Last, r.Holes = 0, 0, nil
	for _, part := range received {
		switch {
		case r.First == 0:
			r.First = part[0]
		case part[0] > r.Last+1:
			r.Holes = append(r.Holes, ledger.Range{r.Last + 1, part[0] - 1})
		}
		r.Last = max(r.Last, part[1])
	}
}

// dropUnknown drops the messages with unknown numbers, except messages of faulty chains. Without faulty chains it also
// resets the counts of faults, because not every fault is listed as a finding.
func (c *correction) dropUnknown(faulty []period) {
	r := &c.record
	if r.Deviations != nil {
		d := *r.Deviations
		d.UnknownAt = slices.DeleteFunc(slices.Clone(d.UnknownAt), func(at ledger.Instant) bool {
			return !slices.ContainsFunc(faulty, func(p period) bool { return p.has(at) })
		})
		r.Deviations = &d
	}
	if len(faulty) == 0 {
		r.Duplicated, r.Reordered, r.Corrupted = 0, 0, c.source.Corrupted
	}
}

// assume returns the numbers of the messages that a chain without a place may have received. These are all messages of
// the time in which the chain was open, except messages with unique content that are certainly lost.
func (c *correction) assume(chain chain, received []ledger.Range) (assumed []ledger.Range) {
	shift := c.offset(c.log, 0)
	first, end := c.series.between(c.source.Spans[chain.from].From+shift, endOf(c.source, chain)+shift)
	last := uint64(0) // up to this number, a message with unique content is certainly lost if it did not arrive
	if len(received) > 0 && c.source.Duplicated == 0 && chain.state == unplaced {
		last = received[len(received)-1][1]
	}
	for i := first; i < end; i++ {
		if n := c.series.numbers[i]; n > last || !c.series.unique[i] || countBetween(received, n, n) > 0 {
			assumed = ledger.AppendNumber(assumed, n)
		}
	}
	return assumed
}

// receivedFirst returns the recorded messages that arrived right after the start of a chain, before its place.
func (c *correction) receivedFirst(from ledger.Instant, next uint64, received []ledger.Range) []ledger.Range {
	first, end := c.series.between(from+c.offset(c.log, 0)-maxSpread, from+c.offset(c.log, 0)+c.JoinTime)
	if first >= end || next == 0 {
		return nil
	}
	return clip(received, c.series.numbers[first], min(c.series.numbers[end-1], next-1))
}

// isFaulty reports whether a chain has a fault in a part of the feed whose messages are certain.
func (c *correction) isFaulty(chain chain, recorded []ledger.Range) bool {
	if len(recorded) == 0 {
		return false
	}
	p, ok := c.certainPart(c.log, c.source, chain)
	return ok && (c.hasFault(p.time) || c.misses(p)) && c.contradicts(chain, p)
}

// misses reports whether the client lacks an expected message of a part.
func (c *correction) misses(p part) bool {
	s := &c.series
	for _, h := range clip(c.record.Holes, s.numbers[p.first], s.numbers[p.end-1]) {
		if s.live[h[1]] > s.live[h[0]-1] {
			return true
		}
	}
	return false
}

func (c *correction) hasFault(p period) bool {
	return slices.ContainsFunc(c.record.Findings, func(f ledger.Finding) bool { return canDisprove(f.Kind) && p.has(f.At) })
}

func canDisprove(k ledger.Kind) bool {
	return k == ledger.KindDuplicated || k == ledger.KindReordered || k == ledger.KindCorrupted
}

// dropFaults drops the findings of a period that the alignment can disprove, and reduces the counts of faults and of
// copies after cuts.
func (c *correction) dropFaults(p period) {
	r := &c.record
	r.Findings = slices.DeleteFunc(r.Findings, func(f ledger.Finding) bool {
		if !canDisprove(f.Kind) || !p.has(f.At) {
			return false
		}
		switch f.Kind {
		case ledger.KindDuplicated:
			r.Duplicated--
			r.Cuts.CountCopies(f.At, -1)
		case ledger.KindReordered:
			r.Reordered--
		default:
			r.Corrupted--
		}
		return true
	})
}

// numberRange returns the lowest and the highest message number of spans, or 0 if they received no message.
func numberRange(spans []ledger.Span) (low, high uint64) {
	for _, s := range spans {
		if s.First > 0 && (low == 0 || s.First < low) {
			low = s.First
		}
		high = max(high, s.Last)
	}
	return low, high
}

// clip returns the parts of ranges between low and high, including both.
func clip(ranges []ledger.Range, low, high uint64) (out []ledger.Range) {
	for _, r := range ranges {
		if from, to := max(r[0], low), min(r[1], high); from > 0 && from <= to {
			out = append(out, ledger.Range{from, to})
		}
	}
	return out
}

func countBetween(ranges []ledger.Range, low, high uint64) (count uint64) {
	for _, r := range clip(ranges, low, high) {
		count += r[1] - r[0] + 1
	}
	return count
}

// subtract returns ranges without the numbers of others.
func subtract(ranges, others []ledger.Range) []ledger.Range {
	for _, o := range others {
		var rest []ledger.Range
		for _, r := range ranges {
			if r[1] < o[0] || o[1] < r[0] {
				rest = append(rest, r)
				continue
			}
			if r[0] < o[0] {
				rest = append(rest, ledger.Range{r[0], o[0] - 1})
			}
			if o[1] < r[1] {
				rest = append(rest, ledger.Range{o[1] + 1, r[1]})
			}
		}
		ranges = rest
	}
	return ranges
}

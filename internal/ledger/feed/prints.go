package feed

import (
	"cmp"
	"slices"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

type deviation struct {
	number uint64 // log number, or 0 for an extra
	print  uint64
	at     ledger.Instant
}

// receivedPrints returns the prints that a chain received after its first second. ok reports whether their checksum
// matches.
func (f *Feed) receivedPrints(log int, r *ledger.Record, chain chain) (prints []uint64, ok bool) {
	spans, entries := r.Spans[chain.from:chain.to+1], f.logs[log].Entries
	low, high := numberRange(spans)
	if low == 0 {
		return nil, false
	}
	followersOf, late := f.deviations(log, r, period{spans[0].From, endOf(r, chain)})
	var arrive func(n uint64)
	arrive = func(n uint64) {
		prints = append(prints, entries[n-1].Print)
		followers := followersOf[n]
		delete(followersOf, n)
		for _, d := range followers {
			if d.number > 0 {
				arrive(d.number)
				continue
			}
			prints = append(prints, d.print)
		}
	}
	for _, part := range subtract([]ledger.Range{{low, high}}, r.Holes) {
		for n := part[0]; n <= part[1]; n++ {
			if !late[n] {
				arrive(n)
			}
		}
	}
	count, sum := sumOf(spans)
	if uint64(len(prints)) < count {
		return nil, false
	}
	prints = prints[uint64(len(prints))-count:]
	return prints, checksums(prints)[count] == sum
}

// deviations returns the deviations that arrived in a period, by the number of the message before them. late contains
// the messages that arrived after a message with a higher number, at any time.
func (f *Feed) deviations(log int, r *ledger.Record, span period) (followers map[uint64][]deviation, late map[uint64]bool) {
	followers, late = map[uint64][]deviation{}, map[uint64]bool{}
	if r.Deviations == nil {
		return followers, late
	}
	for _, o := range r.Deviations.Overtakes {
		late[o.Number] = true
		if span.has(o.At) {
			followers[o.By] = append(followers[o.By], deviation{number: o.Number, at: o.At})
		}
	}
	for _, a := range r.Deviations.Repeats {
		if x := &f.logs[log].Extras[a.Extra]; span.has(a.At) {
			followers[x.After] = append(followers[x.After], deviation{print: x.Print, at: a.At})
		}
	}
	for _, list := range followers {
		slices.SortStableFunc(list, func(a, b deviation) int { return cmp.Compare(a.at, b.at) })
	}
	return followers, late
}

// sumOf returns the total number of messages of successive spans, and the checksum of these messages.
func sumOf(spans []ledger.Span) (count uint64, sum ledger.Checksum) {
	for i := range spans {
		count, sum = count+spans[i].Prints, sum.Shift(spans[i].Prints)+ledger.Checksum(spans[i].Sum)
	}
	return count, sum
}

// checksums returns the checksums of the first n prints, for each n.
func checksums(prints []uint64) []ledger.Checksum {
	sums := make([]ledger.Checksum, 1, len(prints)+1)
	for i, p := range prints {
		sums = append(sums, sums[i].Add(p))
	}
	return sums
}

// contradicts reports whether the messages of a chain differ from a part of the series, wherever the chain starts.
func (c *correction) contradicts(chain chain, p part) bool {
	prints, ok := c.receivedPrints(c.log, c.raw, chain)
	if !ok {
		return false
	}
	sums, s, shift := checksums(prints), &c.series, c.offset(c.log, 0)
	from, to := c.source.Spans[chain.from].From+shift, endOf(c.source, chain)+shift
	lag := c.source.MaxLateness + c.Lag(c.log).Abs() + maxSpread
	first, end := s.between(from+c.JoinTime+maxSpread, to-lag) // the stream received the messages of this time
	first, end = max(first, p.first), min(end, p.end)
	if first >= end {
		return false
	}
	for start := end - len(prints); start <= first; start++ { // the index of the first message of the chain
		low, high := max(p.first, start), min(p.end, start+len(prints))
		sum := sums[high-start] - sums[low-start].Shift(uint64(high-low)) // #nosec G115 -- positive
		if sum == s.sum(low, high) {
			return false
		}
	}
	return true
}

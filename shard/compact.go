package shard

import (
	"encoding/binary"
	"encoding/json"
)

// fold is how many neighbouring buckets become one in a folded histogram.
const fold = 4

// Fold is the histogram in some two bytes for each bucket that is not empty, for whoever has to
// keep thousands of them in memory. Four neighbouring buckets become one, so values are 3 % wide
// instead of 0.8; count and maximum stay exact. Its Counts are empty until it is read or written.
func (p *Packed) Fold() *Packed {
	out := binary.AppendUvarint(make([]byte, 0, len(p.Counts)+8), uint64(p.Max)) //nolint:gosec // never negative
	last, end := int64(0), len(p.Counts)-2
	for i := 0; i <= end; {
		index, n := p.Counts[i], p.Counts[i+1]
		if i < end { // the last one stays where it is: it holds the maximum
			index -= index % fold
			for i += 2; i < end && p.Counts[i]-p.Counts[i]%fold == index; i += 2 {
				n += p.Counts[i+1]
			}
		} else {
			i += 2
		}
		out = binary.AppendUvarint(out, uint64(index-last)) //nolint:gosec // they ascend
		out = binary.AppendUvarint(out, uint64(n))          //nolint:gosec // never negative
		last = index
	}
	return &Packed{folded: out}
}

// unfolded is p with its counts.
func (p *Packed) unfolded() *Packed {
	if p.folded == nil {
		return p
	}
	rest := p.folded
	next := func() int64 {
		v, n := binary.Uvarint(rest)
		rest = rest[n:]
		return int64(v) //nolint:gosec // see Fold
	}
	out := &Packed{Highest: highestMicros, Digits: digits, Max: next(), Counts: []int64{}}
	for last := int64(0); len(rest) > 0; {
		index, n := last+next(), next()
		if have := len(out.Counts); have > 0 && index == last { // the last one is the first of its four
			out.Counts[have-1] += n
			continue
		}
		out.Counts = append(out.Counts, index, n)
		last = index
	}
	return out
}

// MarshalJSON writes a folded histogram as any other.
func (p *Packed) MarshalJSON() ([]byte, error) {
	type plain Packed
	return json.Marshal((*plain)(p.unfolded()))
}

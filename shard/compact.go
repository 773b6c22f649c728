package shard

import "encoding/binary"

// fold is how many neighbouring buckets become one in the compact form.
const fold = 4

// Compact is the histogram in some two bytes for each bucket that is not empty, for whoever has
// to keep thousands of them in memory. Four neighbouring buckets become one, so values are 3 %
// wide instead of 0.8; count and maximum stay exact. Expand reads it.
func (p *Packed) Compact() []byte {
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
	return out
}

// Expand is the histogram that Compact made b of. b is trusted: it never leaves the process.
func Expand(b []byte) *Packed {
	next := func() int64 {
		v, n := binary.Uvarint(b)
		b = b[n:]
		return int64(v) //nolint:gosec // see Compact
	}
	p := &Packed{Highest: highestMicros, Digits: digits, Max: next(), Counts: []int64{}}
	for last := int64(0); len(b) > 0; {
		index, n := last+next(), next()
		if have := len(p.Counts); have > 0 && index == last { // the last one is the first of its four
			p.Counts[have-1] += n
			continue
		}
		p.Counts = append(p.Counts, index, n)
		last = index
	}
	return p
}

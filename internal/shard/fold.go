package shard

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
)

// fold is how many neighbouring buckets become one in a folded histogram.
const fold = 4

// Fold is the histogram in a byte or two for each bucket that is not empty, for whoever has to
// keep thousands of them in memory. Four neighbouring buckets become one, so values are 3 % wide
// instead of 0.8; count and maximum stay exact. Its Counts are empty until it is read or written.
//
// The bytes are varints: the maximum, then for each run of neighbours how far its first bucket is
// from the last one before, how many there are, and their counts.
func (p *Packed) Fold() *Packed {
	index, n := p.quartered()
	out := binary.AppendUvarint(make([]byte, 0, 2*len(index)+16), uint64(p.Max)) //nolint:gosec // G115: durations are not negative
	last := int64(0)
	for i := 0; i < len(index); {
		end := i + 1
		for end < len(index) && index[end] == index[end-1]+fold {
			end++
		}
		out = binary.AppendUvarint(out, uint64(index[i]-last)) //nolint:gosec // G115: the index grows
		out = binary.AppendUvarint(out, uint64(end-i))
		for ; i < end; i++ {
			out = binary.AppendUvarint(out, uint64(n[i])) //nolint:gosec // G115: counts are not negative
		}
		last = index[end-1]
	}
	return &Packed{folded: bytes.Clone(out)} // as long as it has to be: it is kept
}

// quartered are index and count of the buckets, four neighbours as the first of them. The last
// bucket stays where it is: it holds the maximum.
func (p *Packed) quartered() (index, n []int64) {
	for i := 0; i < len(p.Counts); i += 2 {
		at := p.Counts[i]
		if i < len(p.Counts)-2 {
			at -= at % fold
			if have := len(index); have > 0 && index[have-1] == at {
				n[have-1] += p.Counts[i+1]
				continue
			}
		}
		index, n = append(index, at), append(n, p.Counts[i+1])
	}
	return index, n
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
		return int64(v) //nolint:gosec // G115: see Fold
	}
	out := newPacked(next())
	for at := int64(0); len(rest) > 0; {
		at += next()
		for left := next(); left > 0; left-- {
			if have := len(out.Counts); have > 0 && out.Counts[have-2] == at { // the last one is the first of its four
				out.Counts[have-1] += next()
			} else {
				out.Counts = append(out.Counts, at, next())
			}
			if left > 1 {
				at += fold
			}
		}
	}
	return out
}

// MarshalJSON writes a folded histogram as any other.
func (p *Packed) MarshalJSON() ([]byte, error) {
	type plain Packed
	return json.Marshal((*plain)(p.unfolded()))
}

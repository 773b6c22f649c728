package shard

import "encoding/binary"

// Compact is the histogram in two to three bytes for each bucket that is not empty, for whoever
// has to keep hundreds of them in memory. Expand reverses it.
func (p *Packed) Compact() []byte {
	out := binary.AppendUvarint(make([]byte, 0, len(p.Counts)+8), uint64(p.Max)) //nolint:gosec // never negative
	last := int64(0)
	for i := 0; i < len(p.Counts); i += 2 {
		out = binary.AppendUvarint(out, uint64(p.Counts[i]-last)) //nolint:gosec // they ascend
		out = binary.AppendUvarint(out, uint64(p.Counts[i+1]))    //nolint:gosec // never negative
		last = p.Counts[i]
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
		last += next()
		p.Counts = append(p.Counts, last, next())
	}
	return p
}

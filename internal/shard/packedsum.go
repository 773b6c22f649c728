package shard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// bars are the ranges of values of all buckets, by HdrHistogram's own numbering of them.
var bars = sync.OnceValue(func() []hdrhistogram.Bar {
	ones := hdrhistogram.New(lowestMicros, highestMicros, digits).Export()
	for i := range ones.Counts {
		ones.Counts[i] = 1
	}
	return hdrhistogram.Import(ones).Distribution()
})

// check refuses what cannot be merged: another range or precision, or what no histogram holds.
func (p *Packed) check() error {
	if p.Highest != highestMicros || p.Digits != digits || len(p.Counts)%2 != 0 || p.Max < 0 || p.Max > highestMicros {
		return fmt.Errorf("histogram of range %d µs and %d digits: this version merges only %d µs and %d digits",
			p.Highest, p.Digits, highestMicros, digits)
	}
	bars, last, top := bars(), int64(-1), hdrhistogram.Bar{}
	for i := 0; i < len(p.Counts); i += 2 {
		index, n := p.Counts[i], p.Counts[i+1]
		if index <= last || index >= int64(len(bars)) || n < 0 || n > maxCount {
			return fmt.Errorf("histogram with a bucket %d of count %d, which cannot be", index, n)
		}
		if last = index; n > 0 {
			top = bars[index]
		}
	}
	if p.Max < top.From || p.Max > top.To {
		return fmt.Errorf("histogram with a maximum of %d µs, but its last bucket ends at %d µs", p.Max, top.To)
	}
	return nil
}

// A packedSum adds up histograms at rest, and takes no more memory than one: a large run has a
// million of them, and a shard may tell of as many buckets as it likes.
type packedSum struct {
	counts []int64 // index and count of the buckets that are not empty, in order
	max    int64
	known  bool
}

// add adds a histogram, with room that a caller keeps from one to the next.
func (s *packedSum) add(p *Packed, room *[]int64) error {
	p = p.unfolded()
	if err := p.check(); err != nil {
		return err
	}
	out, rest := (*room)[:0], s.counts
	for i := 0; i < len(p.Counts); i += 2 {
		index, n := p.Counts[i], p.Counts[i+1]
		for len(rest) > 0 && rest[0] < index {
			out, rest = append(out, rest[0], rest[1]), rest[2:]
		}
		if len(rest) > 0 && rest[0] == index {
			n, rest = n+rest[1], rest[2:]
		}
		if n > 0 {
			out = append(out, index, n)
		}
	}
	out = append(out, rest...)
	s.counts, s.max, s.known, *room = append(s.counts[:0], out...), max(s.max, p.Max), true, out
	return nil
}

func (s *packedSum) pack() *Packed {
	return &Packed{Highest: highestMicros, Digits: digits, Max: s.max, Counts: append(pairs{}, s.counts...)}
}

// packedOf leaves out the buckets that are empty.
func packedOf(counts []int64, highest int64) *Packed {
	p := &Packed{Highest: highestMicros, Digits: digits, Max: highest, Counts: []int64{}}
	for i, n := range counts {
		if n != 0 {
			p.Counts = append(p.Counts, int64(i), n)
		}
	}
	return p
}

// pairs are index and count of buckets, one after the other.
type pairs []int64

// UnmarshalJSON reads [1,2,…] without reflection: a large run has fifty million of these numbers.
// What is written in another way it leaves to encoding/json.
func (p *pairs) UnmarshalJSON(text []byte) error {
	out := make([]int64, 0, 1+bytes.Count(text, []byte{','}))
	n, digits := int64(0), 0
	for i, c := range text {
		switch {
		case i == 0 && c == '[':
		case c >= '0' && c <= '9' && digits < 18 && (digits == 0 || n > 0):
			n, digits = 10*n+int64(c-'0'), digits+1
		case digits > 0 && (c == ',' || c == ']' && i == len(text)-1):
			out, n, digits = append(out, n), 0, 0
		default:
			return json.Unmarshal(text, (*[]int64)(p))
		}
	}
	*p = out
	return nil
}

package shard

import (
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

// A packedSum adds up histograms at rest. A large run has a million of them, and unpacking one
// takes longer than adding it.
type packedSum struct {
	counts []int64 // by bucket
	max    int64
}

func (s *packedSum) add(p *Packed) error {
	if err := p.check(); err != nil {
		return err
	}
	if s.counts == nil {
		s.counts = make([]int64, len(bars()))
	}
	for i := 0; i < len(p.Counts); i += 2 {
		s.counts[p.Counts[i]] += p.Counts[i+1]
	}
	s.max = max(s.max, p.Max)
	return nil
}

func (s *packedSum) pack() *Packed { return packedOf(s.counts, s.max) }

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

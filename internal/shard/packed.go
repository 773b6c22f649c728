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

// Packed is a histogram at rest: some hundred bytes instead of 26 KB. Counts lists index,
// count pairs of the buckets that are not empty, in HdrHistogram's own numbering of buckets.
type Packed struct {
	Highest int64 `json:"highest_us"`
	Digits  int64 `json:"digits"`
	Max     int64 `json:"max_us"`
	Counts  pairs `json:"counts"`

	folded []byte // instead of all these; see Fold
}

func newPacked(highest int64) *Packed {
	return &Packed{Highest: highestMicros, Digits: digits, Max: highest, Counts: pairs{}}
}

// Unpack refuses a histogram of another range or precision: it could not be merged.
func (p *Packed) Unpack() (*Histogram, error) {
	p = p.unfolded()
	if err := p.check(); err != nil {
		return nil, err
	}
	snapshot := hdrhistogram.New(lowestMicros, highestMicros, digits).Export()
	for i := 0; i < len(p.Counts); i += 2 {
		snapshot.Counts[p.Counts[i]] = p.Counts[i+1]
	}
	return &Histogram{h: hdrhistogram.Import(snapshot), max: p.Max}, nil
}

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

// add adds the counts of other, and takes no more memory than one of them: a large run has a million. The
// caller keeps room from one to the next.
func (p *Packed) add(other *Packed, room *[]int64) error {
	other = other.unfolded()
	if err := other.check(); err != nil {
		return err
	}
	out, rest := (*room)[:0], p.Counts
	for i := 0; i < len(other.Counts); i += 2 {
		index, n := other.Counts[i], other.Counts[i+1]
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
	p.Counts, p.Max, *room = append(p.Counts[:0], out...), max(p.Max, other.Max), out
	return nil
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

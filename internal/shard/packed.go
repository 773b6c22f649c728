package shard

import (
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// bars returns the ranges of values of all buckets, by the index that HdrHistogram gives them.
var bars = sync.OnceValue(func() []hdrhistogram.Bar {
	ones := hdrhistogram.New(lowestMicros, highestMicros, digits).Export()
	for i := range ones.Counts {
		ones.Counts[i] = 1
	}
	return hdrhistogram.Import(ones).Distribution()
})

// Packed is a stored histogram: some hundred bytes instead of 26 KB. HdrHistogram's own encoding compresses each one with zlib: to
// decode the 720,000 histograms of a large run would take longer than the rest of its merge.
type Packed struct {
	Max int64 `json:"max_us"`
	// Counts lists the buckets with a count, by their index in HdrHistogram: the distance to the previous one, and the count, as
	// varints. The distance of the first is to −1.
	Counts []byte `json:"counts"`
}

// Unpack returns the histogram. It refuses impossible counts.
func (p *Packed) Unpack() (*Histogram, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	snapshot := hdrhistogram.New(lowestMicros, highestMicros, digits).Export()
	for c := newBucketReader(p.Counts); c.next(); {
		snapshot.Counts[c.index] = c.count
	}
	return &Histogram{h: hdrhistogram.Import(snapshot), max: p.Max}, nil
}

// check refuses impossible counts.
func (p *Packed) check() error {
	bars, top := bars(), hdrhistogram.Bar{}
	c := newBucketReader(p.Counts)
	for c.next() {
		if c.count < 1 || c.count > maxCount {
			return fmt.Errorf("histogram with a bucket %d of count %d, which cannot be", c.index, c.count)
		}
		top = bars[c.index]
	}
	switch {
	case len(c.rest) > 0:
		return fmt.Errorf("histogram with buckets that cannot be read after bucket %d", c.index)
	case p.Max < top.From || p.Max > top.To:
		return fmt.Errorf("histogram with a maximum of %d µs, but its last bucket ends at %d µs", p.Max, top.To)
	}
	return nil
}

// add adds the counts of other. It reuses room, which the caller keeps between calls, because a large run has a
// million histograms.
func (p *Packed) add(other *Packed, room *[]byte) error {
	if err := other.check(); err != nil {
		return err
	}
	sum := newBucketWriter((*room)[:0])
	a, b := newBucketReader(p.Counts), newBucketReader(other.Counts)
	moreA, moreB := a.next(), b.next()
	for moreA || moreB {
		switch {
		case !moreB || moreA && a.index < b.index:
			sum.write(a.index, a.count)
			moreA = a.next()
		case !moreA || b.index < a.index:
			sum.write(b.index, b.count)
			moreB = b.next()
		default:
			sum.write(a.index, a.count+b.count)
			moreA, moreB = a.next(), b.next()
		}
	}
	p.Counts, p.Max, *room = append(p.Counts[:0], sum.text...), max(p.Max, other.Max), sum.text
	return nil
}

// A bucketReader reads Packed.Counts.
type bucketReader struct {
	rest         []byte
	index, count int64
	last         int64 // bucket that a histogram has
}

func newBucketReader(counts []byte) bucketReader {
	return bucketReader{rest: counts, index: -1, last: int64(len(bars())) - 1}
}

// next reads the next bucket. It returns false at the end, and at invalid data.
func (r *bucketReader) next() bool {
	distance, n := binary.Uvarint(r.rest)
	if n <= 0 || distance < 1 || distance > uint64(r.last-r.index) { // #nosec G115 -- index is at most last
		return false
	}
	count, m := binary.Uvarint(r.rest[n:])
	if m <= 0 {
		return false
	}
	r.rest = r.rest[n+m:]
	r.index += int64(distance) // #nosec G115 -- below the number of buckets
	r.count = int64(count)     // #nosec G115 -- check rejects negative counts
	return true
}

// A bucketWriter writes Packed.Counts.
type bucketWriter struct {
	text []byte
	last int64
}

func newBucketWriter(room []byte) bucketWriter { return bucketWriter{text: room, last: -1} }

func (w *bucketWriter) write(index, count int64) {
	w.text = binary.AppendUvarint(w.text, uint64(index-w.last)) // #nosec G115 -- indexes increase
	w.text = binary.AppendUvarint(w.text, uint64(count))        // #nosec G115 -- counts are positive
	w.last = index
}

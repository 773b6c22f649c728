package shard

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// bars returns the ranges of values of all buckets of a Histogram by index.
var bars = sync.OnceValue(func() []hdrhistogram.Bar {
	ones := hdrhistogram.New(lowestMicros, highestMicros, digits).Export()
	for i := range ones.Counts {
		ones.Counts[i] = 1
	}
	return hdrhistogram.Import(ones).Distribution()
})

// Packed is a stored histogram of a few hundred bytes instead of 26 KB. HdrHistogram's own encoding uses zlib, and
// decoding the 720,000 histograms of a large run would take longer than the rest of the merge.
type Packed struct {
	Max int64 `json:"max_us"`
	// Counts has two varints for each non-empty bucket: the distance of its index in HdrHistogram to the previous one,
	// and the count. The first distance is relative to −1.
	Counts []byte `json:"counts"`
}

// Unpack returns the histogram, or an error if it is invalid; see check.
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

// check returns an error for unreadable buckets, impossible counts, or a maximum that is not in the last bucket.
func (p *Packed) check() error {
	bars, top := bars(), hdrhistogram.Bar{}
	c := newBucketReader(p.Counts)
	for c.next() {
		if c.count < 1 || c.count > maxCount {
			return fmt.Errorf("histogram has the impossible count %[2]d in bucket %[1]d", c.index, c.count)
		}
		top = bars[c.index]
	}
	switch {
	case len(c.unread) > 0:
		return fmt.Errorf("histogram has unreadable buckets after bucket %d", c.index)
	case p.Max < top.From || p.Max > top.To:
		return fmt.Errorf("histogram has a maximum of %d µs, but its last bucket ends at %d µs", p.Max, top.To)
	}
	return nil
}

// add adds the counts of other. The caller reuses the buffer, because a large run has a million histograms.
func (p *Packed) add(other *Packed, buffer *[]byte) error {
	if err := other.check(); err != nil {
		return err
	}
	sum := newBucketWriter((*buffer)[:0])
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
	p.Counts, p.Max, *buffer = append(p.Counts[:0], sum.text...), max(p.Max, other.Max), sum.text
	return nil
}

// addPacked adds a histogram to a sum. Either may be nil.
func addPacked(sum **Packed, more *Packed, buffer *[]byte) error {
	if more == nil {
		return nil
	}
	result := cmp.Or(*sum, &Packed{})
	if err := result.add(more, buffer); err != nil {
		return err
	}
	*sum = result
	return nil
}

type bucketReader struct {
	unread       []byte
	index, count int64
	last         int64 // index of the last bucket of a histogram
}

func newBucketReader(counts []byte) bucketReader {
	return bucketReader{unread: counts, index: -1, last: int64(len(bars())) - 1}
}

// next reads the next bucket. It returns false at the end and at invalid data.
func (r *bucketReader) next() bool {
	distance, n := binary.Uvarint(r.unread)
	if n <= 0 || distance < 1 || distance > uint64(r.last-r.index) { // #nosec G115 -- index is at most last
		return false
	}
	count, m := binary.Uvarint(r.unread[n:])
	if m <= 0 {
		return false
	}
	r.unread = r.unread[n+m:]
	r.index += int64(distance) // #nosec G115 -- below the number of buckets
	r.count = int64(count)     // #nosec G115 -- check rejects negative counts
	return true
}

type bucketWriter struct {
	text []byte
	last int64
}

func newBucketWriter(buffer []byte) bucketWriter { return bucketWriter{text: buffer, last: -1} }

// write appends a bucket. Indexes must increase.
func (w *bucketWriter) write(index, count int64) {
	w.text = binary.AppendUvarint(w.text, uint64(index-w.last)) // #nosec G115 -- indexes increase
	w.text = binary.AppendUvarint(w.text, uint64(count))        // #nosec G115 -- counts are positive
	w.last = index
}

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

// Packed is a stored histogram of a few hundred bytes instead of 27 KB. HdrHistogram's own encoding uses zlib, and
// decoding the 720,000 histograms of a large run would take longer than the rest of the merge.
type Packed struct {
	Max int64 `json:"max_us"`
	// Counts has two varints for each non-empty bucket: the distance of its index in HdrHistogram from the previous
	// index, and the count. The first distance is relative to −1.
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
	c := newBucketReader(p.Counts)
	for c.next() {
		if c.count < 1 || c.count > maxCount {
			return fmt.Errorf("histogram has the impossible count %[2]d in bucket %[1]d", c.index, c.count)
		}
	}
	var top hdrhistogram.Bar
	if c.index >= 0 {
		top = bars()[c.index]
	}
	switch {
	case c.offset < len(c.counts):
		return fmt.Errorf("histogram has unreadable buckets from byte %d on", c.offset)
	case c.index < 0 && p.Max != 0:
		return fmt.Errorf("histogram has a maximum of %d µs, but no buckets", p.Max)
	case p.Max < top.From || p.Max > top.To:
		return fmt.Errorf("histogram has a maximum of %d µs, but its last bucket is %d to %d µs", p.Max, top.From, top.To)
	}
	return nil
}

// A packedBuffer is memory that additions share, because a large run has a million histograms.
type packedBuffer struct {
	counts []int64 // by index; 0 between two additions
	text   []byte
}

// add adds valid histograms. Packing the sum is the most expensive step, so it is faster to add several in one call.
func (p *Packed) add(buffer *packedBuffer, others ...*Packed) {
	if buffer.counts == nil {
		buffer.counts = make([]int64, len(bars()))
	}
	last := buffer.unpack(p)
	for _, other := range others {
		last, p.Max = max(last, buffer.unpack(other)), max(p.Max, other.Max)
	}
	counts := buffer.counts[:last+1]
	sum := newBucketWriter(buffer.text[:0])
	for i, n := range counts {
		if n > 0 {
			sum.write(int64(i), n)
		}
	}
	clear(counts)
	p.Counts, buffer.text = append(p.Counts[:0], sum.text...), sum.text
}

// unpack adds a histogram to counts, and returns the index of its last bucket (−1: empty).
func (b *packedBuffer) unpack(p *Packed) (last int64) {
	c := newBucketReader(p.Counts)
	for c.next() {
		b.counts[c.index] += c.count
	}
	return c.index
}

// addPacked adds a histogram to a sum. Either may be nil.
func addPacked(sum **Packed, other *Packed, buffer *packedBuffer) error {
	if other == nil {
		return nil
	}
	if err := other.check(); err != nil {
		return err
	}
	*sum = cmp.Or(*sum, &Packed{})
	(*sum).add(buffer, other)
	return nil
}

type bucketReader struct {
	counts       []byte
	offset       int // of the next bucket in counts
	index, count int64
	last         int64 // index of the last bucket of a histogram
}

func newBucketReader(counts []byte) bucketReader {
	return bucketReader{counts: counts, index: -1, last: int64(len(bars())) - 1}
}

// next reads the next bucket. It returns false at the end and at invalid data.
func (r *bucketReader) next() bool {
	unread := r.counts[r.offset:]
	var distance, count uint64
	if len(unread) > 1 && unread[0]|unread[1] < 0x80 { // two varints of one byte, as in most buckets
		distance, count = uint64(unread[0]), uint64(unread[1])
		unread = unread[2:]
	} else {
		var n, m int
		if distance, n = binary.Uvarint(unread); n <= 0 {
			return false
		}
		if count, m = binary.Uvarint(unread[n:]); m <= 0 {
			return false
		}
		unread = unread[n+m:]
	}
	if distance < 1 || distance > uint64(r.last-r.index) { // #nosec G115 -- index is at most last
		return false
	}
	r.offset = len(r.counts) - len(unread)
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

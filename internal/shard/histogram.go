package shard

import (
	"encoding/json"
	"iter"
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Every histogram covers 1 µs to 2 h with two significant digits: the error of a value is at most 0.8 %.
const (
	lowestMicros  = 1
	highestMicros = int64(2 * time.Hour / time.Microsecond)
	digits        = 2
	maxCount      = 1 << 48 // maximum count of a bucket, so that sums over runners do not overflow
)

// A Histogram counts durations in microseconds. Merging adds counts, so percentiles of a merged histogram are as
// exact as percentiles of a single histogram. A Histogram is not safe for concurrent use.
type Histogram struct {
	h   *hdrhistogram.Histogram
	max int64 // longest duration in microseconds, exact
}

// NewHistogram returns an empty histogram of about 27 KB.
func NewHistogram() *Histogram {
	return &Histogram{h: hdrhistogram.New(lowestMicros, highestMicros, digits)}
}

// Record counts a duration, limited to the range.
func (h *Histogram) Record(d time.Duration) {
	us := min(max(d.Microseconds(), 0), highestMicros)
	h.max = max(h.max, us)
	_ = h.h.RecordValue(us) // the value is in range
}

// Merge adds the counts of other, which may be nil.
func (h *Histogram) Merge(other *Histogram) {
	if other == nil {
		return
	}
	h.h.Merge(other.h)
	h.max = max(h.max, other.max)
}

// Copy returns a copy, or nil if h is nil.
func (h *Histogram) Copy() *Histogram {
	if h == nil {
		return nil
	}
	return &Histogram{h: h.h.Clone(), max: h.max}
}

// MergeShifted adds the counts of other at the values plus d, limited to the range.
func (h *Histogram) MergeShifted(other *Histogram, d time.Duration) {
	for bar, n := range other.nonEmptyBuckets() {
		us := min(max(min(bar.To, other.max)+d.Microseconds(), 0), highestMicros)
		_ = h.h.RecordValues(us, n)
	}
	if other.Count() > 0 {
		h.max = max(h.max, min(max(other.max+d.Microseconds(), 0), highestMicros))
	}
}

// Since returns the durations that h has recorded since earlier was copied from it, or h if earlier is nil. The maximum
// of the result has the precision of a bucket.
func (h *Histogram) Since(earlier *Histogram) *Histogram {
	if earlier == nil {
		return h
	}
	snapshot := h.h.Export()
	for i, n := range earlier.h.Export().Counts {
		snapshot.Counts[i] -= n
	}
	recent := hdrhistogram.Import(snapshot)
	return &Histogram{h: recent, max: min(recent.Max(), h.max)}
}

// Reset empties the histogram.
func (h *Histogram) Reset() { h.h.Reset(); h.max = 0 }

// Count returns the number of durations.
func (h *Histogram) Count() int64 { return h.h.TotalCount() }

// Max returns the longest duration, exactly.
func (h *Histogram) Max() time.Duration { return time.Duration(h.max) * time.Microsecond }

// Mean returns the mean, as exact as the buckets, or 0 if h is empty.
func (h *Histogram) Mean() time.Duration {
	return time.Duration(h.h.Mean() * float64(time.Microsecond))
}

// Quantile returns the quantile q (0 to 1) by nearest rank: the p99 of 60 durations is the 60th, because 59 are only
// 98.3 %. It returns 0 if h is empty.
func (h *Histogram) Quantile(q float64) time.Duration {
	n := float64(h.Count())
	if n == 0 {
		return 0
	}
	// In binary, .07 × 100 is above 7, so the product is lowered before it is rounded up to a whole rank.
	rank := math.Ceil(q * n * (1 - 1e-12))
	return min(time.Duration(h.h.ValueAtPercentile(100*rank/n))*time.Microsecond, h.Max())
}

// CountBy counts the durations between increasing edges, and beyond both ends. A bucket that contains an edge counts
// as below it.
func (h *Histogram) CountBy(edges []time.Duration) []int64 {
	out := make([]int64, len(edges)+1)
	row := 0
	for bar, n := range h.nonEmptyBuckets() {
		for row < len(edges) && bar.From > edges[row].Microseconds() {
			row++
		}
		out[row] += n
	}
	return out
}

func (h *Histogram) nonEmptyBuckets() iter.Seq2[hdrhistogram.Bar, int64] {
	return func(yield func(hdrhistogram.Bar, int64) bool) {
		bars := bars()
		for i, n := range h.h.Export().Counts {
			if n > 0 && !yield(bars[i], n) {
				return
			}
		}
	}
}

// Pack returns the histogram in its stored form.
func (h *Histogram) Pack() *Packed { return h.pack(1) }

// PackCoarse returns the stored form, with each group of four adjacent buckets joined into one. The error of a
// value grows from 0.8 % to at most 3 %; count and maximum stay exact. A runner keeps thousands of these forms.
func (h *Histogram) PackCoarse() *Packed { return h.pack(4) }

// pack joins width adjacent buckets into the first one. It keeps the last bucket, which has the maximum.
func (h *Histogram) pack(width int64) *Packed {
	counts := h.h.Export().Counts
	last := len(counts) - 1
	for last >= 0 && counts[last] == 0 {
		last--
	}
	w, at, sum := newBucketWriter(nil), int64(-1), int64(0)
	for i, n := range counts[:last+1] {
		index := int64(i)
		if i < last {
			index -= index % width
		}
		if index != at && sum > 0 {
			w.write(at, sum)
			sum = 0
		}
		at, sum = index, sum+n
	}
	if sum > 0 {
		w.write(at, sum)
	}
	return &Packed{Max: h.max, Counts: append([]byte{}, w.text...)} // exact capacity, because the result is kept
}

// MarshalJSON writes the packed form.
func (h *Histogram) MarshalJSON() ([]byte, error) { return json.Marshal(h.Pack()) }

// UnmarshalJSON reads the packed form.
func (h *Histogram) UnmarshalJSON(b []byte) error {
	var p Packed
	if err := json.Unmarshal(b, &p); err != nil {
		return err
	}
	unpacked, err := p.Unpack()
	if err != nil {
		return err
	}
	*h = *unpacked
	return nil
}

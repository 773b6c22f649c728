package shard

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// latenessBatch is the number of histograms of one time that a Merger adds to the sum at once.
const latenessBatch = 8

// addSeries adds the buckets of a shard to the buckets of the same time. It records unreadable lateness as a read
// error.
func (g *Merger) addSeries(s *Shard) {
	var err error
	for _, b := range s.Series {
		if g.buckets[b.Unix] == nil {
			g.buckets[b.Unix] = &bucketSum{Bucket: Bucket{Unix: b.Unix}}
		}
		sum := g.buckets[b.Unix]
		sum.addCounts(b)
		if b.Lateness == nil {
			continue
		}
		if failure := b.Lateness.check(); failure != nil {
			err = failure
			continue
		}
		if sum.pending = append(sum.pending, b.Lateness); len(sum.pending) == latenessBatch {
			sum.addPending(&g.buffer)
		}
	}
	if err != nil {
		g.readErrors = append(g.readErrors, fmt.Sprintf("unreadable series of runner %d: %v", s.Runner.Index, err))
	}
}

type bucketSum struct {
	Bucket
	pending []*Packed // valid Lateness that is not in Bucket.Lateness yet
}

func (b *bucketSum) addPending(buffer *packedBuffer) {
	if len(b.pending) == 0 {
		return
	}
	b.Lateness = cmp.Or(b.Lateness, &Packed{})
	b.Lateness.add(buffer, b.pending...)
	clear(b.pending) // the histograms may be freed
	b.pending = b.pending[:0]
}

// SumBuckets adds buckets of the same time. If it returns an error, their lateness is unreadable; other sums are valid.
func SumBuckets(buckets []Bucket) (sum Bucket, err error) {
	var buffer packedBuffer
	for _, b := range buckets {
		sum.Unix = b.Unix
		sum.addCounts(b)
		err = cmp.Or(addPacked(&sum.Lateness, b.Lateness, &buffer), err)
	}
	return sum, err
}

// addCounts adds the fields of another bucket, except Unix, Undisturbed and Lateness.
func (b *Bucket) addCounts(o Bucket) {
	b.Open += o.Open
	b.Opened += o.Opened
	b.ConnectUS += o.ConnectUS
	b.Closed += o.Closed
	b.Noops += o.Noops
	b.Late += o.Late
	b.Faults += o.Faults
	b.ProcessUsage.add(o.ProcessUsage)
	if o.Control != nil {
		if b.Control == nil {
			b.Control = &ControlCounts{}
		}
		b.Control.Add(*o.Control)
	}
}

// add adds the resources of another runner. GCPauseUS and StallMS become the maxima of both.
func (p *ProcessUsage) add(o ProcessUsage) {
	p.RSS += o.RSS
	p.HeapLive += o.HeapLive
	p.CPUPercent += o.CPUPercent
	p.Goroutines += o.Goroutines
	p.Files += o.Files
	p.Threads += o.Threads
	p.RunDelayMS += o.RunDelayMS
	p.StallMS = max(p.StallMS, o.StallMS)
	p.GCPauseUS = max(p.GCPauseUS, o.GCPauseUS)
}

func valuesByKey[K cmp.Ordered, V any](sums map[K]*V) []V {
	out := make([]V, 0, len(sums))
	for _, key := range slices.Sorted(maps.Keys(sums)) {
		out = append(out, *sums[key])
	}
	return out
}

package shard

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// latenessBatch is the number of histograms of one time that a Merger adds to the sum at once.
const latenessBatch = 8

// bucketSums has sums over the runners by the start of the buckets.
type bucketSums map[int64]*bucketSum

// addSeries adds the buckets of a shard to the buckets of the same time. It records unreadable lateness as a read
// error.
func (g *Merger) addSeries(s *Shard) {
	g.lacksPoints = g.lacksPoints || len(s.Points) == 0 && len(s.Series) > 0
	err := g.buckets.add(s.Series, &g.buffer)
	if err = cmp.Or(err, g.points.add(s.Points, &g.buffer)); err != nil {
		g.readErrors = append(g.readErrors, fmt.Sprintf("unreadable series of runner %d: %v", s.Runner.Index, err))
	}
}

func (g bucketSums) add(series []Bucket, buffer *packedBuffer) (err error) {
	for _, b := range series {
		if g[b.Unix] == nil {
			g[b.Unix] = &bucketSum{Bucket: Bucket{Unix: b.Unix}}
		}
		sum := g[b.Unix]
		sum.addCounts(b)
		if b.Lateness == nil {
			continue
		}
		if failure := b.Lateness.check(); failure != nil {
			err = failure
			continue
		}
		if sum.pending = append(sum.pending, b.Lateness); len(sum.pending) == latenessBatch {
			sum.addPending(buffer)
		}
	}
	return err
}

func (g bucketSums) buckets(buffer *packedBuffer) []Bucket {
	out := make([]Bucket, 0, len(g))
	for _, unix := range slices.Sorted(maps.Keys(g)) {
		g[unix].addPending(buffer)
		out = append(out, g[unix].Bucket)
	}
	return out
}

// Timeline returns the buckets for charts, and their width: the points of a short run, or the series.
func (m *Merged) Timeline() (buckets []Bucket, width time.Duration) {
	if len(m.Points) > 0 {
		return m.Points, PointWidth
	}
	return m.Series, BucketWidth
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

// SumBuckets returns the sums of the buckets of each time. It omits unreadable lateness.
func SumBuckets(buckets []Bucket) []Bucket {
	var buffer packedBuffer
	sums := bucketSums{}
	_ = sums.add(buckets, &buffer)
	return sums.buckets(&buffer)
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

// add adds the resources of another runner. It keeps the larger GCPauseUS and StallMS.
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

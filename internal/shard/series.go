package shard

import (
	"cmp"
	"fmt"
	"slices"
)

// bucketSum is a bucket of several runners while it is being added up.
type bucketSum struct {
	Bucket
	lateness packedSum
}

func (g *Merger) addSeries(s *Shard) {
	var err error
	for _, b := range s.Series {
		sum := g.buckets[b.Unix]
		if sum == nil {
			sum = &bucketSum{Bucket: Bucket{Unix: b.Unix}}
			g.buckets[b.Unix] = sum
		}
		sum.add(b)
		if b.Lateness == nil {
			continue
		}
		if one := sum.lateness.add(b.Lateness, &g.room); one != nil {
			err = one
		}
	}
	if err != nil {
		g.broken = append(g.broken, fmt.Sprintf("the series of runner %d cannot be read: %v", s.Runner.Index, err))
	}
}

func (s *bucketSum) add(b Bucket) {
	s.Open += b.Open
	s.Opened += b.Opened
	s.Closed += b.Closed
	s.Noops += b.Noops
	s.Late += b.Late
	s.Faults += b.Faults
	s.Process.add(b.Process)
}

func (p *Process) add(o Process) {
	p.RSS += o.RSS
	p.HeapLive += o.HeapLive
	p.CPUPercent += o.CPUPercent
	p.Goroutines += o.Goroutines
	p.Files += o.Files
	p.RunDelayMS += o.RunDelayMS
	p.StallMS = max(p.StallMS, o.StallMS)
	p.GCPauseUS = max(p.GCPauseUS, o.GCPauseUS)
}

func sortedBuckets(sums map[int64]*bucketSum) []Bucket {
	out := make([]Bucket, 0, len(sums))
	for _, s := range sums {
		if s.lateness.known {
			s.Bucket.Lateness = s.lateness.pack()
		}
		out = append(out, s.Bucket)
	}
	slices.SortFunc(out, func(a, b Bucket) int { return cmp.Compare(a.Unix, b.Unix) })
	return out
}

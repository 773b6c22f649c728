package shard

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// addSeries adds the buckets of a shard to those of the same time. It records unreadable lateness as a read error.
func (g *Merger) addSeries(s *Shard) {
	var err error
	for _, b := range s.Series {
		if g.buckets[b.Unix] == nil {
			g.buckets[b.Unix] = &Bucket{Unix: b.Unix}
		}
		err = cmp.Or(g.buckets[b.Unix].add(b, &g.buffer), err)
	}
	if err != nil {
		g.readErrors = append(g.readErrors, fmt.Sprintf("unreadable series of runner %d: %v", s.Runner.Index, err))
	}
}

// SumBuckets adds buckets of the same time. If it returns an error, their lateness is unreadable; other sums are valid.
func SumBuckets(buckets []Bucket) (sum Bucket, err error) {
	var buffer []byte
	for _, b := range buckets {
		sum.Unix = b.Unix
		err = cmp.Or(sum.add(b, &buffer), err)
	}
	return sum, err
}

// add adds the bucket of another runner, without Undisturbed. See Packed.add for the buffer and the error.
func (b *Bucket) add(o Bucket, buffer *[]byte) error {
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
	return addPacked(&b.Lateness, o.Lateness, buffer)
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

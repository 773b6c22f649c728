package soak

import (
	"time"

	"github.com/sse-soak/sse-soak/internal/shard"
)

// samplePoints ends the points of a short run at each full second, until stop is closed. It has its own sampler and
// stall probe, so that verdicts do not depend on points.
func (o *soakOutput) samplePoints() {
	sampler, stalls := newSampler(shard.PointWidth), new(stallProbe)
	o.running.Go(func() { stalls.run(o.stop) })
	o.recorder.startPoints()
	for running := true; running; {
		now := o.recorder.wall(time.Now())
		end := now.Truncate(shard.PointWidth).Add(shard.PointWidth)
		select {
		case <-o.stop:
			running = false
		case <-time.After(end.Sub(now)):
		}
		s := sampler.sample()
		s.StallMS = stalls.takeLongest().Milliseconds()
		o.recorder.endPoints(end, s)
	}
}

// startPoints makes the tally record the lateness in each point.
func (t *tally) startPoints() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pointLateness = shard.NewHistogram()
}

// endPoints ends all points before a time. After a stall it ends several points, and the first of them has all counts.
func (t *tally) endPoints(end time.Time, s shard.ProcessUsage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.point.Unix < end.Unix() && len(t.points) < shard.MaxPoints {
		t.point.Open, t.point.ProcessUsage, t.point.Lateness = t.open, s, packNonEmpty(t.pointLateness)
		t.pointLateness.Reset()
		t.points = append(t.points, t.point)
		t.point = shard.Bucket{Unix: t.point.Unix + 1}
	}
}

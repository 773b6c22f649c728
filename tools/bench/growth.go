package main

import (
	"fmt"
	"time"

	"github.com/sse-soak/sse-soak/internal/resources"
	"github.com/sse-soak/sse-soak/internal/shard"
)

const (
	growthSample = 2 * time.Second
	growthPoints = 12              // of the line, at least
	growthGroup  = 2 * time.Minute // of which the lowest sample counts: Go collects at least this often
	growthPerVU  = 50              // as `make soak` plans
)

// measureGrowth watches the memory of a runner that only holds connections, as a soak has it: no
// collection is forced, nothing is asked of it.
func (b *bench) measureGrowth() []Metric {
	n := b.growing
	s := b.startService(n, time.Second, false)
	defer s.stop()
	before := s.counts()
	c := s.startRunner(soakScript, n, growthPerVU)
	defer c.kill()
	// The heap has to find the size it keeps, and rarely used code to be loaded, before a slope
	// means anything.
	settle := min(b.growth, 10*time.Minute)
	s.hold(c, n, settle)
	var rss, live memory
	began, told := time.Now(), time.Now()
	for time.Since(began) < b.growth {
		b.sleep(growthSample)
		rss.add(time.Since(began), sum(c.pids(), rssOf))
		if time.Since(told) > time.Minute {
			told = time.Now()
			if open := s.counts().open; open != n {
				check(fmt.Errorf("the backend holds %d of %d streams after %v: %w", open, n, told.Sub(began).Truncate(time.Second), errUnaccounted))
			}
			b.say("  %v of %v: %.1f MB", time.Since(began).Truncate(time.Second), b.growth, rss.mb[len(rss.mb)-1])
		}
	}
	ended := time.Now()
	s.quiet()
	received := s.finish(c, before)
	for _, bucket := range c.shard().Series {
		if at := time.Unix(bucket.Unix, 0).Add(shard.BucketWidth); at.After(began) && at.Before(ended) {
			live.add(at.Sub(began), float64(bucket.HeapLive))
		}
	}
	group := min(growthGroup, b.growth/growthPoints)
	return []Metric{
		rss.slope("growth of RSS", group).means("slope of RSS, median %s MB, of a runner with %d connections, %d to a VU as `make soak` plans (%s), "+
			"over %v from %v after the ramp on, the lowest of every %v; a noop per second, so this time stands for %v of noops at 15 s; %d received, none missed",
			short(median(rss.mb)), n, growthPerVU, soakScript, b.growth, settle, group, 15*b.growth, received),
		live.slope("growth of heap in use", group).means(
			"slope of what each garbage collection left in use, median %s MB, of the same", short(median(live.mb))),
	}
}

// memory is what was in use in the course of time.
type memory struct{ hours, mb []float64 }

func (m *memory) add(at time.Duration, bytes float64) {
	m.hours, m.mb = append(m.hours, at.Hours()), append(m.mb, bytes/mb)
}

func (m *memory) slope(name string, group time.Duration) Metric {
	line, ok := resources.SlopeOf(lowest(m.hours, m.mb, group.Hours()))
	if !ok {
		check(fmt.Errorf("%s: a slope needs at least %d points", name, resources.LeastPoints))
	}
	return Metric{Name: name, Unit: "MB/h", Value: line.PerUnit, Low: line.Low, High: line.High, Interval: true, Limit: limitGrowthMB}
}

// lowest thins a series, whose x ascends: of each stretch of width the lowest point. Between two
// garbage collections memory only rises; what it falls back to is what is kept. The last stretch,
// which may be cut short, is left out.
func lowest(x, y []float64, width float64) (tx, ty []float64) {
	from, least := 0, 0
	for i := range x {
		if x[i] >= x[from]+width {
			tx, ty = append(tx, x[least]), append(ty, y[least])
			from, least = i, i
		}
		if y[i] < y[least] {
			least = i
		}
	}
	return tx, ty
}

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/sse-soak/sse-soak/internal/shard"
)

const (
	limitGrowthMB = 1
	growthSample  = 2 * time.Second
	growthPoints  = 12              // of the line, at least
	growthGroup   = 2 * time.Minute // of which the lowest sample counts: Go collects at least this often
	growthPerVU   = 50              // as `make soak` plans
)

// measureGrowth watches the memory of a runner that only holds connections, as a soak has it: no
// collection is forced, nothing is asked of it.
func measureGrowth(ctx context.Context, o *options) ([]Figure, error) {
	n := o.size.growth
	s, err := o.startService(ctx, n, time.Second, false)
	if err != nil {
		return nil, err
	}
	defer s.stop(ctx)
	before, err := s.counts(ctx)
	if err != nil {
		return nil, err
	}
	c, err := o.startRunner(s, soakScript, n, growthPerVU)
	if err != nil {
		return nil, err
	}
	defer c.kill()
	if err := s.held(ctx, n, c.done()); err != nil {
		return nil, err
	}
	// The heap has to find the size it keeps, and rarely used code to be loaded, before a slope
	// means anything.
	settle := min(o.growth, 10*time.Minute)
	if err := sleep(ctx, settle); err != nil {
		return nil, err
	}
	var rss watched
	began, told := time.Now(), time.Now()
	for time.Since(began) < o.growth {
		if err := sleep(ctx, growthSample); err != nil {
			return nil, err
		}
		v, err := sumOf(c.pids(), rssOf)
		if err != nil {
			return nil, err
		}
		rss.add(time.Since(began), v)
		if time.Since(told) > time.Minute {
			told = time.Now()
			now, err := s.counts(ctx)
			if err != nil {
				return nil, err
			}
			if now.open != n {
				return nil, fmt.Errorf("the backend holds %d of %d streams after %v: %w", now.open, n, told.Sub(began).Truncate(time.Second), errUnaccounted)
			}
			o.say("  %v of %v: %.1f MB", time.Since(began).Truncate(time.Second), o.growth, v/kb/kb)
		}
	}
	ended := time.Now()
	if _, err := s.quiet(ctx); err != nil {
		return nil, err
	}
	var st steadyState
	if err := o.account(ctx, s, c, before, &st); err != nil {
		return nil, err
	}
	account, err := c.shard()
	if err != nil {
		return nil, err
	}
	var live watched
	for _, b := range account.Series {
		if at := time.Unix(b.Unix, 0).Add(shard.BucketWidth); at.After(began) && at.Before(ended) {
			live.add(at.Sub(began), float64(b.HeapLive))
		}
	}
	group := min(growthGroup, o.growth/growthPoints)
	conditions := fmt.Sprintf("of a runner with %d connections, %d to a VU as `make soak` plans (%s), over %v from %v after the ramp on, the lowest of every %v; "+
		"a noop per second, so this time stands for %v of noops at 15 s; %d received, none missed",
		n, growthPerVU, soakScript, o.growth, settle, group, 15*o.growth, st.received)
	resident, err := rss.slope("growth of RSS", group)
	if err != nil {
		return nil, err
	}
	used, err := live.slope("growth of heap in use", group)
	if err != nil {
		return nil, err
	}
	return []Figure{
		resident.means(fmt.Sprintf("slope of RSS, median %s MB, %s", short(median(rss.mb)), conditions)),
		used.means(fmt.Sprintf("slope of what each garbage collection left in use, median %s MB, of the same", short(median(live.mb)))),
	}, nil
}

// watched is memory in the course of time.
type watched struct{ hours, mb []float64 }

func (w *watched) add(at time.Duration, bytes float64) {
	w.hours, w.mb = append(w.hours, at.Hours()), append(w.mb, bytes/kb/kb)
}

func (w *watched) slope(name string, group time.Duration) (Figure, error) {
	line, err := fit(lowest(w.hours, w.mb, group.Hours()))
	if err != nil {
		return Figure{}, fmt.Errorf("%s: %w", name, err)
	}
	f := Figure{Name: name, Unit: "MB/h", Value: line.value, Low: line.low, High: line.high, Interval: true}
	return f.limited(limitGrowthMB), nil
}

package main

import (
	"context"
	"fmt"
	"time"
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
	settle := min(o.growth/5, 10*time.Minute)
	if err := sleep(ctx, settle); err != nil {
		return nil, err
	}
	var hours, rss []float64
	told := time.Now()
	for began := time.Now(); time.Since(began) < o.growth; {
		if err := sleep(ctx, growthSample); err != nil {
			return nil, err
		}
		v, err := sumOf(c.pids(), rssOf)
		if err != nil {
			return nil, err
		}
		hours, rss = append(hours, time.Since(began).Hours()), append(rss, v/kb/kb)
		if time.Since(told) > time.Minute {
			told = time.Now()
			o.say("  %v of %v: %.1f MB", time.Since(began).Truncate(time.Second), o.growth, rss[len(rss)-1])
		}
	}
	if _, err := s.quiet(ctx); err != nil {
		return nil, err
	}
	var st steadyState
	if err := o.account(ctx, s, c, before, &st); err != nil {
		return nil, err
	}
	group := min(growthGroup, o.growth/growthPoints)
	line, err := fit(lowest(hours, rss, max(int(group/growthSample), 1)))
	if err != nil {
		return nil, err
	}
	f := Figure{Name: "growth of RSS", Unit: "MB/h", Value: line.value, Low: line.low, High: line.high, Interval: true}
	return []Figure{f.limited(limitGrowthMB).means(fmt.Sprintf(
		"slope of RSS of a runner with %d connections, %d to a VU as `make soak` plans (%s), over %v from %v after the ramp on, the lowest of every %v, "+
			"median %s MB; a noop per second, so this time stands for %v of noops at 15 s; %d received, none missed",
		n, growthPerVU, soakScript, o.growth, settle, group, short(median(rss)), 15*o.growth, st.received))}, nil
}

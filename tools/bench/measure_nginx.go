package main

import (
	"context"
	"fmt"
	"time"
)

const (
	limitNginxKB  = 12
	nginxInterval = 2 * time.Second
)

// measureNginx puts the nginx of a soak in front of the backend and holds connections through
// it. Where nginx is not installed there is nothing to measure.
func measureNginx(ctx context.Context, o *options) ([]Figure, error) {
	n := o.size.nginx
	s, err := o.startService(ctx, n, nginxInterval, true)
	if err != nil {
		return nil, err
	}
	defer s.stop(ctx)
	master := childNamed("nginx")
	if master == 0 {
		o.say("nginx is not installed: left out")
		return nil, nil
	}
	if err := sleep(ctx, time.Second); err != nil {
		return nil, err
	}
	pids := append([]int{master}, childrenOf(master)...)
	rss, pss, err := nginxMemory(ctx, pids)
	if err != nil {
		return nil, err
	}
	c, err := o.startRaw(s, n, false)
	if err != nil {
		return nil, err
	}
	defer c.kill()
	if err := s.held(ctx, n, c.done()); err != nil {
		return nil, err
	}
	if err := sleep(ctx, max(o.size.settle, 3*nginxInterval)); err != nil {
		return nil, err
	}
	fullRSS, fullPSS, err := nginxMemory(ctx, pids)
	if err != nil {
		return nil, err
	}
	received, missed, err := c.end(ctx)
	if err != nil {
		return nil, err
	}
	if missed > 0 {
		return nil, fmt.Errorf("%d of %d noops were missed behind nginx", missed, received+missed)
	}
	return []Figure{
		single("PSS per connection", "KB", (fullPSS-pss)/float64(n)/kb).limited(limitNginxKB).peers("with nginx's defaults 17.8").means(fmt.Sprintf(
			"proportional set size (smaps_rollup) of master and %d workers with %d streams less the same empty, ÷ %d; the soak's own configuration, unix-socket upstream, %d noops passed",
			len(pids)-1, n, n, received)),
		single("RSS per connection", "KB", (fullRSS-rss)/float64(n)/kb).means("the same by RSS, which counts pages the workers share once for each"),
	}, nil
}

func nginxMemory(ctx context.Context, pids []int) (rss, pss float64, err error) {
	if rss, err = restingRSS(ctx, pids, rssOf); err == nil {
		pss, err = restingRSS(ctx, pids, pssOf)
	}
	return rss, pss, err
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	limitGrowthMB = 1
	growthSample  = 2 * time.Second
	growthGroup   = 5 // samples of which the lowest counts
)

// measureGrowth watches the memory of a runner that only holds connections. Every sample
// forces a garbage collection by way of k6's profiling endpoint, so that what is left is what
// the runner keeps.
func measureGrowth(ctx context.Context, o *options) ([]Figure, error) {
	n := o.size.growth
	s, err := o.startService(ctx, n, time.Second, false)
	if err != nil {
		return nil, err
	}
	defer s.stop(ctx)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := listener.Addr().String()
	_ = listener.Close()
	before, err := s.counts(ctx)
	if err != nil {
		return nil, err
	}
	c, err := o.startProfiled(s, n, address)
	if err != nil {
		return nil, err
	}
	defer c.kill()
	if err := s.held(ctx, n, c.done()); err != nil {
		return nil, err
	}
	// Until it has settled a fifth of the time goes by, a minute at most.
	if err := sleep(ctx, min(o.growth/5, time.Minute)); err != nil {
		return nil, err
	}
	var hours, rss, live []float64
	for began := time.Now(); time.Since(began) < o.growth; {
		if err := sleep(ctx, growthSample); err != nil {
			return nil, err
		}
		kept, err := liveHeap(ctx, address)
		if err != nil {
			return nil, err
		}
		v, err := sumOf(c.pids(), rssOf)
		if err != nil {
			return nil, err
		}
		hours, rss, live = append(hours, time.Since(began).Hours()), append(rss, v/kb/kb), append(live, kept/kb/kb)
	}
	if _, err := s.quiet(ctx); err != nil {
		return nil, err
	}
	var st steadyState
	if err := o.account(ctx, s, c, before, &st); err != nil {
		return nil, err
	}
	return growthFigures(o, hours, rss, live, st.received)
}

func growthFigures(o *options, hours, rss, live []float64, received uint64) (out []Figure, err error) {
	for _, series := range []struct {
		name, means string
		y           []float64
		limit       float64
	}{
		{"growth of RSS", "RSS", rss, limitGrowthMB},
		{"growth of live memory", "heap in use by live objects and stacks after a forced collection", live, limitGrowthMB},
	} {
		x, y := lowest(hours, series.y, growthGroup)
		line, err := fit(x, y)
		if err != nil {
			return nil, err
		}
		f := Figure{Name: series.name, Unit: "MB/h", Value: line.value, Low: line.low, High: line.high, Interval: true}
		out = append(out, f.limited(series.limit).means(fmt.Sprintf(
			"slope of %s of a runner with %d VUs of one connection each (%s) over %v after the ramp, the lowest of every %v, median %s MB; "+
				"a noop per second, so this time stands for %v of noops at 15 s; %d received, none missed",
			series.means, o.size.growth, soakScript, o.growth, growthGroup*growthSample, short(median(series.y)), 15*o.growth, received)))
	}
	return out, nil
}

// liveHeap makes a runner collect its garbage and says how many bytes it keeps.
func liveHeap(ctx context.Context, address string) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/debug/pprof/heap?gc=1&debug=1", nil)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, fmt.Errorf("ask the runner for its heap: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, fmt.Errorf("ask the runner for its heap: %w", err)
	}
	return parseHeap(string(text))
}

// parseHeap adds HeapAlloc and the stacks in use, from the end of a heap profile in text.
func parseHeap(text string) (sum float64, err error) {
	found := 0
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), " = ")
		if !ok || name != "# HeapAlloc" && name != "# Stack" {
			continue
		}
		value, _, _ = strings.Cut(value, " / ")
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("heap profile: %w", err)
		}
		sum += n
		found++
	}
	if found != 2 {
		return 0, errors.New("the heap profile is not as expected: it lacks HeapAlloc or Stack")
	}
	return sum, nil
}

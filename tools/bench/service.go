package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/sse-soak/sse-soak/internal/target"
)

// A service is the backend that is measured, or measured against, with nginx in front of it
// or without.
type service struct{ *target.Target }

func (o *options) startService(ctx context.Context, connections int, interval time.Duration, nginx bool) (service, error) {
	dir, err := o.folder("service")
	if err != nil {
		return service{}, err
	}
	t, err := target.StartLocal(ctx, target.LocalConfig{
		Backend: filepath.Join(o.bin, "backend"), Connections: connections,
		NoopInterval: interval, LogDir: dir, NoNginx: !nginx,
	})
	return service{t}, err
}

func (s service) stop(ctx context.Context) { s.Local.Stop(ctx) }

// counts are the figures of the backend's metrics page that bench needs.
type counts struct {
	open   int
	noops  uint64
	passes uint64  // rounds of noops
	spent  float64 // seconds in them
	within map[float64]uint64
}

func (s service) counts(ctx context.Context) (c counts, err error) {
	page, ok := s.Metrics(ctx)
	if !ok {
		return c, errors.New("the backend does not show its metrics")
	}
	defer page.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(page)
	if err != nil {
		return c, fmt.Errorf("read the backend's metrics: %w", err)
	}
	for _, name := range []string{"backend_streams_open", "backend_noops_sent_total", "backend_broadcast_duration_seconds"} {
		if f := families[name]; f == nil || len(f.GetMetric()) == 0 {
			return c, fmt.Errorf("the backend's metrics lack %s", name)
		}
	}
	c.open = int(families["backend_streams_open"].GetMetric()[0].GetGauge().GetValue())
	c.noops = uint64(families["backend_noops_sent_total"].GetMetric()[0].GetCounter().GetValue())
	h := families["backend_broadcast_duration_seconds"].GetMetric()[0].GetHistogram()
	c.passes, c.spent = h.GetSampleCount(), h.GetSampleSum()
	c.within = make(map[float64]uint64)
	for _, b := range h.GetBucket() {
		c.within[b.GetUpperBound()] = b.GetCumulativeCount()
	}
	return c, nil
}

// held waits until the backend holds n streams.
func (s service) held(ctx context.Context, n int, alive <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		c, err := s.counts(ctx)
		if err != nil {
			return err
		}
		if c.open == n {
			return nil
		}
		select {
		case <-alive:
			return fmt.Errorf("the client ended before it held %d connections", n)
		case <-ctx.Done():
			return fmt.Errorf("the backend holds %d of %d streams: %w", c.open, n, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// quiet waits for the pause after a round of noops, at intervals of a second: what is counted
// from one pause to another is whole rounds.
func (s service) quiet(ctx context.Context) (counts, error) {
	before, err := s.counts(ctx)
	if err != nil {
		return before, err
	}
	for range 100 {
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return before, err
		}
		now, err := s.counts(ctx)
		if err != nil {
			return now, err
		}
		if now.noops > before.noops {
			if err := sleep(ctx, 400*time.Millisecond); err != nil {
				return now, err
			}
			return s.counts(ctx)
		}
	}
	return before, errors.New("the backend sends no noops")
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

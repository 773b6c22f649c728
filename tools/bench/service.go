package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/sse-soak/sse-soak/internal/target"
)

// A service is the backend that is measured, or measured against, with nginx in front of it
// or without.
type service struct {
	*target.Target
	*bench
	env map[string]string // that runners need to connect
}

func (b *bench) startService(connections int, interval time.Duration, nginx bool) service {
	return b.start(target.LocalConfig{Connections: connections, NoopInterval: interval, NoNginx: !nginx})
}

func (b *bench) start(c target.LocalConfig) service {
	c.Backend, c.LogDir = "bin/backend", b.folder("service")
	t := must(target.StartLocal(b.ctx, c))
	if c.Certificates == "" {
		return service{t, b, nil}
	}
	return service{t, b, t.RunnerEnv(c.Certificates)}
}

func (s service) stop() { s.Local.Stop(s.ctx) }

// counts are the figures of the backend's metrics page that bench needs.
type counts struct {
	open   int
	noops  uint64         // and messages
	rounds *dto.Histogram // of noops: how many, and how long each took
}

func (s service) counts() counts {
	page, ok := s.Metrics(s.ctx)
	if !ok {
		check(errors.New("the backend does not show its metrics"))
	}
	defer page.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families := must(parser.TextToMetricFamilies(page))
	first := func(name string) *dto.Metric {
		if all := families[name].GetMetric(); len(all) > 0 {
			return all[0]
		}
		return nil
	}
	open := first("backend_streams_open").GetGauge()
	if open == nil {
		check(errors.New("the backend's metrics lack backend_streams_open"))
	}
	return counts{
		open:   int(open.GetValue()),
		noops:  uint64(first("backend_noops_sent_total").GetCounter().GetValue() + first("backend_messages_sent_total").GetCounter().GetValue()),
		rounds: first("backend_broadcast_duration_seconds").GetHistogram(),
	}
}

// await waits until the backend holds n streams, as long as alive is not closed.
func (s service) await(n int, alive <-chan struct{}) {
	ctx, cancel := context.WithTimeout(s.ctx, 2*time.Minute)
	defer cancel()
	for {
		open := s.counts().open
		if open == n {
			return
		}
		select {
		case <-alive:
			check(fmt.Errorf("the client ended before it held %d connections", n))
		case <-ctx.Done():
			check(fmt.Errorf("the backend holds %d of %d streams: %w", open, n, ctx.Err()))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// quiet waits for the pause after a round of noops, at intervals of a second: what is counted
// from one pause to another is whole rounds.
func (s service) quiet() counts {
	before := s.counts()
	for range 100 {
		s.sleep(50 * time.Millisecond)
		if s.counts().noops > before.noops {
			s.sleep(400 * time.Millisecond)
			return s.counts()
		}
	}
	panic(failure{errors.New("the backend sends no noops")})
}

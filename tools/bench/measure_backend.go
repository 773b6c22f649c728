package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

const (
	limitBackendKB    = 3
	limitBackendCPU   = 12
	limitBroadcastMS  = 50
	idleInterval      = time.Hour
	peersBackendKB    = "net/http with a ticker 27, go-sse 23, nchan 14, Mercure 61–76, Centrifugo 60, hijacked net.Conn 2.0, bare descriptor 0.6"
	peersBackendCPU   = "net/http 21, go-sse 18, nchan 28"
	backendIdleSettle = 10 * time.Second // it gives memory back to the system some seconds after a ramp
)

func measureBackend(ctx context.Context, o *options) (out []Figure, err error) {
	for _, part := range []func(context.Context, *options) ([]Figure, error){backendMemory, backendCPU, backendBroadcast} {
		figures, err := part(ctx, o)
		if err != nil {
			return nil, err
		}
		out = append(out, figures...)
	}
	return out, nil
}

// restingRSS is the median of a few samples.
func restingRSS(ctx context.Context, pids []int, figure func(int) (float64, error)) (float64, error) {
	var all []float64
	for range 5 {
		v, err := sumOf(pids, figure)
		if err != nil {
			return 0, err
		}
		all = append(all, v)
		if err := sleep(ctx, 200*time.Millisecond); err != nil {
			return 0, err
		}
	}
	return median(all), nil
}

func backendMemory(ctx context.Context, o *options) ([]Figure, error) {
	n := o.size.idle
	o.say("backend, memory of %d idle connections", n)
	s, err := o.startService(ctx, n, idleInterval, false)
	if err != nil {
		return nil, err
	}
	defer s.stop(ctx)
	if err := sleep(ctx, 2*time.Second); err != nil {
		return nil, err
	}
	pids := []int{childNamed("backend")}
	empty, err := restingRSS(ctx, pids, rssOf)
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
	settle := backendIdleSettle
	if o.quick {
		settle = o.size.settle
	}
	if err := sleep(ctx, settle); err != nil {
		return nil, err
	}
	full, err := restingRSS(ctx, pids, rssOf)
	if err != nil {
		return nil, err
	}
	return []Figure{
		single("RSS per idle connection", "KB", (full-empty)/float64(n)/kb).limited(limitBackendKB).peers(peersBackendKB).means(
			fmt.Sprintf("RSS of the backend %v after the last of %d connects less its RSS empty, ÷ %d; plain HTTP, no noops", settle, n, n)),
		single("RSS empty", "MB", empty/kb/kb).means("2 s after the start"),
	}, nil
}

func backendCPU(ctx context.Context, o *options) ([]Figure, error) {
	n := o.size.busy
	o.say("backend, CPU at %d connections", n)
	s, err := o.startService(ctx, n, time.Second, false)
	if err != nil {
		return nil, err
	}
	defer s.stop(ctx)
	c, err := o.startRaw(s, n, false)
	if err != nil {
		return nil, err
	}
	defer c.kill()
	if err := s.held(ctx, n, c.done()); err != nil {
		return nil, err
	}
	if err := sleep(ctx, o.size.settle); err != nil {
		return nil, err
	}
	pid := childNamed("backend")
	var costs []float64
	var noops uint64
	for range o.rounds {
		from, err := s.quiet(ctx)
		if err != nil {
			return nil, err
		}
		began, err := cpuOf(pid)
		if err != nil {
			return nil, err
		}
		if err := sleep(ctx, o.window-time.Second); err != nil {
			return nil, err
		}
		to, err := s.quiet(ctx)
		if err != nil {
			return nil, err
		}
		ended, err := cpuOf(pid)
		if err != nil {
			return nil, err
		}
		noops += to.noops - from.noops
		costs = append(costs, (ended-began).Seconds()/float64(to.noops-from.noops)*1e6)
	}
	var st steadyState
	if err := o.account(ctx, s, c, counts{}, &st); err != nil {
		return nil, err
	}
	return []Figure{
		repeated("CPU-s per million noops", "s", costs).limited(limitBackendCPU).peers(peersBackendCPU).means(fmt.Sprintf(
			"user and system CPU of the backend over %d windows of %v at %d connections and a noop per second on each, ÷ noops sent in it (%d in all); "+
				"%d received by %d raw clients, none missed",
			o.rounds, o.window, n, noops, st.received, len(c.pids()))),
	}, nil
}

func backendBroadcast(ctx context.Context, o *options) ([]Figure, error) {
	n := o.size.broadcast
	o.say("backend, one noop to %d connections", n)
	s, err := o.startService(ctx, n, time.Second, false)
	if err != nil {
		return nil, err
	}
	defer s.stop(ctx)
	c, err := o.startRaw(s, n, true)
	if err != nil {
		return nil, err
	}
	defer c.kill()
	if err := s.held(ctx, n, c.done()); err != nil {
		return nil, err
	}
	if err := sleep(ctx, 2*time.Second); err != nil {
		return nil, err
	}
	from, err := s.quiet(ctx)
	if err != nil {
		return nil, err
	}
	if err := sleep(ctx, o.window); err != nil {
		return nil, err
	}
	to, err := s.quiet(ctx)
	if err != nil {
		return nil, err
	}
	clients, ok := c.(*rawClients)
	if !ok {
		return nil, errors.New("a broadcast is timed by raw clients")
	}
	results, err := clients.results(ctx)
	if err != nil {
		return nil, err
	}
	r := results[0]
	if len(r.Kernel) == 0 {
		return nil, errors.New("no round of noops reached every connection")
	}
	rounds := to.passes - from.passes
	const ms = 1000
	written := single("first to last write of one noop, mean", "ms", (to.spent-from.spent)/float64(rounds)*ms).limited(limitBroadcastMS)
	return []Figure{
		written.means(fmt.Sprintf("backend_broadcast_duration_seconds: %d rounds to %d connections, all of them within %s ms", rounds, n, short(boundOf(from, to)*ms))),
		repeated("first to last arrival of one noop", "ms", scaled(r.Kernel, ms)).limited(limitBroadcastMS).means(fmt.Sprintf(
			"median of %d rounds; by the kernel's stamp on each of the %d sockets (SO_TIMESTAMPNS), which does not depend on how fast the client reads", len(r.Kernel), n)),
		repeated("first to last read by the client", "ms", scaled(r.Reader, ms)).means(
			"the same by the client's own clock after each read: includes the client's CPU for one goroutine per connection, on the cores the backend runs on"),
	}, nil
}

func scaled(values []float64, by float64) []float64 {
	out := slices.Clone(values)
	for i := range out {
		out[i] *= by
	}
	return out
}

// boundOf is the smallest bound of the histogram that all rounds between two readings kept.
func boundOf(from, to counts) float64 {
	bound := 0.0
	rounds := to.passes - from.passes
	for b, n := range to.within {
		if n-from.within[b] == rounds && (bound == 0 || b < bound) {
			bound = b
		}
	}
	return bound
}

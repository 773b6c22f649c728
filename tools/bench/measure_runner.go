package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The limits of issue 2.
const (
	limitRunnerKB    = 12
	limitRunnerRatio = 1.5
)

const kb = 1024.0

const (
	bareScript = "tools/bench/runner.js"
	soakScript = "load-tests/sse/connectionTest.js"

	peersRunnerKB  = "k6 + xk6-sse 225, k6 asyncRequest 81–204, Locust 27, Gatling 8–50, net/http 32, raw in a k6 VU 7.6, raw 7.1, one epoll loop 0.3"
	peersRunnerCPU = "k6 + xk6-sse 0.061, k6 asyncRequest 0.022, Locust 0.037, Gatling 0.038–0.060, net/http 0.021, raw in a k6 VU 0.018, raw 0.020, one epoll loop 0.012"
)

// measureRunner holds a runner against the raw client, in turns.
func measureRunner(ctx context.Context, o *options) ([]Figure, error) {
	s, err := o.startService(ctx, o.size.full, time.Second, false)
	if err != nil {
		return nil, err
	}
	defer s.stop(ctx)
	out, err := o.runnerMemory(ctx, s)
	if err != nil {
		return nil, err
	}
	costs, err := o.runnerCPU(ctx, s)
	if err != nil {
		return nil, err
	}
	return append(out, costs...), nil
}

// start is how a client is started that holds n connections.
type start func(n int) (client, error)

func (o *options) starts(s service) (bare, soak, raw start) {
	bare = func(n int) (client, error) { return o.startRunner(s, bareScript, n, n) }
	soak = func(n int) (client, error) { return o.startRunner(s, soakScript, n, n) }
	raw = func(n int) (client, error) { return o.startRaw(s, n, false) }
	return bare, soak, raw
}

// once measures one client. On a starved machine noops can be on their way to a runner that is
// told to end: what cannot be accounted for is measured again, twice at most.
func (o *options) once(ctx context.Context, s service, start start, n int, window time.Duration) (st steadyState, err error) {
	for range 3 {
		var c client
		if c, err = start(n); err != nil {
			return st, err
		}
		st, err = o.watch(ctx, s, c, n, window)
		if err == nil {
			o.say("  %5d connections: %.1f MB, %.4f CPU-s per 1000 noops, %d received, none missed", n, st.rss/kb/kb, st.cpuPer1000(), st.received)
		}
		if !errors.Is(err, errUnaccounted) {
			break
		}
		o.say("  again: %v", err)
	}
	return st, err
}

// runnerMemory measures at two sizes: the difference leaves out what k6 itself takes.
func (o *options) runnerMemory(ctx context.Context, s service) (out []Figure, err error) {
	bare, soak, raw := o.starts(s)
	each := func(name, what string, start start, limit float64, peers string) error {
		o.say("memory of %s", what)
		small, err := o.once(ctx, s, start, o.size.base, o.memoryWindow())
		if err != nil {
			return err
		}
		large, err := o.once(ctx, s, start, o.size.full, o.memoryWindow())
		if err != nil {
			return err
		}
		per := (large.rss - small.rss) / float64(o.size.full-o.size.base) / kb
		out = append(out,
			single(name+", RSS per connection", "KB", per).limited(limit).peers(peers).means(fmt.Sprintf(
				"median RSS of %s holding %d connections less the same holding %d, divided by %d; one noop per second and connection",
				what, o.size.full, o.size.base, o.size.full-o.size.base)),
			single(name+fmt.Sprintf(", RSS at %d", o.size.full), "MB", large.rss/kb/kb).means(
				"all of the process, k6 included, in the steady state"))
		return nil
	}
	if err := each("extension", "k6 with 1 VU running "+bareScript+" (EventSource and Ledger)", bare, limitRunnerKB, peersRunnerKB); err != nil {
		return nil, err
	}
	if o.quick {
		return out, nil
	}
	if err := each("soak script", "k6 with 1 VU running "+soakScript, soak, limitRunnerKB, ""); err != nil {
		return nil, err
	}
	return out, each("raw client", "a bare Go client (net.Dial, one goroutine and 512 bytes per connection)", raw, 0, "7.1")
}

func (o *options) memoryWindow() time.Duration { return max(o.window/2, 2*time.Second) }

// runnerCPU lets the runner and the raw client take turns, so that a busy neighbour on the
// machine meets both.
func (o *options) runnerCPU(ctx context.Context, s service) ([]Figure, error) {
	bare, soak, raw := o.starts(s)
	var costs [3][]float64
	var ratios, soakRatios []float64
	var noops uint64
	for round := range o.rounds {
		o.say("CPU, round %d of %d: extension, raw client, soak script", round+1, o.rounds)
		for i, start := range []start{bare, raw, soak} {
			st, err := o.once(ctx, s, start, o.size.full, o.window)
			if err != nil {
				return nil, err
			}
			costs[i] = append(costs[i], st.cpuPer1000())
			noops += st.noops
		}
		ratios = append(ratios, costs[0][round]/costs[1][round])
		soakRatios = append(soakRatios, costs[2][round]/costs[1][round])
	}
	means := fmt.Sprintf("user and system CPU (/proc/PID/stat) over %v of steady state at %d connections, after the ramp, ÷ noops sent in it; "+
		"nothing subtracted; %d noops in all windows, each client received every one it was ever sent", o.window, o.size.full, noops)
	return []Figure{
		repeated("extension, CPU-s per 1000 noops", "s", costs[0]).peers(peersRunnerCPU).means(means),
		repeated("soak script, CPU-s per 1000 noops", "s", costs[2]).means("the same of " + soakScript),
		repeated("raw client, CPU-s per 1000 noops", "s", costs[1]).peers("0.020").means("the same of the bare Go client, in the same run"),
		repeated("extension, CPU against raw client", "×", ratios).limited(limitRunnerRatio).means(
			fmt.Sprintf("median over %d rounds of the ratio within a round", o.rounds)),
		repeated("soak script, CPU against raw client", "×", soakRatios).limited(limitRunnerRatio).means(
			"the same for the soak script"),
	}, nil
}

package main

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/prometheus/procfs"
)

// The limits of issue 2.
const (
	limitRunnerKB    = 12
	limitRunnerRatio = 1.5
	limitBackendKB   = 3
	limitBackendCPU  = 12
	limitBroadcastMS = 50
	limitNginxKB     = 12
	limitGrowthMB    = 1
)

const (
	kb = 1024.0
	mb = 1024 * kb
	ms = 1e3 // in a second

	bareScript = "tools/bench/runner.js"
	soakScript = "load-tests/sse/connectionTest.js"

	peersRunnerKB   = "k6 + xk6-sse 225, k6 asyncRequest 81–204, Locust 27, Gatling 8–50, net/http 32, raw in a k6 VU 7.6, raw 7.1, one epoll loop 0.3"
	peersRunnerCPU  = "k6 + xk6-sse 0.061, k6 asyncRequest 0.022, Locust 0.037, Gatling 0.038–0.060, net/http 0.021, raw in a k6 VU 0.018, raw 0.020, one epoll loop 0.012"
	peersBackendKB  = "net/http with a ticker 27, go-sse 23, nchan 14, Mercure 61–76, Centrifugo 60, hijacked net.Conn 2.0, bare descriptor 0.6"
	peersBackendCPU = "net/http 21, go-sse 18, nchan 28"
)

// A contender holds connections in a way that is compared with the others.
type contender struct {
	name, what        string
	limit             float64 // of its memory per connection
	peersKB, peersCPU string
	start             func(n int) client
	costs, ratios     []float64 // CPU-s per 1000 noops, and that divided by the raw client's
}

// measureRunner compares a runner with the raw client, interleaved so that other load meets both alike.
func (b *bench) measureRunner() (out []Metric) {
	s := b.startService(b.full, time.Second, false)
	defer s.stop()
	k6 := func(script string) func(int) client { return func(n int) client { return s.startRunner(script, n, n) } }
	raw := &contender{
		name: "raw client", what: "a bare Go client (net.Dial, one goroutine and 512 bytes per connection)", peersKB: "7.1", peersCPU: "0.020",
		start: func(n int) client { return s.startRaw(n, false) },
	}
	all := []*contender{
		{
			name: "extension", what: "k6 with 1 VU running " + bareScript + " (EventSource and Ledger)",
			limit: limitRunnerKB, peersKB: peersRunnerKB, peersCPU: peersRunnerCPU, start: k6(bareScript),
		},
		{name: "soak script", what: "k6 with 1 VU running " + soakScript, limit: limitRunnerKB, start: k6(soakScript)},
		raw,
	}
	// At two sizes: the difference leaves out what k6 itself takes.
	for i, c := range all {
		if i > 0 && b.quick {
			break
		}
		b.say("memory of %s", c.what)
		window := max(b.window/2, 2*time.Second)
		small, large := s.once(c, b.base, window), s.once(c, b.full, window)
		out = append(out,
			metric(c.name+", RSS per connection", "KB", (large.rss-small.rss)/float64(b.full-b.base)/kb).limited(c.limit).peers(c.peersKB).means(
				"median RSS of %s holding %d connections less the same holding %d, divided by %d; one noop per second and connection",
				c.what, b.full, b.base, b.full-b.base),
			metric(fmt.Sprintf("%s, RSS at %d", c.name, b.full), "MB", large.rss/mb).means("all of the process, k6 included, in the steady state"))
	}
	// In turns, so that a busy neighbour on the machine meets all.
	var noops uint64
	for round := range b.rounds {
		b.say("CPU, round %d of %d", round+1, b.rounds)
		for _, c := range all {
			st := s.once(c, b.full, b.window)
			c.costs, noops = append(c.costs, st.per(1000)), noops+st.noops
		}
		for _, c := range all {
			c.ratios = append(c.ratios, c.costs[round]/raw.costs[round])
		}
	}
	for _, c := range all {
		out = append(out, metric(c.name+", CPU-s per 1000 noops", "s", c.costs...).peers(c.peersCPU).means(
			"user and system CPU (/proc/PID/stat) of %s over %v of steady state at %d connections, after the ramp, ÷ noops sent in it; "+
				"nothing subtracted; %d noops in all windows, each client received every one it was ever sent", c.what, b.window, b.full, noops))
	}
	for _, c := range all[:2] {
		out = append(out, metric(c.name+", CPU against raw client", "×", c.ratios...).limited(limitRunnerRatio).means(
			"median over %d rounds of the ratio within a round", b.rounds))
	}
	return out
}

// once measures one client. On a saturated machine noops can be on their way to a runner that is
// told to end: what cannot be accounted for is measured again, twice at most.
func (s service) once(of *contender, n int, window time.Duration) (result cost) {
	measure := func() {
		before := s.counts()
		c := of.start(n)
		defer c.kill()
		s.hold(c, n, s.settle)
		result = s.steady(c.pids(), window)
		received := s.finish(c, before)
		s.say("  %5d connections: %.1f MB, %.4f CPU-s per 1000 noops, %d received, none missed", n, result.rss/mb, result.per(1000), received)
	}
	err := attempt(measure)
	for tries := 1; tries < 3 && errors.Is(err, errUnaccounted); tries++ {
		s.say("  again: %v", err)
		err = attempt(measure)
	}
	check(err)
	return result
}

func (b *bench) measureBackend() []Metric {
	return append(append(b.backendMemory(), b.backendCPU()), b.backendBroadcast()...)
}

// resting is the median of a few sums.
func (b *bench) resting(pids []int, of func(procfs.Proc) (float64, error)) float64 {
	var all []float64
	for range 5 {
		all = append(all, sum(pids, of))
		b.sleep(200 * time.Millisecond)
	}
	return median(all)
}

func (b *bench) backendMemory() []Metric {
	n := b.idle
	b.say("backend, memory of %d idle connections", n)
	s := b.startService(n, time.Hour, false)
	defer s.stop()
	b.sleep(2 * time.Second)
	empty := b.resting(ours("backend"), rssOf)
	c := s.startRaw(n, false)
	defer c.kill()
	s.hold(c, n, b.idleSettle)
	full := b.resting(ours("backend"), rssOf)
	return []Metric{
		metric("RSS per idle connection", "KB", (full-empty)/float64(n)/kb).limited(limitBackendKB).peers(peersBackendKB).means(
			"RSS of the backend %v after the last of %d connects less its RSS empty, ÷ %d; plain HTTP, no noops", b.idleSettle, n, n),
		metric("RSS empty", "MB", empty/mb).means("2 s after the start"),
	}
}

func (b *bench) backendCPU() Metric {
	n := b.busy
	b.say("backend, CPU at %d connections", n)
	s := b.startService(n, time.Second, false)
	defer s.stop()
	c := s.startRaw(n, false)
	defer c.kill()
	s.hold(c, n, b.settle)
	var costs []float64
	var noops uint64
	for range b.rounds {
		st := s.steady(ours("backend"), b.window)
		costs, noops = append(costs, st.per(1e6)), noops+st.noops
	}
	received := s.finish(c, counts{})
	return metric("CPU-s per million noops", "s", costs...).limited(limitBackendCPU).peers(peersBackendCPU).means(
		"user and system CPU of the backend over %d windows of %v at %d connections and a noop per second on each, ÷ noops sent in it (%d in all); "+
			"%d received by the raw client, none missed", b.rounds, b.window, n, noops, received)
}

func (b *bench) backendBroadcast() []Metric {
	n := b.broadcast
	b.say("backend, one noop to %d connections", n)
	s := b.startService(n, time.Second, false)
	defer s.stop()
	c := s.startRaw(n, true)
	defer c.kill()
	s.hold(c, n, 2*time.Second)
	st := s.steady(ours("backend"), b.window)
	arrived := c.result()
	if len(arrived.Kernel) == 0 {
		check(errors.New("no round of noops reached every connection"))
	}
	before, after := st.from.rounds, st.to.rounds
	rounds := after.GetSampleCount() - before.GetSampleCount()
	bound := math.Inf(1) // the smallest of the histogram that all these rounds kept
	for i, bucket := range after.GetBucket() {
		if bucket.GetCumulativeCount()-before.GetBucket()[i].GetCumulativeCount() == rounds {
			bound = min(bound, bucket.GetUpperBound())
		}
	}
	return []Metric{
		metric("first to last write of one noop, mean", "ms", (after.GetSampleSum()-before.GetSampleSum())/float64(rounds)*ms).limited(limitBroadcastMS).means(
			"backend_broadcast_duration_seconds: %d rounds to %d connections, all of them within %s ms", rounds, n, short(bound*ms)),
		metric("first to last arrival of one noop", "ms", scaled(arrived.Kernel, ms)...).limited(limitBroadcastMS).means(
			"median of %d rounds; by the kernel's stamp on each of the %d sockets (SO_TIMESTAMPNS), which does not depend on how fast the client reads",
			len(arrived.Kernel), n),
		metric("first to last read by the client", "ms", scaled(arrived.Reader, ms)...).means(
			"the same by the client's own clock after each read: includes the client's CPU for one goroutine per connection, on the cores the backend runs on"),
	}
}

func scaled(values []float64, by float64) (out []float64) {
	for _, v := range values {
		out = append(out, v*by)
	}
	return out
}

const nginxInterval = 2 * time.Second

// measureNginx puts the nginx of a soak in front of the backend and holds connections through
// it. Where nginx is not installed there is nothing to measure.
func (b *bench) measureNginx() []Metric {
	n := b.nginx
	s := b.startService(n, nginxInterval, true)
	defer s.stop()
	master := s.Local.NginxPID()
	if master == 0 {
		b.say("nginx is not installed: left out")
		return nil
	}
	b.sleep(time.Second)
	workers := children(master, "")
	pids := append([]int{master}, workers...)
	rss, pss := b.resting(pids, rssOf), b.resting(pids, pssOf)
	c := s.startRaw(n, false)
	defer c.kill()
	s.hold(c, n, max(b.settle, 3*nginxInterval))
	rss, pss = b.resting(pids, rssOf)-rss, b.resting(pids, pssOf)-pss
	received, missed := c.end()
	if missed > 0 {
		check(fmt.Errorf("%d of %d noops were missed behind nginx", missed, received+missed))
	}
	return []Metric{
		metric("PSS per connection", "KB", pss/float64(n)/kb).limited(limitNginxKB).peers("with nginx's defaults 17.8").means(
			"proportional set size (smaps_rollup) of master and %d workers with %d streams less the same empty, ÷ %d; the soak's own configuration, unix-socket upstream, %d noops passed",
			len(workers), n, n, received),
		metric("RSS per connection", "KB", rss/float64(n)/kb).means("the same by RSS, which counts pages the workers share once for each"),
	}
}

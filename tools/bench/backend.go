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

	peersBackendKB  = "net/http with a ticker 27, go-sse 23, nchan 14, Mercure 61–76, Centrifugo 60, hijacked net.Conn 2.0, bare descriptor 0.6"
	peersBackendCPU = "net/http 21, go-sse 18, nchan 28"
)

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
	c := s.startRaw(rawOptions{Connections: n})
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
	c := s.startRaw(rawOptions{Connections: n})
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
	c := s.startRaw(rawOptions{Connections: n, Stamps: true})
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
	c := s.startRaw(rawOptions{Connections: n})
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

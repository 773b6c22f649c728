package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/host/resources"
	"github.com/sse-soak/sse-soak/internal/run/target"
)

func BenchmarkNginx(b *testing.B) {
	const interval = 2 * time.Second
	for b.Loop() {
		s := startBackend(b, target.LocalConfig{Connections: size.nginx, NoopInterval: interval})
		master := s.Local.NginxPID()
		if master == 0 {
			b.Skip("nginx is not installed")
		}
		time.Sleep(time.Second)
		pids := append([]int{master}, children(b, master, "")...)
		rss, pss := medianSum(b, pids, rssOf), medianSum(b, pids, pssOf)
		c := s.startBare(size.nginx, false)
		s.await(size.nginx)
		time.Sleep(max(size.settle, 3*interval))
		b.ReportMetric((medianSum(b, pids, pssOf)-pss)/float64(size.nginx)/kb, "pss-KB")
		b.ReportMetric((medianSum(b, pids, rssOf)-rss)/float64(size.nginx)/kb, "rss-KB")
		b.ReportMetric(0, "ns/op")
		_, missed := c.end()
		require.Zero(b, missed, "no noop may be missed behind nginx")
	}
}

// growthMeasured is true after the first run of BenchmarkGrowth, which is not repeated because it takes up to twice
// -growth.
var growthMeasured bool

// BenchmarkGrowth measures the memory of a runner with open streams over time, without forced garbage collections.
func BenchmarkGrowth(b *testing.B) {
	if *growth == 0 || growthMeasured {
		b.Skip("-growth is 0, or the growth was measured before")
	}
	growthMeasured = true
	for b.Loop() {
		s := backend(b, size.soak, time.Second)
		start, perVU := s.counts(), 50 // as `make soak` plans
		c := s.run(soakScript, size.soak, perVU, nil)
		s.await(size.soak)
		// Before the slope is measured, the heap must reach its size, and rarely used code must be loaded.
		time.Sleep(min(*growth, 10*time.Minute))
		var hours, used []float64
		for begin := time.Now(); time.Since(begin) < *growth; time.Sleep(2 * time.Second) {
			hours, used = append(hours, time.Since(begin).Hours()), append(used, sum(b, c.pids(), rssOf)/mb)
		}
		s.awaitPause()
		require.NoError(b, s.finish(c, start))
		line, ok := resources.SlopeOf(lowest(hours, used, min(2*time.Minute, *growth/12).Hours()))
		require.True(b, ok, "too few points to compute a slope")
		b.Logf("the slope is %.3g MB/h, with 95 %% confidence between %.3g and %.3g", line.PerUnit, line.Low, line.High)
		b.ReportMetric(line.PerUnit, "RSS-MB/h")
		b.ReportMetric(0, "ns/op")
	}
}

// lowest reduces a series with ascending x to the lowest point of each range of the given width. Between two garbage
// collections, memory only rises. lowest omits the last range, which may be shorter.
func lowest(x, y []float64, width float64) (tx, ty []float64) {
	from, minimum := 0, 0
	for i := range x {
		if x[i] >= x[from]+width {
			tx, ty = append(tx, x[minimum]), append(ty, y[minimum])
			from, minimum = i, i
		}
		if y[i] < y[minimum] {
			minimum = i
		}
	}
	return tx, ty
}

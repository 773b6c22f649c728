package publish

import (
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkPublish measures the cost of a message at 1000 per second, including a Go server in the same process.
func BenchmarkPublish(b *testing.B) {
	for name, rate := range map[string]float64{"1000": 1000, "10000": 10_000} {
		b.Run(name, func(b *testing.B) {
			base, _ := serveCounting(b, "HTTP/1.1 201 Created\r\nServer: nginx\r\nDate: Sun, 22 Nov 2026 06:00:00 GMT\r\nContent-Type: text/plain\r\n"+
				"Content-Length: 24\r\n\r\nqueued messages: 1234567", true)
			c := newConfig(b, base)
			c.Topics = nil
			for i := range 100 {
				c.Topics = append(c.Topics, "soak-topic-"+string(rune('a'+i%26))+string(rune('a'+i/26)))
			}
			c.Rate, c.Start = rate, time.Now()
			c.For = time.Duration(float64(b.N) / rate * float64(time.Second))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			used := cpu()
			b.ResetTimer()
			p := publishAll(b, c)
			b.StopTimer()
			used = cpu() - used
			runtime.ReadMemStats(&after)
			require.EqualValues(b, p.Planned, p.Sums().Confirmed)
			n := float64(p.Planned)
			b.ReportMetric(float64(used.Nanoseconds())/n, "cpu-ns/message")
			b.ReportMetric(used.Seconds()/max(b.Elapsed().Seconds(), 1e-9)*100, "%core")
			b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/n, "alloc-B/message")
			b.ReportMetric(float64(p.Lag.Quantile(.99).Microseconds()), "lag-p99-us")
			b.ReportMetric(float64(p.Answer.Quantile(.99).Microseconds()), "answer-p99-us")
		})
	}
}

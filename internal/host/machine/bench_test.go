package machine

import (
	"testing"
	"time"
)

// BenchmarkSample measures a sample, which a runner takes every 5 s.
func BenchmarkSample(b *testing.B) {
	w := New(time.Second)
	for b.Loop() {
		w.Sample(time.Now())
	}
}

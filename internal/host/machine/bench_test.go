package machine

import (
	"testing"
	"time"
)

// BenchmarkSample is what a runner does every 5 s.
func BenchmarkSample(b *testing.B) {
	w := New(time.Second)
	for b.Loop() {
		w.Sample(time.Now())
	}
}

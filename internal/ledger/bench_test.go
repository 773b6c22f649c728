package ledger

import (
	"testing"
	"time"
)

// What a noop costs the goroutine that reads its stream: with numbers, and by the clock alone.
func BenchmarkNoop(b *testing.B) {
	for name, numbered := range map[string]bool{"numbered": true, "clock": false} {
		b.Run(name, func(b *testing.B) {
			const interval = 15 * time.Second
			l := New("bench-0", &Config{Interval: interval, Late: time.Second})
			l.Connecting(1)
			l.Opened(2)
			b.ReportAllocs()
			at := Instant(2)
			for n := range uint64(b.N) {
				at += interval
				noop := Noop{At: at, Intact: true}
				if numbered {
					noop.Number = n + 1
				}
				l.Noop(noop)
			}
		})
	}
}

// hundred is the ledger of a stream that brought a hundred noops in time.
func hundred() *Ledger {
	l := New("bench-0", &Config{Interval: time.Second, Late: time.Second})
	l.Connecting(1)
	l.Opened(2)
	for n := range 100 {
		l.Noop(Noop{At: Instant(n+1) * time.Second, Number: uint64(n + 1), Intact: true})
	}
	return l
}

// What the sums of a stream cost, which are taken once a second of every one.
func BenchmarkSums(b *testing.B) {
	l := hundred()
	b.ReportAllocs()
	for b.Loop() {
		if l.Sums().Received != 100 {
			b.Fatal("not all were counted")
		}
	}
}

// What Steady costs instead, of most.
func BenchmarkSteady(b *testing.B) {
	l := hundred()
	b.ReportAllocs()
	for b.Loop() {
		if s, ok := l.Steady(); !ok || s.Received != 100 {
			b.Fatal("not all were counted")
		}
	}
}

// What a message without a number costs instead: the first stream appends it to the log, the others follow.
func BenchmarkPrinted(b *testing.B) {
	for name, streams := range map[string]int{"first": 1, "follower": 40} {
		b.Run(name, func(b *testing.B) {
			cfg := &Config{Interval: time.Second, Counting: Numbered, Published: true, AnyOrder: true}
			log := NewLog()
			ledgers := make([]*Ledger, streams)
			for i := range ledgers {
				ledgers[i] = New("bench-0", cfg)
				ledgers[i].Follow(log)
				ledgers[i].Connecting(1)
				ledgers[i].Opened(2)
			}
			b.ReportAllocs()
			for n := range b.N {
				at := Instant(n/streams+2) * time.Second
				ledgers[n%streams].Printed(Print{At: at, Sum: uint64(n / streams)}) // #nosec G115 -- positive
			}
		})
	}
}

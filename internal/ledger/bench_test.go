package ledger

import (
	"testing"
	"time"
)

func BenchmarkNoop(b *testing.B) {
	for name, numbered := range map[string]bool{"numbered": true, "clock": false} {
		b.Run(name, func(b *testing.B) {
			const interval = 15 * time.Second
			l := openLedger(&Config{Interval: interval, LatenessLimit: time.Second})
			b.ReportAllocs()
			at := Instant(2)
			for n := range uint64(b.N) {
				at += interval
				l.Noop(Noop{At: at, Number: numberIf(numbered, n+1), Intact: true})
			}
		})
	}
}

// BenchmarkUnnumbered measures the cost of a message without a number. The first stream appends the message to the log,
// and the others follow the log.
func BenchmarkUnnumbered(b *testing.B) {
	for name, streams := range map[string]int{"first": 1, "follower": 40} {
		b.Run(name, func(b *testing.B) {
			cfg := &Config{Interval: time.Second, Counting: Numbered, Published: true, AnyOrder: true}
			log := NewLog()
			ledgers := make([]*Ledger, streams)
			for i := range ledgers {
				ledgers[i] = New("bench-0", cfg)
				ledgers[i].UseLog(log)
				ledgers[i].Connecting(1)
				ledgers[i].Opened(2)
			}
			b.ReportAllocs()
			for n := range b.N {
				at := Instant(n/streams+2) * time.Second
				ledgers[n%streams].DeliveredUnnumbered(Fingerprint{At: at, Sum: uint64(n / streams)}) // #nosec G115 -- positive
			}
		})
	}
}

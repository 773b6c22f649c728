package shard

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

// newShardWithStreams returns a shard of a runner whose streams each received ten noops.
func newShardWithStreams(streams int) *Shard {
	config := &ledger.Config{Interval: time.Second, LatenessLimit: time.Second}
	s := newSmallShard()
	s.Connections = nil
	for n := range streams {
		l, at := ledger.New(fmt.Sprintf("soak-%d", n), config), time.Duration(n)*time.Millisecond
		l.Connecting(at)
		l.Opened(at + 3*time.Millisecond)
		for k := range 10 {
			jitter := time.Duration(n*k%997) * time.Microsecond
			l.Noop(ledger.Noop{At: at + time.Duration(k+1)*time.Second + jitter, Number: uint64(k + 1), Intact: true})
		}
		s.Ledgers = append(s.Ledgers, l)
	}
	return s
}

// A checkpoint contains all streams, but must not allocate memory for each of them.
func TestCheckpointAllocatesNothingPerStream(t *testing.T) { //nolint:paralleltest // it counts the allocations of the process
	allocations := func(streams int) float64 {
		s, e := newShardWithStreams(streams), new(Encoder)
		return testing.AllocsPerRun(10, func() { _, _ = e.Encode(s) })
	}
	require.InDelta(t, allocations(1), allocations(1000), 50)
}

func BenchmarkCheckpoint(b *testing.B) {
	s, e := newShardWithStreams(5000), new(Encoder)
	b.ReportAllocs()
	for b.Loop() {
		file, err := e.Encode(s)
		require.NoError(b, err)
		b.ReportMetric(float64(len(file))/float64(len(s.Ledgers)), "B/stream")
	}
}

package resources

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSummarizeSystemOmitsGaps(t *testing.T) {
	t.Parallel()
	sample := func(received, sent uint64, threads int, lookup float64) Sample {
		return Sample{BackendThreads: threads, NginxThreads: 2, Host: Host{System: System{Received: received, Transmitted: sent, LookupMS: lookup}}}
	}
	got := SummarizeSystem([]Sample{
		sample(1000, 500, 7, 3), sample(1500, 700, 9, 0), {}, sample(9000, 9000, 8, 40), sample(9100, 9001, 8, 5),
	})
	require.Equal(t, SystemSummary{
		BackendThreads: 9, NginxThreads: 2, Received: 600, Transmitted: 201, Lookups: 3, LookupP50: 5, LookupMax: 40,
	}, got, "the bytes during a gap do not count")
	require.Zero(t, SummarizeSystem(nil))
}

func TestFromHostReadsBytes(t *testing.T) {
	t.Parallel()
	var s Sample
	s.FromHost()
	require.Equal(t, s.NetworkKnown, s.Received > 0, "the bytes and the TCP counters must both be readable, or neither")
}

func TestLookupsResolveNamesOnly(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"http://127.0.0.1:80", "http://[::1]:80/x", "http:///", ""} {
		require.Nil(t, LookupsOf(address), address)
	}
	l := LookupsOf("https://localhost:8443/event")
	require.NotNil(t, l)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { l.Run(ctx); close(done) }()
	var s Sample
	require.Eventually(t, func() bool { s.FromLookups(l); return s.LookupMS > 0 }, time.Minute, time.Millisecond)
	s.FromLookups(l)
	require.Zero(t, s.LookupMS, "only the first sample after a lookup has its time")
	s.FromLookups(nil)
	cancel()
	<-done
}

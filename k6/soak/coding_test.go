package soak

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/internal/sseclient"
)

// arrives makes a stream in gzip whose noops arrive the given seconds after its headers.
func arrives(b *observer, opened time.Time, after ...float64) {
	b.connecting(opened)
	openStreams(b, opened, func(r *sseclient.Response) { r.Header.Set("Content-Encoding", "gzip") })
	for n, s := range after {
		b.event(opened.Add(time.Duration(s*float64(time.Second))), event(strconv.Itoa(n+1), "0", ""))
	}
}

// Messages that were due one by one and arrive together are distinguished from others, and from those stored for a client.
func TestCompressedBursts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		after    []float64
		want     shard.Coding
		together int64 // within a millisecond, whatever the compression, and not with the first message
	}{
		"one by one":          {[]float64{15, 30, 45.5, 60}, shard.Coding{Messages: 4}, 0},
		"two bursts":          {[]float64{15, 60, 60, 60.0005, 75, 105, 105.2}, shard.Coding{Messages: 7, Bursts: 2, Together: 5}, 2},
		"the first ones late": {[]float64{46, 46, 46}, shard.Coding{Messages: 3, Bursts: 1, Together: 3}, 0},
		"a history at first":  {[]float64{0.1, 0.1, 0.1, 15}, shard.Coding{Messages: 4}, 0},
	} {
		r := planned(t)
		arrives(newObserver(t, r, "d-0"), r.start, tt.after...)
		tt.want.Name, tt.want.Streams = "gzip", 1
		require.Equal(t, []shard.Coding{tt.want}, filled(r).Codings, name)
		if tt.together > 0 {
			require.Equal(t, []int64{6, tt.together}, []int64{filled(r).Bursts.Messages, filled(r).Bursts.Together}, name)
			require.InDelta(t, 45, filled(r).Bursts.Held.Max().Seconds(), .1)
		} else if bursts := filled(r).Bursts; bursts != nil {
			require.Zero(t, bursts.Together, name)
		}
	}

	r := planned(t)
	b := newObserver(t, r, "d-0")
	arrives(b, r.start, 15, 30)
	b.closed(r.start.Add(40*time.Second), sseclient.Close{Reason: sseclient.ReasonReset, Retry: 0})
	arrives(b, r.start.Add(100*time.Second), 40, 40, 40) // what the service kept meanwhile
	aside := newObserver(t, r, "d-1")
	aside.excluded = true
	arrives(aside, r.start, 60, 60, 60)
	require.Equal(t, []shard.Coding{{Name: "gzip", Streams: 3, Messages: 5}}, filled(r).Codings)
	require.Empty(t, filled(planned(t)).Codings)
}

package report

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/resources"
	"github.com/sse-soak/sse-soak/internal/shard"
)

// One bucket of 1970 in a run of today made an axis of eleven million steps a year.
func TestOutlyingTimestampsDoNotStretchTheAxis(t *testing.T) {
	t.Parallel()
	const began = 1_800_000_000
	h := shard.NewHistogram()
	h.Record(1)
	m := &shard.Merged{Series: []shard.Bucket{{Unix: 0, Open: 9, Lateness: h.Pack()}}}
	for i := range int64(20) {
		m.Series = append(m.Series, shard.Bucket{Unix: began + i*step, Open: 7, Lateness: h.Pack()})
	}
	m.Series = append(m.Series, shard.Bucket{Unix: 1 << 40, Open: 9, Lateness: h.Pack()})
	s := newSeries(m, []resources.Sample{{Unix: 1}, {Unix: began}}, 1)
	require.Less(t, s.n, 50_000)
	for i := range int64(20) {
		require.InDelta(t, 7, s.open[(began+(i+1)*step-s.from)/step], 0)
	}
	require.Len(t, known(s.open, 0, s.n), 20)

	gap := &shard.Merged{Series: []shard.Bucket{{Unix: began}, {Unix: began + 3600}}}
	require.Equal(t, 722, newSeries(gap, nil, 1).n, "a gap of an hour is no reason to leave anything out")
	require.Less(t, newSeries(&shard.Merged{}, []resources.Sample{{Unix: 1}, {Unix: began}, {Unix: 1 << 50}}, 1).n, 50_000)
}

package shard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

func TestLostFirstChunkIsNamed(t *testing.T) {
	r := NewResponses()
	for _, first := range []uint64{0, 1, 0} {
		var one ledger.Response
		for n := first; n < 3; n++ {
			one.Block(&ledger.Chunk{Content: true, Seq: n, HasSeq: true})
		}
		one.Block(&ledger.Chunk{Done: true})
		one.Close(0, ledger.ClosedInOrder)
		r.Add(&one, "id", "", time.Unix(1, 0), ResponseLimits{})
	}
	require.EqualValues(t, 2, r.FromZero)
	require.EqualValues(t, 1, r.FromOne)
	require.Len(t, r.Findings, 1)
	require.EqualValues(t, 0, *r.Findings[0].Lost)
	require.EqualValues(t, 1, r.Findings[0].Counts.Missed)
}

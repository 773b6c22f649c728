package shard

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

func TestResponseLogRoundTrip(t *testing.T) {
	var l ResponseLog
	at := time.UnixMilli(1_700_000_000_123)
	l.add(ledger.ResponseComplete, at, 1234*time.Millisecond)
	l.add(ledger.ResponseUnfinished, at.Add(-time.Second), 0) // the clock was set back
	l.add("unknown", at, 0)
	require.Equal(t, []LoggedResponse{
		{ledger.ResponseComplete, 1_699_999_998.889, 1_700_000_000.123}, {ledger.ResponseUnfinished, 1_699_999_999.123, 1_699_999_999.123},
	}, slices.Collect(l.All()))
	require.EqualValues(t, 1, l.Unlisted)
	require.NoError(t, l.check(at.Add(-time.Minute), at))

	for name, data := range map[string][]byte{
		"truncated": l.Data[:len(l.Data)-1], "an unknown state": {2, 15}, "before 1970": {1, 0}, "too late": {255, 255, 255, 255, 255, 255, 255, 255, 127, 0},
	} {
		require.ErrorIs(t, (&ResponseLog{Data: data}).check(time.Time{}, at), errLog, name)
	}
	l.Data = make([]byte, maxLogged)
	l.add(ledger.ResponseComplete, at, 0)
	require.Len(t, l.Data, maxLogged)
	require.EqualValues(t, 2, l.Unlisted)
}

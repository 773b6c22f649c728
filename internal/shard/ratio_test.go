package shard

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

// The bounds against gzip bombs accept the largest and most compressible shard that a runner writes.
func TestLargestShardStaysWithinTheBounds(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	p := planFor(1, 20_000)
	s := newEmptyShard(p, 1)
	s.Runner.EndedUS = s.Runner.StartedUS + time.Hour.Microseconds()
	for i := range p.Connections {
		s.Connections = append(s.Connections, ledger.Record{
			ID: p.ClientID(i), State: ledger.Completed, Reason: "server_closed", Numbered: true, Attempts: 1, Streams: 1,
			Connect: time.Millisecond, OpenedAt: time.Second, ClosedAt: time.Hour, StreamTime: time.Hour, Last: 239, Numberings: 1,
			Counts: ledger.Counts{Received: 239},
		})
	}
	file := encode(t, s)
	var text int
	for i := range s.Connections {
		text += len(s.Connections[i].ID) + 300
	}
	t.Logf("%d MB of %d MB", len(file)>>20, text>>20)
	require.Less(t, text, packedTimes*len(file)/2)
	got, err := Read(bytes.NewReader(file))
	require.NoError(t, err)
	require.Equal(t, p.Connections, got.packed.Len())
}

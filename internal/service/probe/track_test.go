package probe

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/service/stream"
)

// A service that sends an endless series of large events must not exhaust the memory of the probe.
func TestPartsOfAStreamUseBoundedMemory(t *testing.T) {
	t.Parallel()
	part := func(mark byte) (p stream.Part) {
		p.Data = bytes.Repeat([]byte{mark}, 1<<20-1)
		return p
	}
	for _, keepsLast := range []bool{false, true} {
		track := track{keepsLast: keepsLast}
		for i := range 12 {
			track.store(part(byte(i)))
		}
		size := 0
		for _, p := range track.parts {
			size += sizeOf(p)
		}
		require.Equal(t, size, track.size)
		require.LessOrEqual(t, size, maxBytes)
		require.NotEmpty(t, track.parts)
		first, last := track.parts[0].Data[0], track.parts[len(track.parts)-1].Data[0]
		require.Equal(t, keepsLast, last == 11)
		require.Equal(t, keepsLast, first != 0)
	}
}

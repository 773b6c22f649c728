package verdict

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/shard"
)

// If messages are due one by one and arrive together, the warning names a buffer, with the header Server if there is
// one.
func TestBuffersAreNamed(t *testing.T) {
	t.Parallel()
	for together, want := range map[int][]string{
		3: nil,
		9: {`90.0 % of the noops arrived together with the previous one, after a silence of 75 s at p50 and 75 s at most: something between the service and the client buffers them, such as nginx with proxy_buffering on (header Server: "nginx/1.22.1")`},
	} {
		m, server := cleanRun()
		m.Bursts = shard.NewBursts()
		m.Bursts.AddServer("nginx/1.22.1", 2)
		var before uint32
		for range 10 - together {
			m.Bursts.Add(75*time.Second, &before)
		}
		for range together {
			m.Bursts.Add(time.Microsecond, &before)
		}
		v := requireOutcome(t, Pass, judgeSoak(m, server, Evidence{}))
		require.InDelta(t, float64(together)/10, v.ArrivedTogether, 1e-9)
		require.Equal(t, want, v.Warnings)
	}
}

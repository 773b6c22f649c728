package ledger

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// While a run is in progress, a client is compared with the other clients of its runner.
func TestLagBehindOtherClients(t *testing.T) {
	t.Parallel()
	log, now := NewLog(), time.Second
	cfg := &Config{Interval: time.Second, LatenessLimit: time.Second, Counting: Numbered, Published: true, AnyOrder: true, IgnoresSilence: true}
	clients := make([]*Ledger, 3)
	for i := range clients {
		clients[i] = New("gold", cfg)
		clients[i].UseLog(log)
		clients[i].Connecting(now)
		clients[i].Opened(now)
	}
	send := func(message uint64, to ...int) {
		now += 2 * time.Second
		for _, i := range to {
			clients[i].DeliveredUnnumbered(Fingerprint{At: now, Sum: message})
		}
	}
	lag := func(i int) [2]uint64 {
		skipped, due := clients[i].Lag(now + 2*time.Second)
		return [2]uint64{skipped, due}
	}
	send(1, 0, 1, 2)
	send(2, 0, 1)
	require.Equal(t, [2]uint64{0, 1}, lag(2), "a message after the last one may still arrive")
	send(3, 0, 1, 2)
	require.Equal(t, [2]uint64{1, 0}, lag(2))
	send(4, 2)
	require.Equal(t, [2]uint64{}, lag(0), "only one client received message 4, which may be a changed message")
	skipped, due := clients[2].Lag(now)
	require.Equal(t, [2]uint64{1, 0}, [2]uint64{skipped, due})
	clients[2].DeliveredUnnumbered(Fingerprint{At: now, Sum: 2})
	require.Equal(t, [2]uint64{}, lag(2), "the skipped message has arrived")
}

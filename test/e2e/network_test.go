//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// TCP retransmits packets that are lost, or sent during a network outage that is shorter than the idle timeout. So
// noops may be late, but none is missing.
func TestPacketLossDelayAndShortDisconnectLoseNothing(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	w.secure = true
	w.delay.Store(int64(30 * time.Millisecond))
	w.loss.Store(10_000) // 1 %
	r := w.begin(t, "2", "--seconds", "20")
	r.awaitStreams("30")
	w.cut.Store(true)
	time.Sleep(600 * time.Millisecond) // the fault; TCP retransmits after 0.2, 0.6 and 1.4 s
	w.cut.Store(false)
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.Zero(t, v.Messages.Missed)
	require.GreaterOrEqual(t, v.ConnectMS.P50, 60.0, "the delay must be effective")
}

// Dropped packets leave connections half-open. The client detects them within 3 intervals.
func TestHalfOpenConnectionIsDetected(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	w.secure = true
	r := w.begin(t, "1", "--seconds", "15")
	r.awaitStreams("30")
	cutAt := float64(time.Now().UnixMilli()) / 1000
	w.cut.Store(true)
	await(t, "all streams must be dropped", func() bool { return strings.Contains(r.out.String(), " 0/30 open") })
	w.cut.Store(false) // otherwise the requests after the run wait for their timeouts
	v := r.verdict()
	require.Equal(t, verdict.Fail, v.Verdict, r.out.String())
	require.Equal(t, 30, v.Connections.Dropped)
	require.Contains(t, reasons(v), "went silent")
	for _, f := range v.Findings {
		if f.Kind == "dropped" {
			require.InDelta(t, cutAt, f.Unix, 3.2, f.Text)
		}
	}
}

// With RECONNECT the clients reconnect after a longer outage, replace their old streams and receive the missed
// messages by number.
func TestReconnectsSurviveLongDisconnect(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	r := w.begin(t, "1", "--seconds", "20", "--reconnect")
	r.awaitStreams("30")
	w.cut.Store(true)
	time.Sleep(5 * time.Second) // the fault
	w.cut.Store(false)
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.Zero(t, v.Messages.Missed)
	require.GreaterOrEqual(t, v.Connections.Reconnected, 30)
}

package sse

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/sseclient"
)

func TestBusyStreamDoesNotDelayOthers(t *testing.T) {
	runTransports(t, polledTransports, func(t *testing.T, w transport) {
		v := w.vu(t)
		busy := v.serve(func(p *peer) {
			p.send(streamHead)
			flood := strings.Repeat("data: 0\n\n", 16<<10)
			for {
				if _, err := io.WriteString(p.Conn, flood); err != nil {
					return
				}
			}
		})
		quiet := v.serve(func(p *peer) {
			p.send(streamHead)
			for range 20 {
				p.send("data: 0\n\n")
				time.Sleep(time.Millisecond)
			}
			p.hold()
		})
		var flood eventTally
		v.set("flood", &flood)
		v.mustRun(fmt.Sprintf(`
		const busy = new EventSource(%q, { reconnect: false, ledger: flood });
		var received = 0;
		busy.onopen = () => {
			const quiet = new EventSource(%q, { reconnect: false });
			quiet.onmessage = () => { if (++received === 20) { quiet.close(); busy.close(); } };
		};`, busy, quiet))
		require.Equal(t, "20", v.str("received"))
		require.Positive(t, flood.Load())
	})
}

// A stoppingLedger stops its VU before the stream is registered with the poller, and gives the poller time for a turn.
type stoppingLedger struct {
	stop func()
}

func (l *stoppingLedger) Opened(time.Time, *sseclient.Response) {
	l.stop()
	time.Sleep(50 * time.Millisecond)
}

func TestStreamStoppedBeforeItsFirstTurnEndsOnce(t *testing.T) {
	runTransports(t, allTransports, func(t *testing.T, w transport) {
		v := w.vu(t)
		url := v.serve(func(p *peer) { p.send(streamHead); p.hold() })
		v.set("ledger", &stoppingLedger{stop: v.CancelContext})
		v.mustRun(fmt.Sprintf(`
		const open = new EventSource(%q, { reconnect: false }); // keeps the poller running
		open.onopen = () => new EventSource(%q, { reconnect: false, ledger });`, url, url))
		closed, n := v.sum(v.drainSamples(), "sse_connection_closed", "reason", "interrupted", "opened", "true")
		require.Equal(t, 2.0, closed)
		require.Equal(t, 2, n)
	})
}

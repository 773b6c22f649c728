package sse

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The server gets neither an end nor acknowledgements. For the script, the source has ended.
func TestVanishLeavesTheConnectionHalfOpen(t *testing.T) {
	runTransports(t, polledTransports, func(t *testing.T, w transport) {
		v, result := w.vu(t), make(chan string, 1)
		v.set("url", v.serve(func(p *peer) {
			_ = p.tcp.SetNoDelay(true)
			p.send(streamHead + "data: a\n\n")
			for unacknowledged(t, p.tcp) == 0 { // until the client vanishes
				p.send("data: b\n\n")
				time.Sleep(50 * time.Millisecond)
			}
			result <- readEnd(p.Conn, 300*time.Millisecond)
		}))
		require.Equal(t, "false true false cut false false", v.log(`
		const s = new EventSource(url, { reconnect: false });
		log.push(s.vanish());
		s.onmessage = () => { log.push(s.vanish(), s.vanish()); s.onmessage = null; };
		s.onerror = (e) => log.push(e.reason, e.willReconnect, s.vanish());
	`))
		require.Equal(t, "nothing", <-result)
	})
}

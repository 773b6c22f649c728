package sse

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A source that vanishes is over for its script. The server sees nothing of it, and what it sends is not acknowledged.
func TestVanishedSource(t *testing.T) {
	over(t, polledWays, func(t *testing.T, w way) {
		v, saw := w.vu(t), make(chan string, 1)
		v.set("url", v.serve(func(p *peer) {
			_ = p.tcp.SetNoDelay(true)
			p.say(streamHead + "data: a\n\n")
			for unacknowledged(t, p.tcp) == 0 { // the client vanishes meanwhile
				p.say("data: b\n\n")
				time.Sleep(50 * time.Millisecond)
			}
			saw <- whatEnds(p.Conn, 300*time.Millisecond)
		}))
		require.Equal(t, "false true false cut false false", v.log(`
		const s = new EventSource(url, { reconnect: false });
		log.push(s.vanish());
		s.onmessage = () => { log.push(s.vanish(), s.vanish()); s.onmessage = null; };
		s.onerror = (e) => log.push(e.reason, e.willReconnect, s.vanish());
	`))
		require.Equal(t, "nothing", <-saw)
	})
}

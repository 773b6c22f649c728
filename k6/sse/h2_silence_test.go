package sse

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A connection from which nothing comes any more takes no new stream.
func TestSilentConnectionIsNotReused(t *testing.T) {
	over2(t, func(p *framed) {
		if p.n > 0 {
			for range 2 {
				p.data(p.accepted(), "data: back\n\n")
			}
			p.ended()
			return
		}
		for range 2 {
			p.data(p.accepted(), "data: a\n\n")
		}
		<-p.t.Context().Done()
	}, func(t *testing.T, v *vu) {
		begun := time.Now()
		require.Equal(t, "2", v.log(`
			let back = 0;
			for (let i = 0; i < 2; i++) {
				const s = new EventSource(url, { http: "2", reconnectDelay: 1, idleTimeout: 100 });
				s.addEventListener("message", (e) => {
					if (e.data !== "back") return;
					s.close();
					if (++back === 2) log.push(back);
				});
			}
		`))
		require.Less(t, time.Since(begun), 20*time.Second)
	})
}

package sse

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSilentConnectionIsNotReused(t *testing.T) {
	runH2(t, func(p *framed) {
		if p.n > 0 {
			for range 2 {
				p.data(p.acceptStream(), "data: back\n\n")
			}
			p.readAll()
			return
		}
		for range 2 {
			p.data(p.acceptStream(), "data: a\n\n")
		}
		<-p.t.Context().Done()
	}, func(t *testing.T, v *vu) {
		start := time.Now()
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
		require.Less(t, time.Since(start), 20*time.Second)
	})
}

package sse

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
)

// A stream that can be cut has a separate connection, so a cut has the same effect as over HTTP/1.1. If a callback cuts
// the stream while the reader has more data, the reader must check the connection again.
func TestCutOverH2(t *testing.T) {
	t.Parallel()
	for kind, want := range map[Cut]string{CutFIN: "FIN", CutRST: "RST", CutHalfOpen: "nothing"} {
		for _, inCallback := range []bool{false, true} {
			t.Run(fmt.Sprint(want, " ", inCallback), func(t *testing.T) {
				runTransports(t, transports, func(t *testing.T, w transport) {
					v, c := w.vu(t), &cutter{}
					result := make(chan string, 1)
					v.set("ledger", c)
					v.set("inCallback", inCallback)
					c.addCut(v, kind)
					if inCallback {
						c.onEvent = sync.OnceFunc(func() { c.cut(kind, 0) })
					}
					v.set("url", w.url(serveFrames(t, func(p *framePeer) {
						id := p.acceptStream()
						if p.n > 0 {
							p.data(id, "id: 2\ndata: after\n\n")
							p.readAll()
							return
						}
						p.data(id, "id: 1\ndata: a\n\n")
						result <- readEnd(p.line, map[bool]time.Duration{true: 200 * time.Millisecond, false: testTimeout}[kind == CutHalfOpen])
					})))
					require.Equal(t, "a after", v.log(`
						const other = new EventSource(url.replace("127.0.0.1", "127.0.0.2"), { http: "2", reconnect: false });
						const s = new EventSource(url, { http: "2", ledger, reconnectDelay: 1 });
						s.onmessage = (e) => { log.push(e.data); if (e.data !== "a") s.close(); else if (!inCallback) cut(0); };
					`))
					require.Equal(t, want, <-result)
					require.Equal(t, "connecting opened event:a cut:"+cutNames[kind]+" closed:cut+retry connecting opened event:after closed:client", c.String())
				})
			})
		}
	}
}

// A pause stops the reading of the connection. Data that arrives during the pause is read after it.
func TestPauseOverH2(t *testing.T) {
	runTransports(t, polledTransports, func(t *testing.T, w transport) {
		v, c := w.vu(t), &cutter{}
		v.set("ledger", c)
		c.addCut(v, CutPause)
		v.set("url", w.url(serveFrames(t, func(p *framePeer) {
			id := p.acceptStream()
			p.data(id, "data: a\n\n")
			assert.Eventually(t, func() bool { return strings.Contains(c.String(), "cut:pause") }, testTimeout, time.Millisecond)
			start := time.Now()
			p.settle()
			if time.Since(start) > 200*time.Millisecond {
				p.data(id, "data: paused\n\n")
			}
			p.finish(id)
			p.readAll()
		})))
		v.mustRun(`
			const s = new EventSource(url, { http: "2", ledger, reconnect: false });
			s.onmessage = (e) => { if (e.data === "a") cut(600); };
		`)
		require.Equal(t, "connecting opened event:a cut:pause pause-over event:paused closed:server", c.String())
	})
}

// A slow stream has a separate connection, which is read slowly as well.
func TestSlowOverH2(t *testing.T) {
	runTransports(t, polledTransports, func(t *testing.T, w transport) {
		v := w.vu(t)
		isSlow, checked := make(chan struct{}), make(chan struct{})
		v.set("url", w.url(serveFrames(t, func(p *framePeer) {
			id := p.acceptStream()
			p.data(id, "data: a\n\n")
			<-isSlow
			_ = p.WritePing(false, [8]byte{})
			_ = p.tcp.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
			if _, err := p.next(http2.FramePing); err == nil {
				p.data(id, "data: the PING was read\n\n")
			}
			_ = p.tcp.SetReadDeadline(time.Time{})
			close(checked)
			if _, err := p.next(http2.FramePing); err != nil {
				return
			}
			_ = p.WriteData(id, true, []byte("data: b\n\n"))
			p.readAll()
		})))
		v.set("awaitSlow", func() { time.Sleep(200 * time.Millisecond); close(isSlow); <-checked })
		require.Equal(t, "a true true b", v.log(`
			const s = new EventSource(url, { http: "2", streamsPerConnection: 1, reconnect: false });
			s.onmessage = (e) => {
				log.push(e.data);
				if (e.data !== "a") return;
				log.push(s.slow(0));
				awaitSlow();
				log.push(s.slow(Infinity));
			};
		`))
	})
}

// The end of the HTTP/2 stream ends the slow reading, even if the connection stays open.
func TestServerResetsSlowStreamOverH2(t *testing.T) {
	runTransports(t, polledTransports, func(t *testing.T, w transport) {
		v := w.vu(t)
		isSlow := make(chan struct{})
		v.set("url", w.url(serveFrames(t, func(p *framePeer) {
			id := p.acceptStream()
			p.data(id, "data: a\n\n")
			<-isSlow
			p.data(id, "data: b\n\n")
			_ = p.WriteRSTStream(id, http2.ErrCodeInternal)
			p.readAll()
		})))
		v.set("noteSlow", func() { close(isSlow) })
		require.Equal(t, "a true b reset", v.log(`
			const s = new EventSource(url, { http: "2", streamsPerConnection: 1, reconnect: false });
			s.onmessage = (e) => {
				log.push(e.data);
				if (e.data === "a") { log.push(s.slow(10000)); setTimeout(noteSlow, 300); }
			};
			s.onerror = (e) => log.push(e.reason);
		`))
	})
}

// The actions vanish and slow would affect the other streams of the connection.
func TestSharedStreamCanOnlyBeDropped(t *testing.T) {
	runH2(t, func(p *framePeer) {
		for range 2 {
			p.data(p.acceptStream(), "data: a\n\n")
		}
		f, err := p.next(http2.FrameRSTStream)
		if err != nil {
			return
		}
		p.data(p.acceptStream(), "data: again\n\n")
		_ = p.WriteData(4-f.Header().StreamID, true, []byte("data: still here\n\n"))
		p.readAll()
	}, func(t *testing.T, v *vu) {
		got := v.log(`
			let open = 0;
			const all = [0, 1].map(() => new EventSource(url, { http: "2" }));
			for (const s of all) {
				s.onmessage = (e) => {
					log.push(e.data);
					if (e.data === "a" && ++open === 2) {
						for (const refused of ["vanish", "slow"]) try { all[0][refused](0); } catch (e) { log.push(e.message || e); }
						log.push(all[0].drop(true));
					}
					if (log.includes("again") && log.includes("still here")) all.forEach((s) => s.close());
				};
			}
		`)
		require.Contains(t, got, "a a")
		require.Equal(t, 2, strings.Count(got, "set the option streamsPerConnection to 1"), got)
		require.Contains(t, got, "true")
		require.Contains(t, got, "again")
	})
}

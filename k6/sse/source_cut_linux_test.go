package sse

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// filler is an event of 64 KB.
var filler = "data: " + strings.Repeat("x", 64<<10) + "\n\n"

// fill writes events in a goroutine, and returns when no write has succeeded for 300 ms. It returns the number of bytes
// of the complete writes, and a function that stops the writes and waits for the last one.
func (p *peer) fill() (sent int, wait func()) {
	var n atomic.Int64
	var stopped atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stopped.Load() {
			if _, err := io.WriteString(p.Conn, filler); err != nil {
				return
			}
			n.Add(int64(len(filler)))
		}
	}()
	for last := int64(-1); last != n.Load(); time.Sleep(300 * time.Millisecond) {
		last = n.Load()
	}
	return int(n.Load()), func() { stopped.Store(true); <-done }
}

// The buffers of the server fill while the client does not read. Later the client reads all data.
func TestStreamLosesNoDataWhileItIsNotRead(t *testing.T) {
	runTransports(t, polledTransports, func(t *testing.T, w transport) {
		v, full := w.vu(t), make(chan int, 1)
		v.set("url", v.serve(func(p *peer) {
			p.send(streamHead + "data: go\n\n")
			n, wait := p.fill()
			full <- n
			wait()
			p.send("data: last\n\n")
			p.hold()
		}))
		v.set("wait", func() int { return <-full })
		require.Equal(t, "false true true true", v.log(`
		const s = new EventSource(url, { reconnect: false, idleTimeout: 500 });
		log.push(s.slow(0));
		let bytes = 0, sent = 0;
		s.onmessage = (e) => {
			bytes += e.data.length + 8;
			if (e.data === 'go') {
				bytes = 0;
				log.push(s.slow(0));
				setTimeout(() => { sent = wait(); s.idleTimeout = 5000; log.push(s.slow(Infinity)); }, 800);
			} else if (e.data === 'last') {
				log.push(bytes > sent && sent > 100000);
				s.close();
			}
		};
		s.onerror = (e) => log.push(e.reason);
	`))
	})
}

func TestSlowStreamReadsAtMostItsRate(t *testing.T) {
	runTransports(t, polledTransports, func(t *testing.T, w transport) {
		v, slow := w.vu(t), make(chan struct{})
		v.set("url", v.serve(func(p *peer) {
			p.send(streamHead)
			<-slow
			p.send(strings.Repeat("data: 0123456789\n\n", 2000)) // 18 bytes each
			p.hold()
		}))
		v.set("noteSlow", func() { close(slow) })
		v.set("now", func() float64 { return float64(time.Now().UnixMicro()) / 1e6 })
		require.Equal(t, "true true true", v.log(`
		const s = new EventSource(url, { reconnect: false });
		let got = 0, start;
		s.onopen = () => { start = now(); log.push(s.slow(1800)); noteSlow(); };
		s.onmessage = () => {
			if (++got === 60) {
				const seconds = now() - start;
				log.push(got <= 100 * (seconds + 0.5), s.slow(Infinity)); // a tick is a quarter of a second
			}
			if (got === 2000) s.close();
		};
		s.onerror = (e) => log.push(e.reason);
	`))
	})
}

// A stream with a rate below one byte per tick is read one byte at a time.
func TestVerySlowStreamIsRead(t *testing.T) {
	t.Parallel()
	slow := make(chan struct{})
	v := serveVU(t, func(p *peer) {
		p.send(streamHead + "data: go\n\ndata: one byte is missing\n")
		<-slow
		p.send("\n")
		p.hold()
	})
	v.set("noteSlow", func() { close(slow) })
	require.Equal(t, "go true one byte is missing", v.log(`
		const s = new EventSource(url, { reconnect: false });
		s.onmessage = (e) => {
			log.push(e.data);
			if (e.data === 'go') { log.push(s.slow(3)); noteSlow(); } else { s.close(); }
		};
	`))
}

func TestEndIsDetectedWhileTheStreamIsNotRead(t *testing.T) {
	runTransports(t, polledTransports, func(t *testing.T, w transport) {
		for reason, end := range map[string]func(p *peer){"reset": (*peer).reset, "server": func(p *peer) { _ = p.Close() }} {
			t.Run(reason, func(t *testing.T) {
				t.Parallel()
				v := w.vu(t)
				slow := make(chan struct{})
				v.set("url", v.serve(func(p *peer) {
					p.send(streamHead + "data: go\n\n")
					<-slow
					p.send("data: unread\n\n")
					end(p)
				}))
				v.set("noteSlow", func() { close(slow) })
				log := v.log(`
				const s = new EventSource(url, { reconnect: false });
				s.onmessage = (e) => {
					log.push(e.data);
					if (e.data === 'go') { log.push(s.slow(0), s.drop()); setTimeout(noteSlow, 100); }
				};
				s.onerror = (e) => log.push(e.reason, s.slow(0));
			`)
				require.Contains(t, log, "go true false")
				require.Contains(t, log, fmt.Sprintf("%s false", reason))
			})
		}
	})
}

// lastIDHandler returns a handler that sends a reconnection time and one event. The event has the id 1, and its data
// contains the last event ID of the request.
func lastIDHandler(retryMS int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		sendEvents(w, fmt.Sprintf("retry: %d\nid: 1\ndata: after %s\n\n", retryMS, r.Header.Get("Last-Event-ID")))
		<-r.Context().Done()
	}
}

// An immediate reconnect ignores the reconnection time of the server.
func TestDroppedSourceReconnects(t *testing.T) {
	runTransports(t, allTransports, func(t *testing.T, w transport) {
		for _, immediate := range []bool{false, true} {
			v, retry := w.vu(t), 100
			if immediate {
				retry = 3600_000
			}
			v.set("immediate", immediate)
			reconnected := make(chan struct{}, 1)
			v.set("awaitReconnect", func() { <-reconnected })
			v.set("url", v.serveHTTP(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Last-Event-ID") != "" {
					reconnected <- struct{}{}
				}
				lastIDHandler(retry)(w, r)
			}))
			start := time.Now()
			require.Equal(t, "after  true 0 false cut true after 1", v.log(`
				const s = new EventSource(url);
				s.onerror = (e) => log.push(e.reason, e.willReconnect && (e.retryMs === 0) === immediate);
				s.onmessage = (e) => {
					log.push(e.data);
					if (e.data !== "after ") { s.close(); return; }
					log.push(s.drop(immediate), s.readyState);
					awaitReconnect(); // before the event loop reports the end
					log.push(s.drop(immediate));
				};
			`))
			if !immediate {
				require.GreaterOrEqual(t, time.Since(start), 100*time.Millisecond, "the source must wait for the reconnection time")
			}
		}
	})
}

func TestDropNeedsAnOpenStream(t *testing.T) {
	t.Parallel()
	v := newVU(t)
	v.set("url", v.serveHTTP(lastIDHandler(1)))
	require.Equal(t, "false true cut false false", v.log(`
		const s = new EventSource(url, { reconnect: false });
		log.push(s.drop(true));
		s.onmessage = () => log.push(s.drop(true));
		s.onerror = (e) => log.push(e.reason, e.willReconnect, s.drop(true));
	`))
}

// The server receives neither the end of the connection nor acknowledgments. For the script, the source has ended.
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

package sse

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
)

func TestStreamsOfALostConnectionReconnectOnOneConnection(t *testing.T) {
	for reason, lose := range map[string]func(p *framePeer){
		"reset": func(p *framePeer) {
			p.settle()
			_ = p.tcp.SetLinger(0)
			_ = p.tcp.Close()
		},
		"idle": func(p *framePeer) { <-p.t.Context().Done() },
	} {
		t.Run(reason, func(t *testing.T) {
			runH2(t, func(p *framePeer) {
				assert.LessOrEqual(p.t, p.n, 1, "the streams must reconnect on one connection")
				for range 10 {
					p.data(p.acceptStream(), []string{"data: a\n\n", "data: back\n\n"}[p.n])
				}
				if p.n == 0 {
					lose(p)
				}
				p.readAll()
			}, func(t *testing.T, v *vu) {
				ledgers := observers[recorder](v)
				v.mustRun(`
					for (let i = 0; i < 10; i++) {
						const s = new EventSource(url, { http: "2", ledger: ledger(), reconnectDelay: 1, idleTimeout: 500 });
						s.onmessage = (e) => { if (e.data === "back") s.close(); };
					}
				`)
				for _, r := range *ledgers {
					require.Equal(t, "connecting opened event:a closed:"+reason+"+retry connecting opened event:back closed:client", r.String())
				}
			})
		})
	}
}

// The client sends the request on up to five connections.
func TestGoAwayBeforeARequestIsRetried(t *testing.T) {
	for _, c := range []struct {
		refusals int
		want     string
	}{{3, "^open a$"}, {100, "^reset: .*GOAWAY NO_ERROR"}} {
		t.Run(strconv.Itoa(c.refusals), func(t *testing.T) {
			runTransports(t, mixedTransports, func(t *testing.T, w transport) {
				v := w.vu(t)
				v.set("url", w.url(serveSilent(t, func(p *framePeer) {
					if p.n < c.refusals {
						p.sendInPieces(0, func() { _ = p.WriteSettings(); _ = p.WriteGoAway(0, http2.ErrCodeNo, nil) })
					} else {
						_ = p.WriteSettings()
						p.data(p.acceptStream(), "data: a\n\n")
					}
					p.readAll()
				})))
				require.Regexp(t, c.want, v.log(`
					const s = new EventSource(url, { http: "2", reconnect: false });
					s.onopen = () => log.push("open");
					s.onmessage = (e) => { log.push(e.data); s.close(); };
					s.onerror = (e) => log.push(e.reason + ": " + e.message);
				`))
			})
		})
	}
}

// The server has not processed streams above the last stream ID of a GOAWAY. Other streams continue.
func TestGoAwayRetriesUnprocessedStreams(t *testing.T) {
	runH2(t, func(p *framePeer) {
		if p.n > 0 {
			for range 2 {
				p.data(p.acceptStream(), "data: elsewhere\n\n")
			}
			p.readAll()
			return
		}
		var last uint32
		for range 3 {
			last = p.acceptStream()
			p.data(last, "data: here\n\n")
		}
		p.request()
		p.request()
		_ = p.WriteGoAway(last, http2.ErrCodeNo, nil)
		time.Sleep(20 * time.Millisecond)
		for id := uint32(1); id <= last; id += 2 {
			p.data(id, "data: still here\n\n")
		}
		p.readAll()
	}, func(t *testing.T, v *vu) {
		var failed atomic.Int32
		v.set("failed", func() { failed.Add(1) })
		require.Equal(t, "here here here elsewhere elsewhere still here still here still here", v.log(`
			const all = [];
			for (let i = 0; i < 5; i++) {
				const s = new EventSource(url, { http: "2" });
				all.push(s);
				s.onmessage = (e) => {
					log.push(e.data);
					if (log.length === 8) {
						all.forEach((s) => s.close());
						log.sort((a, b) => ["here", "elsewhere", "still here"].indexOf(a) - ["here", "elsewhere", "still here"].indexOf(b));
					}
				};
				s.onerror = () => failed();
			}
		`))
		require.Zero(t, failed.Load())
	})
}

func TestRefusedStreamIsRetriedWithALimit(t *testing.T) {
	runH2(t, func(p *framePeer) {
		for n := 0; ; n++ {
			id := p.request()
			if id == 0 {
				return
			}
			if n == 3 && p.n == 0 {
				p.headers(id, false, ":status", "200", "content-type", "text/event-stream")
				_ = p.WriteData(id, true, []byte("data: a\n\n"))
				continue
			}
			_ = p.WriteRSTStream(id, http2.ErrCodeRefusedStream)
		}
	}, func(t *testing.T, v *vu) {
		require.Equal(t, "open a server: the server ended the stream", v.log(strings.Replace(oneStream, `"2"`, `"2", maxRedirects: 0`, 1)))
		require.Equal(t, "reset: read the response header: RST_STREAM REFUSED_STREAM: the server has not processed the request", v.log(`{ `+oneStream+` }`))
	})
}

// Frames that arrive for a closed stream must not affect other streams.
func TestClosedStreamIsCanceled(t *testing.T) {
	runH2(t, func(p *framePeer) {
		first, second := p.acceptStream(), p.acceptStream()
		p.data(first, "data: a\n\n")
		f, err := p.next(http2.FrameRSTStream)
		if err != nil || f.Header().StreamID != first || f.(*http2.RSTStreamFrame).ErrCode != http2.ErrCodeCancel {
			return
		}
		p.data(first, "data: nobody\n\n")
		p.headers(first, true, "a", "b")
		_ = p.WriteWindowUpdate(first, 1)
		_ = p.WriteRSTStream(first, http2.ErrCodeNo)
		_ = p.WriteData(second, true, []byte("data: b\n\n"))
		p.readAll()
	}, func(t *testing.T, v *vu) {
		require.Equal(t, "a b server", v.log(`
			const first = new EventSource(url, { http: "2", reconnect: false });
			first.onopen = () => {
				const second = new EventSource(url, { http: "2", reconnect: false });
				second.onmessage = (e) => log.push(e.data);
				second.onerror = (e) => log.push(e.reason);
			};
			first.onmessage = (e) => { log.push(e.data); first.close(); };
		`))
	})
}

func TestLaterSettingsChangeTheLimits(t *testing.T) {
	runH2(t, func(p *framePeer) {
		if p.n > 0 { // the second connection, for the stream that exceeded the limit of the first connection
			p.data(p.acceptStream(), "data: second\n\n")
			p.readAll()
			return
		}
		id := p.request()
		_ = p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20}, http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1 << 20},
			http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 1}, http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0})
		_ = p.WriteWindowUpdate(0, 1<<20)
		got := 0
		for got < 500_000 {
			f, err := p.next(http2.FrameData)
			if err != nil {
				return
			}
			got += int(f.Header().Length)
		}
		p.headers(id, false, ":status", "200", "content-type", "text/event-stream")
		p.data(id, fmt.Sprintf("data: %d\n\n", got))
		p.readAll()
	}, func(t *testing.T, v *vu) {
		v.set("big", strings.Repeat("b", 500_000))
		require.Equal(t, "500000 second", v.log(`
			const first = new EventSource(url, { http: "2", reconnect: false, method: "POST", body: big });
			first.onmessage = (e) => {
				log.push(e.data);
				const second = new EventSource(url, { http: "2", reconnect: false });
				second.onmessage = (e) => { log.push(e.data); first.close(); second.close(); };
			};
		`))
	})
}

// A body larger than the windows continues after WINDOW_UPDATE.
func TestBodyWaitsForTheWindow(t *testing.T) {
	runH2(t, func(p *framePeer) {
		_ = p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 10})
		id := p.request()
		got := 0
		for got < 1000 {
			f, err := p.next(http2.FrameData)
			if err != nil {
				return
			}
			got += int(f.Header().Length)
			if got < 1000 {
				_ = p.WriteWindowUpdate(id, 10)
			}
		}
		p.headers(id, false, ":status", "200", "content-type", "text/event-stream")
		_ = p.WriteData(id, true, []byte("data: a\n\n"))
		p.readAll()
	}, func(t *testing.T, v *vu) {
		v.set("big", strings.Repeat("b", 1000))
		require.Contains(t, v.readStream(`http: "2", method: "POST", body: big`), "a server:")
	})
}

// A blocked reader delays only its own stream.
func TestStreamsDoNotBlockEachOther(t *testing.T) {
	runTransports(t, mixedTransports, func(t *testing.T, w transport) {
		v := w.vu(t)
		var received eventTally // events of the other stream
		conns := v.serveH2(func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", "text/event-stream")
			for range 200 { // both bodies together exceed the window of the connection
				_, _ = fmt.Fprintf(rw, "data: %s\n\n", strings.Repeat("x", 10_000))
			}
		})
		v.set("ledger", &received)
		v.set("other", func() int64 {
			for start := time.Now(); received.Load() < 200 && time.Since(start) < testTimeout/2; {
				time.Sleep(time.Millisecond)
			}
			return received.Load()
		})
		require.Equal(t, "200 200", v.log(`
			const s = new EventSource(url, { http, ledger, reconnect: false });
			let n = 0;
			sse.open(url, { http }, (client) => client.on("event", () => { if (n++ === 0) log.push(other()); }));
			log.push(n);
		`))
		require.EqualValues(t, 1, conns.Load())
	})
}

func TestServerThatExceedsTheWindowViolatesTheProtocol(t *testing.T) {
	runTransports(t, mixedTransports, func(t *testing.T, w transport) {
		refusal := make(chan string, 1)
		v := w.vu(t)
		v.set("refusal", func() string { return <-refusal })
		v.set("url", w.url(serveFrames(t, func(p *framePeer) {
			id := p.acceptStream()
			p.data(id, "data: a\n\n")
			for range 10 { // the window has room for four
				p.data(id, "data: "+strings.Repeat("x", 15_000)+"\n\n")
			}
			if reset, err := p.next(http2.FrameRSTStream); err == nil {
				p.note(reset)
			}
			refusal <- strings.Join(p.log, " ")
			p.readAll()
		})))
		require.Equal(t, "RST_STREAM 1 FLOW_CONTROL_ERROR read the stream: the server violated HTTP/2 (FLOW_CONTROL_ERROR): DATA exceeds the window of the stream", v.log(`
			const res = sse.open(url, { http: "2" }, (client) => client.on("event", (e) => { if (e.data === "a") log.push(refusal()); }));
			log.push(res.error);
		`))
	})
}

func TestFailedStartOfHTTP2IsReported(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, want string
		send       func(p *framePeer)
	}{
		{"PING", "error: start HTTP/2: the server violated HTTP/2 (PROTOCOL_ERROR): its first frame is PING, not SETTINGS", func(p *framePeer) { _ = p.WritePing(false, [8]byte{}) }},
		{"an acknowledgment", "error: start HTTP/2: the server violated HTTP/2 (PROTOCOL_ERROR): its first frame acknowledges SETTINGS, but its own SETTINGS must be first", func(p *framePeer) { _ = p.WriteSettingsAck() }},
		{"nothing", "truncated: start HTTP/2: the server ended the connection without a complete HTTP/2 frame: unexpected EOF", func(*framePeer) {}},
		{"silence", "connect_timeout: no complete response header within the connect timeout (start HTTP/2): context deadline exceeded", func(p *framePeer) { p.readAll() }},
		{"HTTP/1.1", "error: start HTTP/2: the server responded with HTTP/1.1 and does not support HTTP/2 without TLS", func(p *framePeer) { _, _ = p.conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) }},
		{"no streams", "error: start HTTP/2: the server allows no stream on the connection (MAX_CONCURRENT_STREAMS is 0)", func(p *framePeer) {
			_ = p.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 0})
			p.readAll()
		}},
		{"GOAWAY", "reset: start HTTP/2: GOAWAY INADEQUATE_SECURITY: reset by the server", func(p *framePeer) {
			p.sendInPieces(0, func() { _ = p.WriteSettings(); _ = p.WriteGoAway(0, http2.ErrCodeInadequateSecurity, nil) })
			p.readAll()
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			runTransports(t, mixedTransports, func(t *testing.T, w transport) {
				v := w.vu(t)
				v.set("url", w.url(serveSilent(t, tt.send)))
				script := oneStream
				if tt.name == "silence" {
					script = strings.Replace(oneStream, "reconnect: false", "reconnect: false, connectTimeout: 500", 1)
				}
				require.Equal(t, tt.want, v.log(script))
			})
		})
	}
}

func TestOptionNoConnectionReuseSeparatesStreams(t *testing.T) {
	runTransports(t, mixedTransports, func(t *testing.T, w transport) {
		v := w.vu(t)
		v.state.Options.NoConnectionReuse.Valid, v.state.Options.NoConnectionReuse.Bool = true, true
		conns := v.serveH2(func(rw http.ResponseWriter, _ *http.Request) { stream(rw, "data: a\n\n") })
		v.mustRun(`for (let i = 0; i < 3; i++) new EventSource(url, { http, reconnect: false })`)
		require.EqualValues(t, 3, conns.Load())
	})
}

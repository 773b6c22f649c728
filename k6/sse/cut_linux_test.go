package sse

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// A cutter is a recorder whose stream a script can disconnect.
type cutter struct {
	recorder
	stream  *sseclient.Stream
	onEvent func() // runs while an event is read; may be nil
}

func (c *cutter) Event(at time.Time, e *eventstream.Event) {
	c.recorder.Event(at, e)
	if c.onEvent != nil {
		c.onEvent()
	}
}

func (c *cutter) Cuttable(s *sseclient.Stream) bool {
	c.stream = s
	return true
}

var cutNames = map[Cut]string{CutFIN: "fin", CutRST: "rst", CutHalfOpen: "half", CutPause: "pause"}

func (c *cutter) Cut(at time.Time, kind Cut)  { c.note(at, "cut:%s", cutNames[kind]) }
func (c *cutter) Resumed(at time.Time, _ Cut) { c.note(at, "pause-over") }
func (c *cutter) cut(kind Cut, ms int) bool {
	return c.stream.Cut(kind, time.Duration(ms)*time.Millisecond)
}

// addCut defines the script function cut(ms), which disconnects the stream.
func (c *cutter) addCut(v *vu, kind Cut) {
	v.set("cut", func(ms int) bool { return c.cut(kind, ms) })
}

func sendEvents(w http.ResponseWriter, events string) {
	stream(w, events)
	w.(http.Flusher).Flush()
}

// readEnd reads a connection until it ends or the timeout expires, and describes the end.
func readEnd(conn net.Conn, timeout time.Duration) string {
	_ = conn.SetReadDeadline(time.Now().Add(timeout))
	_, err := io.Copy(io.Discard, conn)
	switch {
	case err == nil:
		return "FIN"
	case errors.Is(err, syscall.ECONNRESET):
		return "RST"
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "nothing"
	}
	return err.Error()
}

// The stream resumes after the last event that was read.
func TestCutStreamResumes(t *testing.T) {
	runTransports(t, transports, func(t *testing.T, w transport) {
		for kind, want := range map[Cut]string{CutFIN: "FIN", CutRST: "RST", CutHalfOpen: "nothing"} {
			t.Run(want, func(t *testing.T) {
				t.Parallel()
				v, c := w.vu(t), &cutter{}
				result := make(chan string, 1)
				reconnected := make(chan struct{})
				v.set("ledger", c)
				c.addCut(v, kind)
				v.set("url", v.serve(func(p *peer) {
					if p.n > 0 {
						p.send(streamHead + "id: 2\ndata: after " + p.req.Header.Get("Last-Event-ID") + "\n\n")
						p.hold()
						return
					}
					p.send(streamHead + "retry: 5\n\nid: 1\ndata: a\n\n")
					if kind == CutHalfOpen {
						<-reconnected
						p.send("id: 9\ndata: unread\n\n")
						end := readEnd(p.Conn, 300*time.Millisecond)
						assert.Positive(t, unacknowledged(t, p.tcp))
						result <- end // ends the test, which closes the connection
						return
					}
					result <- readEnd(p.Conn, testTimeout)
				}))
				v.set("reconnected", func() { close(reconnected) })
				require.Equal(t, "a true false after 1", v.log(`
				const s = new EventSource(url, { ledger });
				s.onmessage = (e) => {
					log.push(e.data);
					if (e.data === "a") { log.push(cut(10)); log.push(cut(10)); } else { reconnected(); s.close(); }
				};
			`))
				require.Equal(t, want, <-result)
				require.Equal(t, fmt.Sprintf("connecting opened event:a cut:%s closed:cut+retry connecting opened event:after 1 closed:client", cutNames[kind]), c.String())
			})
		}
	})
}

// The reconnected stream makes its own second request.
func TestCutStreamWithASecondRequestResumes(t *testing.T) {
	t.Parallel()
	v, c, b := newVU(t), &cutter{}, newPocketBase()
	v.set("ledger", c)
	c.addCut(v, CutFIN)
	v.set("url", b.serve(v))
	require.Equal(t, "true notes notes", v.log(`
		const s = new EventSource(url, { ledger, reconnectDelay: 5, then: { event: "PB_CONNECT", ok: [200, 204], `+subscribe+` } });
		let notes = 0;
		s.addEventListener("notes", () => { if (++notes === 1) log.push(cut(0)); log.push("notes"); if (notes === 2) s.close(); });
	`))
	const attempt = "connecting opened event:{} event:1 "
	require.Equal(t, attempt+"cut:fin closed:cut+retry "+attempt+"closed:client", strings.ReplaceAll(c.String(), "answered:204 ", ""))
}

// unacknowledged returns the number of segments that the peer has not acknowledged.
func unacknowledged(t *testing.T, conn *net.TCPConn) (n uint32) {
	raw, err := conn.SyscallConn()
	require.NoError(t, err)
	assert.NoError(t, raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if assert.NoError(t, err) {
			n = info.Unacked
		}
	}))
	return n
}

// A pause loses no event and does not count as idle time. After the pause, the reader detects an end of the stream.
func TestPausedReaderContinues(t *testing.T) {
	runTransports(t, transports, func(t *testing.T, w transport) {
		isBlocking := w.blocking // w is another variable in the handler
		for _, ends := range []bool{false, true} {
			t.Run(fmt.Sprint("ends ", ends), func(t *testing.T) {
				t.Parallel()
				v, c := w.vu(t), &cutter{}
				v.set("ledger", c)
				c.addCut(v, CutPause)
				requested := make(chan struct{})
				v.set("request", func() { close(requested) })
				v.set("last", map[bool]string{false: "c", true: "d3"}[ends])
				v.set("url", v.serveHTTP(func(w http.ResponseWriter, r *http.Request) {
					if id := r.Header.Get("Last-Event-ID"); id != "" {
						sendEvents(w, "data: d"+id+"\n\n")
						<-r.Context().Done()
						return
					}
					sendEvents(w, "retry: 5\n\nid: 1\ndata: a\n\n")
					<-requested
					paused := func() bool { return strings.Contains(c.String(), "cut:pause") }
					if !isBlocking { // the poller pauses before its next read
						assert.Eventually(t, paused, testTimeout, time.Millisecond)
					}
					sendEvents(w, "id: 2\ndata: b\n\n")
					assert.Eventually(t, paused, testTimeout, time.Millisecond)
					sendEvents(w, "id: 3\ndata: c\n\n")
					if !ends {
						<-r.Context().Done()
					}
				}))
				start := time.Now()
				v.mustRun(`
					const s = new EventSource(url, { ledger, idleTimeout: 500 });
					s.onmessage = (e) => {
						if (e.data === "a") { cut(1000); request(); }
						if (e.data === last) s.close();
					};
				`)
				require.Greater(t, time.Since(start), time.Second)
				want := "connecting opened event:a cut:pause pause-over event:b event:c "
				if ends {
					want += "closed:server+retry connecting opened event:d3 "
				}
				got := c.String()
				if w.blocking { // a blocked read returns one more event before the pause
					got = strings.Replace(got, "event:b cut:pause pause-over", "cut:pause pause-over event:b", 1)
				}
				require.Equal(t, want+"closed:client", got)
			})
		}
	})
}

// A stream that is stopped during its pause ends at once.
func TestPauseEndsWithTheStream(t *testing.T) {
	runTransports(t, transports, func(t *testing.T, w transport) {
		v, c := w.vu(t), &cutter{}
		v.set("ledger", c)
		c.addCut(v, CutPause)
		v.set("url", v.serveHTTP(func(w http.ResponseWriter, r *http.Request) {
			for n := 0; r.Context().Err() == nil; n++ {
				sendEvents(w, fmt.Sprintf("data: %d\n\n", n))
				time.Sleep(5 * time.Millisecond)
			}
		}))
		v.set("paused", func() bool { return strings.Contains(c.String(), "cut:pause") })
		v.mustRun(`
			const s = new EventSource(url, { ledger });
			s.onmessage = () => cut(3600000);
			const poll = setInterval(() => {
				if (paused()) { clearInterval(poll); s.close(); }
			}, 5);
		`)
		want := `cut:pause closed:client$`
		if w.blocking { // the events of the last read may follow the pause
			want = `cut:pause( event:\d+)* closed:client$`
		}
		require.Regexp(t, want, c.String())
		require.False(t, c.cut(CutFIN, 0), "a stopped stream must not be cut")
	})
}

func TestEndedStreamIsNotCut(t *testing.T) {
	runTransports(t, transports, func(t *testing.T, w transport) {
		v, c := w.vu(t), &cutter{}
		v.set("ledger", c)
		c.addCut(v, CutFIN)
		v.set("url", v.serveHTTP(func(w http.ResponseWriter, _ *http.Request) { sendEvents(w, "data: a\n\n") }))
		require.Equal(t, "server false", v.log(`
			const s = new EventSource(url, { ledger, reconnect: false });
			s.onerror = (e) => log.push(e.reason, cut(0));
		`))
	})
}

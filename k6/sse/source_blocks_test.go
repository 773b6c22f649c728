package sse

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// A blockRecorder is a recorder that also records comments and blocks.
type blockRecorder struct{ recorder }

func (r *blockRecorder) Comment(at time.Time, text []byte) { r.note(at, ":%s", text) }

func (r *blockRecorder) Block(at time.Time, b *eventstream.Block) {
	r.note(at, "[%s|%s|%s|%v %v %v %v]", b.ID, b.Name, b.Data, b.HasID, b.HasData, b.HasComment, b.Retry)
}

// serveHTTP is like serve, for a handler of net/http.
func (v *vu) serveHTTP(handler http.HandlerFunc) string {
	v.t.Helper()
	if v.transport.tls {
		return httpServer(v.t, handler, enableTLS).URL
	}
	return httpServer(v.t, handler).URL
}

// Each block is reported once, in order, before its event and before JavaScript runs. sse_event counts only events.
func TestObserverReceivesEveryBlock(t *testing.T) {
	runTransports(t, allTransports, func(t *testing.T, w transport) {
		v, rec := w.vu(t), &blockRecorder{}
		v.set("ledger", rec)
		v.set("calls", rec.String)
		v.set("url", v.serveHTTP(func(w http.ResponseWriter, _ *http.Request) {
			stream(w, ":\n\nretry: 7000\n\n: hello\nid: 1:0\n\nevent: ping\n\nevent: x\ndata: a\n\nid: 2\ndata: b\n\n\n\n: last\n")
		}))
		require.Equal(t, "a 1:0 true b 2 server", v.log(`
			const s = new EventSource(url, { ledger });
			s.addEventListener("x", (e) => log.push(e.data, e.lastEventId, calls().includes("event:a")));
			s.onmessage = (e) => log.push(e.data, e.lastEventId);
			s.onerror = (e) => { log.push(e.reason); s.close(); };
		`))
		require.Equal(t, "connecting opened : [|||false false true 0s] [|||false false false 7s] :hello [1:0|||true false true 0s] "+
			"[1:0|ping||false false false 0s] [1:0|x|a|false true false 0s] event:a [2||b|true true false 0s] event:b :last closed:server+retry",
			rec.String())
		events, _ := v.sum(v.drainSamples(), "sse_event")
		require.Equal(t, 2.0, events)
	})
}

// The server sends each heartbeat only after the client has reported the previous one. A heartbeat of Mercure has no
// blank line.
func TestHeartbeatsAreReportedAtOnce(t *testing.T) {
	kinds := []string{": keep-alive\n\n", "event: ping\n\n", "id: 5\n\n", "retry: 1000\n\n", ":\n"}
	runTransports(t, allTransports, func(t *testing.T, w transport) {
		v, signals := w.vu(t), make(heartbeats, 10)
		v.set("ledger", signals)
		v.set("url", v.serveHTTP(func(w http.ResponseWriter, _ *http.Request) {
			for i := range 2 * len(kinds) {
				stream(w, kinds[i%len(kinds)])
				w.(http.Flusher).Flush()
				select {
				case <-signals:
				case <-time.After(testTimeout):
					return
				}
			}
			_, _ = io.WriteString(w, "data: end\n\n")
		}))
		require.Equal(t, "end server: the server ended the stream", v.readStream("ledger"))
	})
}

// A heartbeats channel receives a signal for each comment line, and for each block with neither data nor a comment.
type heartbeats chan struct{}

func (heartbeats) Event(time.Time, *eventstream.Event) {}
func (b heartbeats) Comment(time.Time, []byte)         { b.signal() }

func (b heartbeats) Block(_ time.Time, block *eventstream.Block) {
	if !block.HasData && !block.HasComment {
		b.signal()
	}
}

func (b heartbeats) signal() {
	select {
	case b <- struct{}{}:
	default:
	}
}

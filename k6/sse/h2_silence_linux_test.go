package sse

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// A busyReader delays the reading of all streams.
type busyReader struct{ recorder }

func (r *busyReader) Event(at time.Time, e *eventstream.Event) {
	r.recorder.Event(at, e)
	if string(e.Data) == "first" {
		time.Sleep(2 * time.Second)
	}
}

// After a delay of the reader longer than idleTimeout, data that has arrived must be read before the timeout is checked.
func TestBusyReaderDoesNotReportSilence(t *testing.T) {
	handle := func(p *framed) {
		ids := []uint32{p.acceptStream(), p.acceptStream(), p.acceptStream()}
		p.data(ids[0], "data: first\n\n")
		for range 60 {
			time.Sleep(50 * time.Millisecond)
			p.data(ids[1], "data: a\n\n")
			p.data(ids[2], "data: a\n\n")
		}
		for _, id := range ids {
			p.finish(id)
		}
		p.readAll()
	}
	runTransports(t, polledTransports, func(t *testing.T, w transport) {
		v := w.vu(t)
		v.set("url", w.url(serveFrames(t, handle)))
		ledgers := observers[busyReader](v)
		v.log(`for (let i = 0; i < 3; i++) new EventSource(url, { http: "2", ledger: ledger(), reconnect: false, idleTimeout: 1000 });`)
		for _, r := range *ledgers {
			if !strings.Contains(r.String(), "first") {
				require.Contains(t, r.String(), "closed:server")
			}
		}
	})
}

// A stallingObserver blocks the reader of all streams at an event with the data "stall".
type stallingObserver struct {
	recorder
	stalled chan struct{}
}

func (o *stallingObserver) Event(at time.Time, e *eventstream.Event) {
	o.recorder.Event(at, e)
	if string(e.Data) == "stall" {
		time.Sleep(2 * time.Second)
		close(o.stalled)
	}
}

// The stall of the reader is longer than idleTimeout.
func TestStalledReaderDoesNotReportSilenceOverH2(t *testing.T) {
	runTransports(t, transports, func(t *testing.T, w transport) {
		v, slow, rec := w.vu(t), &stallingObserver{stalled: make(chan struct{})}, new(recorder)
		v.serveH2(func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", "text/event-stream")
			flush := http.NewResponseController(rw)
			if r.URL.RawQuery == "slow" {
				_, _ = fmt.Fprint(rw, "data: stall\n\n")
				_ = flush.Flush()
				<-slow.stalled
				return
			}
			for {
				_, _ = fmt.Fprint(rw, "data: noop\n\n")
				_ = flush.Flush()
				select {
				case <-slow.stalled:
					return
				case <-r.Context().Done():
					return
				case <-time.After(30 * time.Millisecond):
				}
			}
		})
		v.set("slow", slow)
		v.set("rec", rec)
		v.mustRun(`
			const s = new EventSource(url, { http, streamsPerConnection: 1, ledger: rec, reconnect: false, idleTimeout: 1000 });
			s.onopen = () => new EventSource(url + "?slow", { http, streamsPerConnection: 1, ledger: slow, reconnect: false });
		`)
		require.Contains(t, rec.String(), "closed:server")
	})
}

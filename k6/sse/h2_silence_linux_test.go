package sse

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// After a delay of the reader longer than idleTimeout, data that has arrived must be read before the timeout is
// checked.
func TestBusyReaderDoesNotReportSilence(t *testing.T) {
	handle := func(p *framePeer) {
		ids := []uint32{p.acceptStream(), p.acceptStream(), p.acceptStream()}
		p.data(ids[0], "data: 2s\n\n")
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
		ledgers := observers[sleeper](v)
		v.log(`for (let i = 0; i < 3; i++) new EventSource(url, { http: "2", ledger: ledger(), reconnect: false, idleTimeout: 1000 });`)
		for _, r := range *ledgers {
			if !strings.Contains(r.String(), "2s") {
				require.Contains(t, r.String(), "closed:server")
			}
		}
	})
}

// The stall of the reader is longer than idleTimeout.
func TestStalledReaderDoesNotReportSilenceOverH2(t *testing.T) {
	runTransports(t, transports, func(t *testing.T, w transport) {
		v, stalled := w.vu(t), make(chan struct{})
		v.serveH2(func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.RawQuery == "slow" {
				sendEvents(rw, "data: 2s\n\n")
				time.Sleep(2 * time.Second)
				close(stalled)
				return
			}
			for {
				sendEvents(rw, "data: noop\n\n")
				select {
				case <-stalled:
					return
				case <-r.Context().Done():
					return
				case <-time.After(30 * time.Millisecond):
				}
			}
		})
		v.set("slow", new(sleeper))
		v.mustRun(`
			const s = new EventSource(url, { http, streamsPerConnection: 1, ledger, reconnect: false, idleTimeout: 1000 });
			s.onopen = () => new EventSource(url + "?slow", { http, streamsPerConnection: 1, ledger: slow, reconnect: false });
		`)
		require.Contains(t, v.rec.String(), "closed:server")
	})
}

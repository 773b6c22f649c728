package sse

import (
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
		p.data(ids[0], "data: 600ms\n\n")
		for range 40 {
			time.Sleep(25 * time.Millisecond)
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
		v.log(`for (let i = 0; i < 3; i++) new EventSource(url, { http: "2", ledger: ledger(), reconnect: false, idleTimeout: 300 });`)
		for _, r := range *ledgers {
			if !strings.Contains(r.String(), "600ms") {
				require.Contains(t, r.String(), "closed:server")
			}
		}
	})
}

package sse

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/k6/sse/eventstream"
)

// busyReader reads no further for a moment.
type busyReader struct{ recorder }

func (r *busyReader) Event(at time.Time, e *eventstream.Event) {
	r.recorder.Event(at, e)
	if string(e.Data) == "first" {
		time.Sleep(400 * time.Millisecond)
	}
}

// A reader that was busy for longer than a server may be silent reads what has come before it judges that.
func TestABusyReaderTakesNoStreamForSilent(t *testing.T) {
	handle := func(p *framed) {
		ids := []uint32{p.accepted(), p.accepted(), p.accepted()}
		p.data(ids[0], "data: first\n\n")
		for range 12 {
			time.Sleep(50 * time.Millisecond)
			p.data(ids[1], "data: a\n\n")
			p.data(ids[2], "data: a\n\n")
		}
		for _, id := range ids {
			p.finish(id)
		}
		p.ended()
	}
	over(t, polledWays, func(t *testing.T, w way) {
		v := w.vu(t)
		v.set("url", w.url(serveFrames(t, handle)))
		var ledgers []*busyReader
		v.set("ledger", func() *busyReader {
			ledgers = append(ledgers, new(busyReader))
			return ledgers[len(ledgers)-1]
		})
		v.log(`for (let i = 0; i < 3; i++) new EventSource(url, { http: "2", ledger: ledger(), reconnect: false, idleTimeout: 200 });`)
		for _, r := range ledgers {
			if !strings.Contains(r.String(), "first") {
				require.Contains(t, r.String(), "closed:server")
			}
		}
	})
}

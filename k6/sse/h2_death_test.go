package sse

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// A slowRecorder is slow: a stream that opens is not ready when its connection dies, whose other streams end one by
// one.
type slowRecorder struct{ recorder }

func (w *slowRecorder) Opened(at time.Time) {
	w.recorder.Opened(at)
	time.Sleep(20 * time.Millisecond)
}

func (w *slowRecorder) Event(at time.Time, e *eventstream.Event) {
	w.recorder.Event(at, e)
	if string(e.Data) == "last" {
		time.Sleep(50 * time.Millisecond)
	}
}

func (w *slowRecorder) Closed(at time.Time, c Close) {
	time.Sleep(5 * time.Millisecond)
	w.recorder.Closed(at, c)
}

// A stream that opens just when its connection dies ends once.
func TestStreamOpensOnADyingConnection(t *testing.T) {
	const streams = 10
	over2(t, func(p *framed) {
		for n := range streams {
			id := p.accepted()
			if n == streams-1 {
				p.data(id, "data: last\n\n")
				return // and the connection is closed
			}
			p.data(id, "data: a\n\n")
			time.Sleep(30 * time.Millisecond) // so that this one is open
		}
	}, func(t *testing.T, v *vu) {
		var ledgers []*slowRecorder
		v.set("ledger", func() testObserver {
			ledgers = append(ledgers, new(slowRecorder))
			return testObserver{ledgers[len(ledgers)-1]}
		})
		v.log(`for (let i = 0; i < 10; i++) new EventSource(url, { http: "2", ledger: ledger(), reconnect: false });`)
		for _, r := range ledgers {
			require.Equal(t, 1, strings.Count(r.String(), "closed:truncated"), r.String())
		}
	})
}

// slowReader reads no further for a moment.
type slowReader struct{ recorder }

func (r *slowReader) Event(at time.Time, e *eventstream.Event) {
	r.recorder.Event(at, e)
	if string(e.Data) == "first" {
		time.Sleep(200 * time.Millisecond)
	}
}

// What a server has said before it reset the connection is read, also where a write was the first to find that out.
func TestDataBeforeAFailedWriteIsRead(t *testing.T) {
	over2(t, func(p *framed) {
		first, second := p.accepted(), p.accepted()
		p.data(first, "data: first\n\n")
		time.Sleep(50 * time.Millisecond)
		p.data(second, "data: last\n\n")
		_ = p.tcp.SetLinger(0)
	}, func(t *testing.T, v *vu) {
		var ledgers []*slowReader
		v.set("ledger", func() testObserver {
			ledgers = append(ledgers, new(slowReader))
			return testObserver{ledgers[len(ledgers)-1]}
		})
		v.log(`
			const open = () => new EventSource(url, { http: "2", ledger: ledger(), reconnect: false });
			open();
			open();
			setTimeout(open, 100);
		`)
		all := ""
		for _, r := range ledgers {
			all += r.String() + "\n"
		}
		// truncated: over TLS the server announces the close before the reset
		require.Regexp(t, "connecting opened event:last closed:(reset|truncated)", all)
	})
}

package sse

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/sseclient"
)

// A slowRecorder is a sleeper that also delays Opened and Closed, so a stream may still be opening when its connection
// is lost.
type slowRecorder struct{ sleeper }

func (r *slowRecorder) Opened(started time.Time, response *sseclient.Response) {
	r.recorder.Opened(started, response)
	time.Sleep(20 * time.Millisecond)
}

func (r *slowRecorder) Closed(at time.Time, c Close) {
	time.Sleep(5 * time.Millisecond)
	r.recorder.Closed(at, c)
}

func TestStreamThatOpensDuringTheLossOfItsConnectionEndsOnce(t *testing.T) {
	const streams = 10
	runH2(t, func(p *framePeer) {
		for n := range streams {
			id := p.acceptStream()
			if n == streams-1 {
				p.data(id, "data: 50ms\n\n")
				return // closes the connection
			}
			p.data(id, "data: a\n\n")
			time.Sleep(30 * time.Millisecond) // until this stream is open
		}
	}, func(t *testing.T, v *vu) {
		ledgers := observers[slowRecorder](v)
		v.log(`for (let i = 0; i < 10; i++) new EventSource(url, { http: "2", ledger: ledger(), reconnect: false });`)
		for _, r := range *ledgers {
			require.Equal(t, 1, strings.Count(r.String(), "closed:truncated"), r.String())
		}
	})
}

// Data that arrived before a reset is read, even if a write detects the reset first.
func TestDataBeforeAFailedWriteIsRead(t *testing.T) {
	runH2(t, func(p *framePeer) {
		first, second := p.acceptStream(), p.acceptStream()
		p.data(first, "data: 200ms\n\n")
		time.Sleep(50 * time.Millisecond)
		p.data(second, "data: last\n\n")
		_ = p.tcp.SetLinger(0)
	}, func(t *testing.T, v *vu) {
		ledgers := observers[sleeper](v)
		v.log(`
			const open = () => new EventSource(url, { http: "2", ledger: ledger(), reconnect: false });
			open();
			open();
			setTimeout(open, 100);
		`)
		all := ""
		for _, r := range *ledgers {
			all += r.String() + "\n"
		}
		// Over TLS the server sends close_notify before the reset, so the stream may be truncated.
		require.Regexp(t, "connecting opened event:last closed:(reset|truncated)", all)
	})
}

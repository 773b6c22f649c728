package sse

import (
	"crypto/tls"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

func TestOnlyK6sConnectionsArePolled(t *testing.T) {
	t.Parallel()
	ours, theirs := pair(t)
	require.Nil(t, poll(tls.Client(ours, &tls.Config{}), nil), "TLS that the poller cannot get under")
	require.Nil(t, poll(tls.Client(&underTLS{Conn: theirs}, &tls.Config{}), nil))
	require.Nil(t, poll(theirs, nil), "not k6's: nobody counts its bytes")
	c := poll(ours, nil)
	require.NotNil(t, c)
	_, err := ours.Read(make([]byte, 1))
	require.Error(t, err, "Go's own connection is closed")
	_, err = c.Read(make([]byte, 8))
	require.ErrorIs(t, err, errNotReady)
	_, err = io.WriteString(theirs, "abc")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		c.drained = false
		n, err := c.Read(make([]byte, 8))
		return n == 3 && err == nil
	}, patience, time.Millisecond)
	require.EqualValues(t, 3, *c.received)
	c.hangUp()
	require.NoError(t, c.Close(), "a stop that comes late")
	c.turn(nil)
}

// One stream that never stops sending must not keep another one waiting.
func TestABusyStreamLeavesOthersTheirTurn(t *testing.T) {
	over(t, polledWays, func(t *testing.T, w way) {
		v := w.vu(t)
		busy := v.serve(func(p *peer) {
			p.say(streamHead)
			flood := strings.Repeat("data: 0\n\n", 16<<10)
			for {
				if _, err := io.WriteString(p.Conn, flood); err != nil {
					return
				}
			}
		})
		calm := v.serve(func(p *peer) {
			p.say(streamHead)
			for range 20 {
				p.say("data: 0\n\n")
				time.Sleep(time.Millisecond)
			}
			p.hold()
		})
		var flooded atomic.Int64
		flood := &countingLedger{opened: func() {}, event: func() { flooded.Add(1) }}
		v.set("flood", flood)
		v.mustRun(fmt.Sprintf(`
		const busy = new EventSource(%q, { reconnect: false, ledger: flood });
		const calm = new EventSource(%q, { reconnect: false });
		var seen = 0;
		calm.onmessage = () => { if (++seen === 20) { calm.close(); busy.close(); } };`, busy, calm))
		require.Equal(t, "20", v.str("seen"))
		require.Positive(t, flooded.Load())
	})
}

// sipper reads so much at a time, as often as it may in a turn.
type sipper struct {
	of    *polled
	sip   []byte
	ended chan int // with so many bytes
	seen  int
}

func (s *sipper) turn([]byte, *eventstream.Block) {
	for {
		n, err := s.of.Read(s.sip)
		s.seen += n
		switch {
		case err == errNotReady:
			return
		case err != nil:
			s.of.hangUp()
			s.ended <- s.seen
			return
		}
	}
}

// holdsUp has the poller wait in its turn, until it hangs up.
type holdsUp struct {
	of    *polled
	begun chan bool
	over  chan bool
}

func (h *holdsUp) turn([]byte, *eventstream.Block) {
	h.begun <- true
	<-h.over
	h.of.hangUp()
}

// The poller is told once of what has come: of more than one turn takes, and of an end that came with it.
func TestAllThatHasComeIsRead(t *testing.T) {
	t.Parallel()
	const bytes = 3*readsPerTurn + 1
	for _, sip := range []int{1, 2 * bytes} {
		ours, theirs := pair(t)
		s := &sipper{sip: make([]byte, sip), ended: make(chan int, 1)}
		s.of = poll(ours, s)
		require.NoError(t, s.of.start())
		other, _ := pair(t)
		busy := &holdsUp{begun: make(chan bool), over: make(chan bool)}
		busy.of = poll(other, busy)
		require.NoError(t, busy.of.start())
		<-busy.begun // and the other one has had its first turn
		_, err := theirs.Write(make([]byte, bytes))
		require.NoError(t, err)
		require.NoError(t, theirs.Close())
		close(busy.over)
		select {
		case n := <-s.ended:
			require.Equal(t, bytes, n)
		case <-time.After(patience):
			require.Fail(t, "nobody reads on", "%d of %d bytes", s.seen, bytes)
		}
	}
}

// Thousands of bytes in one read, then a pause inside an event: nothing of it may be lost
// with the buffer that streams share.
func TestStreamsShareABufferWithoutMixing(t *testing.T) {
	over(t, allWays, func(t *testing.T, w way) {
		const streams = 40
		v := w.vu(t)
		url := v.serve(func(p *peer) {
			id := p.req.URL.Query().Get("id")
			p.say(streamHead)
			for i := range 20 {
				whole := fmt.Sprintf("id: %s-%d\ndata: %s\n\n", id, i, strings.Repeat(id, 50))
				p.say(whole[:len(whole)/2])
				time.Sleep(time.Millisecond)
				p.say(whole[len(whole)/2:])
			}
		})
		v.mustRun(fmt.Sprintf(`
		var wrong = [], whole = 0;
		for (let i = 0; i < %d; i++) {
			const id = "s" + i, source = new EventSource(%q + "/?id=" + id, { reconnect: false });
			let n = 0;
			source.onmessage = (e) => {
				if (e.lastEventId !== id + "-" + n || e.data !== id.repeat(50)) wrong.push(e.lastEventId + " " + e.data);
				if (++n === 20) whole++;
			};
		}`, streams, url))
		require.Equal(t, "", v.str(`wrong.join("\n")`))
		require.Equal(t, fmt.Sprint(streams), v.str("whole"))
	})
}

// stoppingLedger stops its VU while the stream is being handed to the poller, and gives the poller time
// for a turn.
type stoppingLedger struct {
	nopObserver
	stop func()
}

func (l *stoppingLedger) Opened(time.Time) {
	l.stop()
	time.Sleep(50 * time.Millisecond)
}

func TestAStreamThatIsStoppedBeforeItsFirstTurnEndsOnce(t *testing.T) {
	over(t, allWays, func(t *testing.T, w way) {
		v := w.vu(t)
		url := v.serve(func(p *peer) { p.say(streamHead); p.hold() })
		v.set("ledger", &stoppingLedger{stop: v.CancelContext})
		v.mustRun(fmt.Sprintf(`
		const open = new EventSource(%q, { reconnect: false }); // keeps the poller running
		open.onopen = () => new EventSource(%q, { reconnect: false, ledger });`, url, url))
		closed, n := v.sum(v.drainSamples(), "sse_connection_closed", "reason", "interrupted", "opened", "true")
		require.Equal(t, 2.0, closed)
		require.Equal(t, 2, n)
	})
}

// A stream that is always full is called by the event and by itself. If each were a turn, both would ask for one more: they would
// grow without end, and all other streams fall late.
func TestAConnectionHasOneTurnInARound(t *testing.T) {
	t.Parallel()
	const wake = -1
	c := &polled{}
	p := &poller{conns: []*polled{c}}
	for range 2 {
		p.nudged = append(p.nudged, c, c)
		require.Equal(t, []*polled{c}, p.gather(nil, []unix.EpollEvent{{Fd: 0}, {Fd: wake}, {Fd: 0}}, wake))
		require.Empty(t, p.nudged)
		c.fd = -1
		c.turn(nil)
		c.fd = 0
	}
}

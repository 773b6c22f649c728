package sseclient

import (
	"crypto/tls"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

func TestOnlyCountedConnectionsArePolled(t *testing.T) {
	t.Parallel()
	ours, theirs := connPair(t)
	require.Nil(t, poll(tls.Client(ours, &tls.Config{}), nil), "TLS that the poller cannot get under")
	require.Nil(t, poll(tls.Client(&tlsSocket{Conn: theirs}, &tls.Config{}), nil))
	require.Nil(t, poll(theirs, nil), "no Conn: its bytes are not counted")
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

// sipper reads so much at a time, as often as it may in a turn.
type sipper struct {
	of    *polled
	sip   []byte
	ended chan int // the number of bytes
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

// A slowReader blocks the poller in its turn until it closes.
type slowReader struct {
	of    *polled
	begun chan bool
	over  chan bool
}

func (h *slowReader) turn([]byte, *eventstream.Block) {
	h.begun <- true
	<-h.over
	h.of.hangUp()
}

// The poller gets one event for more data than one turn reads, and for an end that arrived with them.
func TestAvailableDataIsReadInOneTurn(t *testing.T) {
	t.Parallel()
	const bytes = 3*readsPerTurn + 1
	for _, sip := range []int{1, 2 * bytes} {
		ours, theirs := connPair(t)
		s := &sipper{sip: make([]byte, sip), ended: make(chan int, 1)}
		s.of = poll(ours, s)
		require.NoError(t, s.of.start())
		other, _ := connPair(t)
		busy := &slowReader{begun: make(chan bool), over: make(chan bool)}
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

// A stream that is always full is called by the event and by itself. If each were a turn, both would ask for one
// more: they would grow without end, and all other streams fall late.
func TestConnectionHasOneTurnPerRound(t *testing.T) {
	t.Parallel()
	const wake = -1
	c := &polled{}
	p := &poller{conns: []*polled{c}}
	for range 2 {
		p.nudges = append(p.nudges, c, c)
		require.Equal(t, []*polled{c}, p.gather(nil, []unix.EpollEvent{{Fd: 0}, {Fd: wake}, {Fd: 0}}, wake))
		require.Empty(t, p.nudges)
		c.fd = -1
		c.turn(nil)
		c.fd = 0
	}
}

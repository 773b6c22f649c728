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
	client, server := connPair(t)
	require.Nil(t, poll(tls.Client(client, &tls.Config{}), nil), "TLS without a tlsSocket below it")
	require.Nil(t, poll(tls.Client(&tlsSocket{Conn: server}, &tls.Config{}), nil))
	require.Nil(t, poll(server, nil), "a connection that is not a Conn")
	c := poll(client, nil)
	require.NotNil(t, c)
	_, err := client.Read(make([]byte, 1))
	require.Error(t, err, "Go's own connection must be closed")
	_, err = c.Read(make([]byte, 8))
	require.ErrorIs(t, err, errNotReady)
	_, err = io.WriteString(server, "abc")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		c.drained = false
		n, err := c.Read(make([]byte, 8))
		return n == 3 && err == nil
	}, patience, time.Millisecond)
	require.EqualValues(t, 3, *c.received)
	c.hangUp()
	require.NoError(t, c.Close(), "a close after hangUp must have no effect")
	c.turn(nil)
}

// A countingReader counts the bytes of its connection.
type countingReader struct {
	conn     *polledConn
	buf      []byte
	received int      // the number of bytes so far
	total    chan int // receives the number of bytes at the end
}

func (s *countingReader) turn([]byte, *eventstream.Block) {
	for {
		n, err := s.conn.Read(s.buf)
		s.received += n
		switch {
		case err == errNotReady:
			return
		case err != nil:
			s.conn.hangUp()
			s.total <- s.received
			return
		}
	}
}

// A blockingReader blocks the poller in its turn until release is closed.
type blockingReader struct {
	conn    *polledConn
	started chan bool
	release chan bool
}

func (r *blockingReader) turn([]byte, *eventstream.Block) {
	r.started <- true
	<-r.release
	r.conn.hangUp()
}

// The poller gets a single event for more data than one turn reads, and for the end that arrived with the data.
func TestAvailableDataIsReadAfterOneEvent(t *testing.T) {
	t.Parallel()
	const bytes = 3*readsPerTurn + 1
	for _, size := range []int{1, 2 * bytes} {
		client, server := connPair(t)
		s := &countingReader{buf: make([]byte, size), total: make(chan int, 1)}
		s.conn = poll(client, s)
		require.NoError(t, s.conn.start())
		other, _ := connPair(t)
		busy := &blockingReader{started: make(chan bool), release: make(chan bool)}
		busy.conn = poll(other, busy)
		require.NoError(t, busy.conn.start())
		<-busy.started // after the first turn of the other stream
		_, err := server.Write(make([]byte, bytes))
		require.NoError(t, err)
		require.NoError(t, server.Close())
		close(busy.release)
		select {
		case n := <-s.total:
			require.Equal(t, bytes, n)
		case <-time.After(patience):
			require.Fail(t, "the data is not read", "%d of %d bytes", s.received, bytes)
		}
	}
}

// A stream whose socket is always full gets a turn by its event and by its own request. If these were separate turns, each
// would request another one. The number of turns would grow without limit, and delay all other streams.
func TestConnectionHasOneTurnPerRound(t *testing.T) {
	t.Parallel()
	const wake = -1
	c := &polledConn{}
	p := &poller{conns: []*polledConn{c}}
	for range 2 {
		p.nudges = append(p.nudges, c, c)
		require.Equal(t, []*polledConn{c}, p.gather(nil, []unix.EpollEvent{{Fd: 0}, {Fd: wake}, {Fd: 0}}, wake))
		require.Empty(t, p.nudges)
		c.fd = -1
		c.turn(nil)
		c.fd = 0
	}
}

package sseclient

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
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

// The end of a run may follow a stall of the process. The events that arrived during the stall count.
func TestFinishedStreamReportsArrivedEvents(t *testing.T) {
	t.Parallel()
	for name, streamsPerConnection := range map[string]uint16{"HTTP/1.1": 0, "HTTP/2": 0, "HTTP/2 unshared": 1} {
		var sent sync.WaitGroup
		send := make(chan bool)
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.(http.Flusher).Flush()
			<-send
			for range 3 {
				_, _ = io.WriteString(w, twoEvents)
				w.(http.Flusher).Flush()
			}
			sent.Done()
			<-r.Context().Done()
		}))
		server.Config.Protocols = new(http.Protocols)
		server.Config.Protocols.SetHTTP1(true)
		server.Config.Protocols.SetUnencryptedHTTP2(true)
		server.Start()
		defer server.Close()
		options := &Options{ConnectTimeout: patience}
		if name != "HTTP/1.1" {
			options.Sharing = Sharing{Protocol: HTTP2, StreamsPerConnection: streamsPerConnection}
		}
		g := new(Client).Group(t.Context())
		defer g.Close()
		var events atomic.Int32
		var opened, ended sync.WaitGroup
		callbacks := &Callbacks{
			Request: func(*Stream) Request { return Request{URL: server.URL} },
			Opened:  func(*Stream, time.Time, *Response) { opened.Done() },
			Event:   func(*Stream, time.Time, *eventstream.Event) { events.Add(1) },
			Ended:   func(*Stream) { ended.Done() },
		}
		const count = 3
		streams := make([]*Stream, count)
		opened.Add(count)
		ended.Add(count)
		sent.Add(count)
		for i := range streams {
			streams[i] = g.Add(options, callbacks, nil)
			streams[i].Start()
		}
		opened.Wait()
		other, _ := connPair(t)
		busy := &blockingReader{started: make(chan bool), release: make(chan bool)}
		busy.conn = poll(other, busy)
		require.NoError(t, busy.conn.start())
		<-busy.started // the process no longer reads
		close(send)
		sent.Wait()
		for _, s := range streams {
			s.Finish(ReasonClient)
		}
		close(busy.release)
		ended.Wait()
		require.EqualValues(t, 6*count, events.Load(), name)
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

package sseclient

import (
	"crypto/tls"
	"io"
	"net/http"
	"strings"
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
	require.Nil(t, poll(tls.Client(client, &tls.Config{}), nil), "TLS without a tlsSocket below it must not be polled")
	require.Nil(t, poll(tls.Client(&tlsSocket{Conn: server}, &tls.Config{}), nil))
	require.Nil(t, poll(server, nil), "a connection that is not a Conn must not be polled")
	c := poll(client, nil)
	require.NotNil(t, c)
	_, err := client.Read(make([]byte, 1))
	require.Error(t, err, "Go's own connection must be closed")
	_, err = c.Read(make([]byte, 8))
	require.ErrorIs(t, err, errNotReady)
	_, err = io.WriteString(server, "abc")
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		c.isDrained = false
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
	received int
	total    chan int // gets the number of bytes at the end
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
			require.Fail(t, "not all data was read", "%d of %d bytes", s.received, bytes)
		}
	}
}

// The end of a run may follow a stall of the process. Events that arrive during the stall are reported. This also holds
// if a turn does not read all of them, or if the stream is finished during a turn.
func TestFinishedStreamReportsArrivedEvents(t *testing.T) {
	t.Parallel()
	for name, sharing := range map[string]Sharing{
		"HTTP/1.1": {Protocol: HTTP1}, "HTTP/2": {Protocol: HTTP2}, "HTTP/2 unshared": {Protocol: HTTP2, StreamsPerConnection: 1},
	} {
		events := 180 // per connection: they fit in a receive buffer, but with TLS one turn does not read them all
		if sharing == (Sharing{Protocol: HTTP2}) {
			events /= stalledStreams
		}
		for _, secure := range []bool{false, true} {
			for _, whileReading := range []bool{false, true} {
				require.EqualValues(t, stalledStreams*events, finishAfterStall(t, secure, sharing, events, whileReading),
					"%s, TLS: %t, while reading: %t", name, secure, whileReading)
			}
		}
	}
}

const stalledStreams = 3

// finishAfterStall blocks the poller while the events of several streams arrive. It finishes the streams before the
// poller continues or, if whileReading is set, when they report an event. It returns the number of reported events.
func finishAfterStall(t *testing.T, secure bool, sharing Sharing, count int, whileReading bool) int32 {
	t.Helper()
	var sent, opened, ended sync.WaitGroup
	send := make(chan bool)
	url, arrived := serveStreams(t, secure, func(w http.ResponseWriter) {
		<-send
		for range count {
			_, _ = io.WriteString(w, "data: "+strings.Repeat("x", 200)+"\n\n")
			w.(http.Flusher).Flush()
		}
		sent.Done()
	})
	client := &Client{TLS: func(string) *tls.Config { return &tls.Config{InsecureSkipVerify: true} }}
	g := client.Group(t.Context())
	defer g.Close()
	var events atomic.Int32
	callbacks := &Callbacks{
		Request: func(*Stream) Request { return Request{URL: url} },
		Opened:  func(*Stream, time.Time, *Response) { opened.Done() },
		Event: func(s *Stream, _ time.Time, _ *eventstream.Event) {
			events.Add(1)
			if whileReading {
				s.Finish(ReasonClient)
			}
		},
		Ended: func(*Stream) { ended.Done() },
	}
	streams := make([]*Stream, stalledStreams)
	for _, group := range []*sync.WaitGroup{&sent, &opened, &ended} {
		group.Add(stalledStreams)
	}
	for i := range streams {
		streams[i] = g.Add(&Options{ConnectTimeout: patience, Sharing: sharing}, callbacks, nil)
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
	require.Eventually(t, arrived, patience, time.Millisecond)
	if !whileReading {
		for _, s := range streams {
			s.Finish(ReasonClient)
		}
	}
	close(busy.release)
	ended.Wait()
	return events.Load()
}

// A stream whose socket is always full gets a turn by its event and by its own request. If these were separate turns,
// each would request another one. The number of turns would grow without limit, and delay all other streams.
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

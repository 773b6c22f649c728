package sseclient

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
)

// An endlessStream is a transport whose reads fill the buffer with copies of a text.
type endlessStream struct {
	transport
	text  string
	reads int // number of reads before errNotReady
}

func (s *endlessStream) Read(p []byte) (int, error) {
	if s.reads == 0 {
		return 0, errNotReady
	}
	s.reads--
	n := 0
	for n+len(s.text) <= len(p) {
		n += copy(p[n:], s.text)
	}
	return n, nil
}

// quietStream returns a stream whose callback Event only counts, to measure the cost of reading.
func quietStream(callbacks Callbacks, events *int) *Stream {
	callbacks.Event = func(*Stream, time.Time, *eventstream.Event) { *events++ }
	s := new(Client).Group(context.Background()).Add(new(Options), &callbacks, nil)
	s.parser.Reset(&s.body, eventstream.DefaultLimit)
	return s
}

var blockCallbacks = Callbacks{Block: func(*Stream, time.Time, *eventstream.Block) {}, Comment: func(*Stream, time.Time, []byte) {}}

const noop = ": sent=1763683200123456\nid: 1234\ndata: 0\n\n"

func TestReadingAllocatesNothing(t *testing.T) {
	for name, callbacks := range map[string]Callbacks{"events": {}, "blocks": blockCallbacks} {
		events := 0
		s, buf, block := quietStream(callbacks, &events), make([]byte, 4096), &eventstream.Block{}
		w := &endlessStream{text: noop + ":\n\n" + "event: ping\n\n" + "id: 1\n\n" + "retry: 100\n\n"}
		s.body = body{idleMark: idleMark{transport: w}}
		turn := func() { w.reads = 1; s.turn(buf, block) }
		for range 10 {
			turn()
		}
		require.Zero(t, testing.AllocsPerRun(100, turn), name)
		require.Positive(t, events, name)
	}
}

// Without a poller, a read of the bytes that have arrived would block until the server sends.
func TestFinishedStreamEndsWithoutPoller(t *testing.T) {
	t.Parallel()
	for name, sharing := range map[string]Sharing{
		"HTTP/1.1": {Protocol: HTTP1}, "HTTP/2": {Protocol: HTTP2}, "HTTP/2 unshared": {Protocol: HTTP2, StreamsPerConnection: 1},
	} {
		url, _ := serveStreams(t, false, func(http.ResponseWriter) {})
		client := &Client{Dial: new(net.Dialer).DialContext} // the poller reads only a Conn
		g := client.Group(t.Context())
		opened, ended := make(chan bool, 1), make(chan bool, 1)
		s := g.Add(&Options{ConnectTimeout: patience, Sharing: sharing}, &Callbacks{
			Request: func(*Stream) Request { return Request{URL: url} },
			Opened:  func(*Stream, time.Time, *Response) { opened <- true },
			Ended:   func(*Stream) { ended <- true },
		}, nil)
		s.Start()
		<-opened
		s.Finish(ReasonClient)
		select {
		case <-ended:
		case <-time.After(patience):
			require.Fail(t, "the stream did not end", name)
		}
		g.Close()
	}
}

// A deadlineConn calls unlimited when its deadline is removed, which is the last step before its stream is open.
type deadlineConn struct {
	net.Conn
	unlimited func()
}

func (c deadlineConn) SetDeadline(t time.Time) error {
	if t.IsZero() {
		c.unlimited()
	}
	return c.Conn.SetDeadline(t)
}

func TestStreamIsNotOpenBeforeItIsRead(t *testing.T) {
	t.Parallel()
	url, _ := serveStreams(t, false, func(http.ResponseWriter) {})
	var s *Stream
	results := make(chan error, 1)
	client := &Client{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return deadlineConn{conn, func() {
			_, err := s.Slow(0)
			results <- err
		}}, err
	}}
	g := client.Group(t.Context())
	defer g.Close()
	ended := make(chan bool)
	s = g.Add(&Options{ConnectTimeout: patience}, &Callbacks{
		Request: func(*Stream) Request { return Request{URL: url} },
		Opened:  func(s *Stream, _ time.Time, _ *Response) { s.Stop(ReasonClient) },
		Ended:   func(*Stream) { close(ended) },
	}, nil)
	s.Start()
	require.NoError(t, <-results)
	<-ended
}

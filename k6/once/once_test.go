package once

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.k6.io/k6/v2/lib"
)

// A service that ends the connection in place of every nth answer, and counts what came.
type resetting struct {
	*httptest.Server
	came, ended atomic.Int64
}

func newResetting(t *testing.T, nth int64, secure bool, end func(net.Conn)) *resetting {
	t.Helper()
	s := &resetting{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if s.came.Add(1)%nth != 0 {
			return
		}
		s.ended.Add(1)
		c, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			end(c)
		}
	}))
	if secure {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

func reset(c net.Conn) {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	_ = c.(*net.TCPConn).SetLinger(0)
	_ = c.Close()
}

func hangUp(c net.Conn) { _ = c.Close() }

// user is what k6 has of a virtual user, as far as its requests need it.
func user(secure bool) *lib.State {
	t := &http.Transport{MaxIdleConnsPerHost: 6}
	if secure {
		t.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	}
	return &lib.State{Transport: t}
}

// asked sends n requests, one after the other, and returns the errors.
func asked(t *testing.T, state *lib.State, method, url string, n int) (failed []error) {
	t.Helper()
	client := http.Client{Transport: state.Transport}
	for range n {
		var body io.Reader
		if method == http.MethodPost {
			body = strings.NewReader("body")
		}
		req, err := http.NewRequestWithContext(t.Context(), method, url, body)
		require.NoError(t, err)
		resp, err := client.Do(req)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		_, err = io.Copy(io.Discard, resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
	}
	return failed
}

func TestEachResetIsAFailedRequest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		secure bool
		end    func(net.Conn)
		is     error
	}{
		{"reset", false, reset, syscall.ECONNRESET}, {"reset over TLS", true, reset, syscall.ECONNRESET},
		{"closed", false, hangUp, io.EOF}, {"closed over TLS", true, hangUp, io.EOF},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newResetting(t, 20, c.secure, c.end)
			defer s.Close()
			state := user(c.secure)
			Install(state, nil)
			Install(state, nil)
			failed := asked(t, state, http.MethodGet, s.URL, 200)
			require.Len(t, failed, 10)
			for _, err := range failed {
				require.ErrorIs(t, err, c.is)
			}
			require.EqualValues(t, 200, s.came.Load(), "nothing is sent twice")
		})
	}
}

// Why it is needed: net/http sends a GET again, and nobody is told. Other methods it sends once.
func TestGoSendsAGetAgain(t *testing.T) {
	t.Parallel()
	for method, want := range map[string]int{http.MethodGet: 0, http.MethodDelete: 10, http.MethodPost: 10} {
		s := newResetting(t, 20, false, reset)
		require.Len(t, asked(t, user(false), method, s.URL, 200), want, method)
	}
}

// With idle connections beside the one that is lost net/http has another one at hand at once.
func TestAnIdleConnectionTakesNothingOver(t *testing.T) {
	t.Parallel()
	var together atomic.Int64
	var came, resets atomic.Int64
	all := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if together.Add(1) <= 4 { // so many connections are opened
			if together.Load() == 4 {
				close(all)
			}
			<-all
			return
		}
		if came.Add(1)%2 == 0 {
			resets.Add(1)
			c, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				reset(c)
			}
		}
	}))
	defer s.Close()
	state := user(false)
	Install(state, nil)
	done := make(chan struct{})
	for range 4 {
		go func() { asked(t, state, http.MethodGet, s.URL, 1); done <- struct{}{} }()
	}
	for range 4 {
		<-done
	}
	failed := asked(t, state, http.MethodGet, s.URL, 100)
	require.Len(t, failed, 50)
	require.EqualValues(t, 100, came.Load())
}

// A mute takes nothing any more, once it is told so.
type mute struct {
	net.Conn
	now *atomic.Bool
}

func (m mute) Write(b []byte) (int, error) {
	if m.now.Swap(false) {
		return 0, syscall.EPIPE
	}
	return m.Conn.Write(b)
}

// A reused connection that had already ended carried nothing of the request, so it is safe to send it again.
func TestAnUnsentRequestGoesByAnotherConnection(t *testing.T) {
	t.Parallel()
	s := newResetting(t, 1<<40, false, hangUp)
	state := user(false)
	var broken atomic.Bool
	state.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		return mute{c, &broken}, err
	}
	Install(state, nil)
	for range 50 {
		require.Empty(t, asked(t, state, http.MethodGet, s.URL, 1))
		broken.Store(true)
	}
	require.EqualValues(t, 50, s.came.Load())
}

// Over HTTP/2 the server can say that it has not looked at a request: that one goes again, and is told.
func TestHTTP2TellsWhatWasSentAgain(t *testing.T) {
	t.Parallel()
	l := httptest.NewUnstartedServer(nil)
	l.EnableHTTP2 = true
	l.StartTLS()
	defer l.Close()
	conf := l.TLS.Clone()
	conf.NextProtos = []string{"h2"}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", conf)
	require.NoError(t, err)
	defer listener.Close()
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go refuseEverySecond(c)
		}
	}()
	state := user(true)
	state.Transport.(*http.Transport).ForceAttemptHTTP2 = true
	var again atomic.Int64
	Install(state, func(context.Context) { again.Add(1) })
	require.Empty(t, asked(t, state, http.MethodGet, "https://"+listener.Addr().String(), 6))
	require.EqualValues(t, 5, again.Load(), "all but the first were refused first")
}

// refuseEverySecond speaks as much HTTP/2 as it takes: the answer to the streams 1, 5, 9 … is 200, and
// the others are refused (RFC 9113, 7: REFUSED_STREAM).
func refuseEverySecond(c net.Conn) {
	defer c.Close()
	const headers, rst, settings, refused = 1, 3, 4, 7
	frame := func(kind, flags byte, stream uint32, payload ...byte) {
		head := []byte{0, 0, byte(len(payload)), kind, flags}
		_, _ = c.Write(append(binary.BigEndian.AppendUint32(head, stream), payload...))
	}
	if _, err := io.ReadFull(c, make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))); err != nil {
		return
	}
	frame(settings, 0, 0)
	for head := make([]byte, 9); ; {
		if _, err := io.ReadFull(c, head); err != nil {
			return
		}
		length, stream := int64(head[0])<<16|int64(head[1])<<8|int64(head[2]), binary.BigEndian.Uint32(head[5:])
		if _, err := io.CopyN(io.Discard, c, length); err != nil {
			return
		}
		switch {
		case head[3] == settings && head[4] == 0:
			frame(settings, 1, 0) // ACK
		case head[3] == headers && stream%4 == 1:
			frame(headers, 0x5, stream, 0x88) // END_STREAM and END_HEADERS; ":status: 200"
		case head[3] == headers:
			frame(rst, 0, stream, 0, 0, 0, refused)
		}
	}
}

func TestATransportThatIsNotGosStaysAsItIs(t *testing.T) {
	t.Parallel()
	own := http.NewFileTransport(http.Dir(t.TempDir()))
	state := &lib.State{Transport: own}
	Install(state, nil)
	require.Equal(t, own, state.Transport)
}

func TestAConnectThatFailsStaysAsItIs(t *testing.T) {
	t.Parallel()
	state := user(false)
	Install(state, nil)
	failed := asked(t, state, http.MethodGet, "http://127.0.0.1:1", 1)
	require.Len(t, failed, 1)
	var op *net.OpError
	require.True(t, errors.As(failed[0], &op))
	require.Equal(t, "dial", op.Op)
}

func BenchmarkRoundTrip(b *testing.B) {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	for name, install := range map[string]bool{"plain": false, "once": true} {
		b.Run(name, func(b *testing.B) {
			state := user(false)
			if install {
				Install(state, nil)
			}
			client := http.Client{Transport: state.Transport}
			b.ReportAllocs()
			for b.Loop() {
				resp, err := client.Get(s.URL)
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	}
}

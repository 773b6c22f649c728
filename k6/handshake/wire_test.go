package handshake

import (
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/certificate"
)

// The server counts the same bytes on its end of the connection.
func TestMetricsCountBytesOnTheWire(t *testing.T) {
	t.Parallel()
	ca := certificate.NewAuthority(t)
	s := newServer(ca, respondOK)
	listener := &countingListener{Listener: s.Listener, conns: make(chan *wire, 10)}
	s.Listener = listener
	s.StartTLS()
	t.Cleanup(s.Close)
	v := newVU(t, ca, ca.Client())

	require.Equal(t, true, v.js(fmt.Sprintf(`connect(%q).ok`, s.URL)))
	peer, sums := <-listener.conns, v.sums()
	const closeNotify = 24 // size in bytes of the record that ends TLS; the other side may have closed the connection before it arrives
	require.InDelta(t, float64(peer.received.Load())+closeNotify/2, sums["handshake_sent"], closeNotify/2)
	requireSent(t, peer, sums["handshake_received"], closeNotify)
	require.Greater(t, sums["handshake_tls_sent"], 500., "the client presents a certificate")
	require.Less(t, sums["handshake_tls_sent"], sums["handshake_sent"])
	require.Less(t, sums["handshake_tls_received"], sums["handshake_received"])

	require.Equal(t, true, v.js(fmt.Sprintf(`var c = connect(%q, {hold: true}); c.ask() && c.ask()`, s.URL)))
	peer, sums = <-listener.conns, v.sums()
	require.InDelta(t, peer.received.Load(), sums["handshake_sent"], 0, "requests on an open connection are counted once")
	requireSent(t, peer, sums["handshake_received"], 0)
}

// requireSent waits until the server has counted the bytes that the client received, because the server counts bytes
// after it sends them. The client may have received up to tolerance bytes fewer.
func requireSent(t *testing.T, peer *wire, received float64, tolerance int64) {
	t.Helper()
	require.Eventually(t, func() bool {
		missing := peer.sent.Load() - int64(received)
		return missing >= 0 && missing <= tolerance
	}, time.Minute, time.Millisecond, "the client received %v bytes, the server sent %d", received, peer.sent.Load())
}

// A countingListener counts the bytes of each connection that it accepts.
type countingListener struct {
	net.Listener
	conns chan *wire
}

func (l *countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err //nolint:wrapcheck // a net.Listener
	}
	w := &wire{Conn: conn}
	l.conns <- w
	return w, nil
}

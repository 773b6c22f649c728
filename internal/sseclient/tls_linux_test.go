package sseclient

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/sockets"
)

// A socket stands in for a polled connection. It returns the bytes that have arrived, and then errNotReady.
type socket struct {
	net.Conn
	arrived []byte
}

func (s *socket) Read(p []byte) (int, error) {
	if len(s.arrived) == 0 {
		return 0, errNotReady
	}
	n := copy(p, s.arrived)
	s.arrived = s.arrived[n:]
	return n, nil
}

// connectTLS returns a client after the handshake, the socket from which it reads, and the encrypted twoEvents.
func connectTLS(t *testing.T, version uint16) (client *tls.Conn, source *socket, output []byte) {
	t.Helper()
	clientConn, serverConn := net.Pipe()
	t.Cleanup(func() { _, _ = clientConn.Close(), serverConn.Close() })
	config := sockets.ServerTLS().Clone()
	config.MinVersion, config.MaxVersion = version, version
	l := sockets.NewBufferedConn(serverConn)
	server := tls.Server(l, config)
	done := make(chan error, 1)
	go func() { done <- server.Handshake() }()
	raw := &tlsSocket{Conn: clientConn}
	client = tls.Client(raw, &tls.Config{InsecureSkipVerify: true})
	require.NoError(t, client.Handshake())
	require.NoError(t, <-done)
	l.Pending = new(bytes.Buffer)
	_, err := io.WriteString(server, twoEvents)
	require.NoError(t, err)
	source = new(socket)
	raw.Conn = source
	return client, source, l.Pending.Bytes()
}

// releaseHandshake depends on unexported fields of tls.Conn. If a version of Go renames them, a stream uses 4 KB more.
func TestTLSReleasesHandshake(t *testing.T) {
	t.Parallel()
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		client, source, output := connectTLS(t, version)
		releaseHandshake(client)
		for _, name := range []string{"rawInput", "hand"} {
			buffer, ok := bufferOf(client, name)
			require.True(t, ok, name)
			require.LessOrEqual(t, buffer.Cap(), 1024, name)
		}
		source.arrived = output
		got := make([]byte, len(twoEvents))
		_, err := io.ReadFull(client, got)
		require.NoError(t, err)
		require.Equal(t, twoEvents, string(got))
	}
}

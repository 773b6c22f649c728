package sse

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A version of Go whose tls.Conn has other fields would cost each stream 4 KB and more, and nobody would notice.
func TestTLSConnIsSlimmed(t *testing.T) {
	t.Parallel()
	require.True(t, rawInput.found)
	require.True(t, input.found)
	require.True(t, hand.found)
	for _, name := range afterwards {
		_, ok := reflect.TypeFor[tls.Conn]().FieldByName(name)
		require.True(t, ok, name)
	}
}

// socket is a connection as TLS sees that of the poller: bytes that have come, and then errNotReady.
type socket struct {
	net.Conn
	come []byte
}

func (s *socket) Read(p []byte) (int, error) {
	if len(s.come) == 0 {
		return 0, errNotReady
	}
	n := copy(p, s.come)
	s.come = s.come[n:]
	return n, nil
}

// spoken is a client behind its handshake, and what the server says then, encrypted.
func spoken(t testing.TB, version uint16, say func(w io.Writer)) (client *tls.Conn, from *socket, said []byte) {
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	config := serverTLS().Clone()
	config.MinVersion, config.MaxVersion = version, version
	l := &line{Conn: theirs, r: bufio.NewReader(theirs)}
	server := tls.Server(l, config)
	done := make(chan error, 1)
	go func() { done <- server.Handshake() }()
	under := &underTLS{Conn: ours}
	client = tls.Client(under, &tls.Config{InsecureSkipVerify: true})
	require.NoError(t, client.Handshake())
	require.NoError(t, <-done)
	l.held = new(bytes.Buffer)
	say(server)
	from = new(socket)
	under.Conn = from
	slim(client)
	return client, from, l.held.Bytes()
}

// FuzzTLSInPieces: however the bytes of records come, the stream reads the same, keeps no more of them than the start of a
// record, and needs nothing of the buffer that it was lent before.
func FuzzTLSInPieces(f *testing.F) {
	for _, pieces := range [][]byte{{1}, {5}, {255, 255}, {0}, {6, 0, 1, 255}} {
		f.Add(pieces, true)
		f.Add(pieces, false)
	}
	text := twoEvents + strings.Repeat("data: "+strings.Repeat("x", 5000)+"\n\n", 40) + twoEvents
	f.Fuzz(func(t *testing.T, pieces []byte, older bool) {
		version := uint16(tls.VersionTLS13)
		if older {
			version = tls.VersionTLS12
		}
		client, from, said := spoken(t, version, func(w io.Writer) {
			for rest := text; rest != ""; {
				n := min(len(rest), 40<<10) // many records
				_, _ = io.WriteString(w, rest[:n])
				rest = rest[n:]
			}
		})
		var got strings.Builder
		shared, p := make([]byte, recordBuffer), make([]byte, 4096)
		for turn := 0; len(said) > 0; turn++ {
			n := 50_000
			if len(pieces) > 0 && turn < 5000 { // or it takes too long
				if b := int(pieces[turn%len(pieces)]); b > 0 {
					n = b * b
				}
			}
			n = min(n, len(said))
			from.come, said = said[:n], said[n:]
			lend(client, shared)
			for {
				n, err := 0, bringRecord(client, from.Read)
				if err == nil {
					n, err = client.Read(p)
				}
				got.Write(p[:n])
				if err != nil {
					require.True(t, errors.Is(err, errNotReady), err)
					break
				}
			}
			require.LessOrEqual(t, rawInput.of(client).Cap(), recordBuffer, "it has not grown")
			takeBack(client)
			for i := range shared {
				shared[i] = 0xff
			}
			require.LessOrEqual(t, rawInput.of(client).Cap(), 20<<10)
			require.Zero(t, hand.of(client).Cap())
		}
		require.Equal(t, text, got.String())
		require.Zero(t, rawInput.of(client).Cap())
	})
}

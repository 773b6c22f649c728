package sseclient

import (
	"errors"
	"net"
)

// A tlsSocket is the connection below TLS. When the stream is open, the poller may replace the field Conn.
type tlsSocket struct {
	net.Conn
	open bool // the response header has been read
}

// typeHandshake is the content type of a TLS record with a handshake message (RFC 5246, section 6.2.1). In TLS 1.3 no
// record has this type after the handshake.
const typeHandshake = 22

var errRenegotiation = errors.New("the server requested a TLS renegotiation, which an open stream refuses")

// Write refuses the first message of another handshake on an open stream. The poller cannot wait for a handshake, and
// the result of the first handshake is already reported. Before the response header, the TLS configuration decides,
// because a server may request a certificate only for some paths.
func (s *tlsSocket) Write(p []byte) (int, error) {
	if s.open && len(p) > 0 && p[0] == typeHandshake {
		return 0, errRenegotiation
	}
	return s.Conn.Write(p)
}

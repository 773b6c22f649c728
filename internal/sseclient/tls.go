package sseclient

import (
	"errors"
	"net"
)

// underTLS is the connection that TLS is spoken on. Once the stream is open the poller may put itself in its place.
type underTLS struct {
	net.Conn
	open bool // the response head has been read
}

var _ net.Conn = (*underTLS)(nil)

// typeHandshake is the content type of a TLS record (RFC 5246, section 6.2.1). In TLS 1.3 no record has it once the
// handshake is over: they are all of one type then.
const typeHandshake = 22

var errRenegotiation = errors.New("the server asked for another TLS handshake (renegotiation), which an open stream refuses")

// Write refuses the first message of another handshake: the poller cannot wait for its answer, and the result of the
// one before is already reported. Before the head k6's own setting decides: a server may ask for a certificate when
// it knows the path.
func (u *underTLS) Write(p []byte) (int, error) {
	if u.open && len(p) > 0 && p[0] == typeHandshake {
		return 0, errRenegotiation
	}
	return u.Conn.Write(p) //nolint:wrapcheck // TLS looks at the error itself
}

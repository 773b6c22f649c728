package handshake

import (
	"net"
	"sync/atomic"
)

// A wire is a connection below TLS that counts the bytes of TLS records, without the headers of TCP and IP.
type wire struct {
	net.Conn
	sent, received atomic.Int64
}

// A traffic value is the number of bytes in each direction.
type traffic struct{ sent, received int64 }

// bytes returns the traffic so far; zero if w is nil.
func (w *wire) bytes() traffic {
	if w == nil {
		return traffic{}
	}
	return traffic{w.sent.Load(), w.received.Load()}
}

func (t traffic) since(earlier traffic) traffic {
	return traffic{t.sent - earlier.sent, t.received - earlier.received}
}

func (w *wire) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	w.received.Add(int64(n))
	return n, err //nolint:wrapcheck // a net.Conn
}

func (w *wire) Write(b []byte) (int, error) {
	n, err := w.Conn.Write(b)
	w.sent.Add(int64(n))
	return n, err //nolint:wrapcheck // a net.Conn
}

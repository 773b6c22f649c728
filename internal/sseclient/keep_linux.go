package sseclient

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// keep takes the connection back from the poller, unless bytes have arrived or the server has ended the connection.
func (c *polled) keep() bool {
	if c.idle == nil {
		return false
	}
	var one [1]byte
	if n, err := c.Read(one[:]); n > 0 || err != errNotReady {
		return false
	}
	_ = c.deaf() // the duplicate below would keep its events
	processPoller.mu.Lock()
	processPoller.forget(c)
	processPoller.mu.Unlock()
	file := os.NewFile(uintptr(c.fd), "idle") // #nosec G115 -- a descriptor
	c.fd = -1
	defer file.Close()
	tcp, err := net.FileConn(file)
	if err != nil {
		return true // no free descriptor: it is closed
	}
	conn := net.Conn(&Conn{Conn: tcp, Received: c.received, Sent: c.sent})
	if c.tls != nil {
		under := below(c.tls)
		under.Conn, under.open = conn, false
		conn = c.tls
	}
	c.idle.Put(idleConn{conn})
	return true
}

// unacknowledged returns the number of bytes that were sent on a connection and not acknowledged by the peer.
func unacknowledged(tcp *net.TCPConn) (n int) {
	raw, err := tcp.SyscallConn()
	if err == nil {
		_ = raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) }) // 0 proves nothing
	}
	return n
}

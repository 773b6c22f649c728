package sseclient

import (
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// keep makes the connection idle, unless bytes have arrived or the server has ended the connection.
func (c *polledConn) keep() bool {
	if c.idle == nil {
		return false
	}
	var buf [1]byte
	switch n, err := c.Read(buf[:]); {
	case n > 0:
		return false
	case err != errNotReady:
		c.idle.NoteEnd()
		return false
	}
	counted, err := c.unpoll()
	if err != nil {
		return false
	}
	conn := net.Conn(counted)
	if c.tls != nil {
		socket := tlsSocketOf(c.tls)
		socket.Conn, socket.open = counted, false
		conn = c.tls
	}
	c.idle.Put(idleConn{conn})
	return true
}

// unpoll moves the connection from our poller to Go's network poller. After an error the connection is closed.
func (c *polledConn) unpoll() (*Conn, error) {
	p := &processPoller
	p.mu.Lock()
	p.forget(c)
	err := c.control(unix.EPOLL_CTL_DEL, 0) // otherwise the descriptor of net.FileConn would keep the registration
	p.mu.Unlock()
	file := os.NewFile(uintptr(c.fd), "") // #nosec G115 -- a descriptor
	defer func() { _ = file.Close() }()
	c.fd = -1
	if err != nil {
		return nil, err
	}
	tcp, err := net.FileConn(file)
	return &Conn{Conn: tcp, Received: c.received, Sent: c.sent}, err
}

// unacknowledgedBytes returns the number of bytes that were sent on a connection and that the peer has not
// acknowledged.
func unacknowledgedBytes(conn net.Conn) (n int) {
	raw, err := conn.(syscall.Conn).SyscallConn() // each reused connection implements it
	if err == nil {
		_ = raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) }) // after an error n is 0
	}
	return n
}

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
)

// listen listens on HOST:PORT or unix:/path. It replaces a socket file on which no process listens.
func listen(address string, mode os.FileMode) (net.Listener, error) {
	path, isUnix := strings.CutPrefix(address, "unix:")
	if !isUnix {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return nil, fmt.Errorf("%w; choose another address", err)
		}
		return l, nil
	}
	if err := removeStaleSocket(path); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, mode); err != nil { // #nosec G703 -- LISTEN names the socket
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

func removeStaleSocket(path string) error {
	info, err := os.Lstat(path) // #nosec G703 -- LISTEN names the socket
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSocket == 0 {
		return fmt.Errorf("%s exists and is not a socket; choose another path or remove it", path)
	}
	if conn, err := net.Dial("unix", path); err == nil { // #nosec G704 -- LISTEN names the socket
		_ = conn.Close()
		return fmt.Errorf("another process is listening on %s; stop it or choose another path", path)
	}
	return os.Remove(path) // #nosec G703 -- LISTEN names the socket
}

// A gate limits the connections of net/http. Further connections wait in the accept queue of the kernel and use no
// descriptor. A connection leaves the gate when it closes or becomes a stream.
type gate struct {
	net.Listener
	slots  chan struct{}
	closed chan struct{}
	once   sync.Once
	isFull atomic.Bool
	// onFull is called with true when the gate is full, and with false when more than half of the slots are free again.
	onFull func(bool)
}

// newGate returns a gate for n connections of a listener.
func newGate(l net.Listener, n int, onFull func(bool)) *gate {
	return &gate{Listener: l, slots: make(chan struct{}, n), closed: make(chan struct{}), onFull: onFull}
}

// Accept waits for a slot, then for a connection.
func (g *gate) Accept() (net.Conn, error) {
	select {
	case g.slots <- struct{}{}:
	default:
		if g.isFull.CompareAndSwap(false, true) {
			g.onFull(true)
		}
		select {
		case g.slots <- struct{}{}:
		case <-g.closed:
			return nil, net.ErrClosed
		}
	}
	conn, err := g.Listener.Accept()
	if err != nil {
		<-g.slots
		return nil, err
	}
	return &gatedConn{Conn: conn, gate: g}, nil
}

// Close closes the listener and ends a waiting Accept.
func (g *gate) Close() error {
	g.once.Do(func() { close(g.closed) })
	return g.Listener.Close()
}

func (g *gate) release() {
	<-g.slots
	connections := len(g.slots) - 1 // a waiting Accept has a slot, too
	if 2*connections < cap(g.slots) && g.isFull.CompareAndSwap(true, false) {
		g.onFull(false)
	}
}

// A gatedConn is a connection with a slot in the gate.
type gatedConn struct {
	net.Conn
	gate *gate
	once sync.Once
}

// release releases the slot; the connection stays open.
func (c *gatedConn) release() { c.once.Do(c.gate.release) }

// Close closes the connection and releases the slot.
func (c *gatedConn) Close() error {
	err := c.Conn.Close()
	c.release()
	return err
}

// unwrap returns the connection inside a gatedConn, or conn itself if it is of a different type.
func unwrap(conn net.Conn) net.Conn {
	if c, ok := conn.(*gatedConn); ok {
		return c.Conn
	}
	return conn
}

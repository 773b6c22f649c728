package faulty

import (
	"context"
	"net"
	"time"
)

// A slowListener accepts connections that send each byte separately.
type slowListener struct{ net.Listener }

func (l slowListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return slowConn{c}, nil
}

type slowConn struct{ net.Conn }

func (c slowConn) Write(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		if _, err = c.Conn.Write(p[n : n+1]); err == nil {
			n++
		}
	}
	return n, err
}

// A mergedConn returns the bytes that arrive within 30 ms in a single Read.
type mergedConn struct{ net.Conn }

func dialMerged(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return mergedConn{c}, nil
}

func (c mergedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil || n == len(p) {
		return n, err
	}
	time.Sleep(30 * time.Millisecond)
	_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
	extra, _ := c.Conn.Read(p[n:])
	_ = c.SetReadDeadline(time.Time{})
	return n + extra, nil
}

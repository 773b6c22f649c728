//go:build !linux

package main

import (
	"errors"
	"net"
)

// A stampedReader needs Linux, as /proc does.
type stampedReader struct{ last arrival }

func newStampedReader(net.Conn) (*stampedReader, error) {
	return nil, errors.New("time stamps of arrival need Linux")
}

func (*stampedReader) Read([]byte) (int, error) { return 0, errors.ErrUnsupported }

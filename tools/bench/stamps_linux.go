package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A stampedReader reads a TCP connection together with the kernel's time of arrival.
type stampedReader struct {
	raw  syscall.RawConn
	oob  []byte
	last arrival // of the bytes read last
}

func newStampedReader(conn net.Conn) (*stampedReader, error) {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return nil, fmt.Errorf("no time stamps on %T", conn)
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	})
	if err = errors.Join(err, failed); err != nil {
		return nil, fmt.Errorf("ask for time stamps: %w", err)
	}
	return &stampedReader{raw: raw, oob: make([]byte, 64)}, nil
}

// Read implements io.Reader.
func (r *stampedReader) Read(p []byte) (n int, err error) {
	var oobn int
	waitErr := r.raw.Read(func(fd uintptr) bool {
		n, oobn, _, _, err = unix.Recvmsg(int(fd), p, r.oob, 0)
		return !errors.Is(err, unix.EAGAIN)
	})
	switch {
	case waitErr != nil:
		return 0, waitErr
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	now := time.Now().UnixNano()
	r.last = arrival{kernel: now, reader: now}
	if stamp, ok := stampIn(r.oob[:oobn]); ok {
		r.last.kernel = stamp
	}
	return n, nil
}

// stampIn finds the time stamp among the control messages.
func stampIn(oob []byte) (int64, bool) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return 0, false
	}
	for _, m := range messages {
		if m.Header.Level == unix.SOL_SOCKET && m.Header.Type == unix.SO_TIMESTAMPNS && len(m.Data) >= int(unsafe.Sizeof(unix.Timespec{})) {
			ts := (*unix.Timespec)(unsafe.Pointer(&m.Data[0])) // what the kernel put there
			return ts.Nano(), ts.Sec > 0
		}
	}
	return 0, false
}

package main

import (
	"errors"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// errBufferFull reports that the socket buffer of the kernel, or the queue of a TLS writer, is full.
var errBufferFull = errors.New("the buffer of the stream is full")

func raiseFileLimit() {
	var lim unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &lim) == nil && lim.Cur < lim.Max {
		lim.Cur = lim.Max
		_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &lim)
	}
}

func fileLimit() uint64 {
	var lim unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &lim); err != nil {
		return 1024
	}
	return lim.Cur
}

// descriptorOf returns the descriptor of conn. conn still owns the descriptor.
func descriptorOf(conn syscall.Conn) (fd int, err error) {
	raw, err := conn.SyscallConn()
	if err == nil {
		err = raw.Control(func(p uintptr) { fd = int(p) })
	}
	return fd, err
}

// takeDescriptor duplicates the descriptor of a connection. The duplicate is not in Go's poller, and stays open when
// conn is closed. No other goroutine may close conn during the call.
func takeDescriptor(conn syscall.Conn) (int, error) {
	fd, err := descriptorOf(conn)
	if err != nil {
		return 0, err
	}
	fd, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	return fd, os.NewSyscallError("fcntl F_DUPFD_CLOEXEC", err)
}

// setUserTimeout limits the time until the peer acknowledges data. 0 keeps the limit of the kernel. Unix sockets have
// no such limit.
func setUserTimeout(fd int, d time.Duration) {
	if d > 0 {
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d/time.Millisecond))
	}
}

// sendNow passes bytes (at least one) to the kernel and never waits. It returns the number of accepted bytes, and
// errBufferFull if the socket buffer has no room for all of them. It uses a raw system call, because a call that cannot
// block need not be registered with the Go scheduler.
func sendNow(fd int, p []byte) (int, error) {
	for {
		n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), // #nosec G103 -- the kernel does not keep the pointer
			uintptr(len(p)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		switch {
		case errno == unix.EINTR:
		case errno == unix.EAGAIN:
			return 0, errBufferFull
		case errno != 0:
			return 0, errno
		case int(n) < len(p):
			return int(n), errBufferFull
		default:
			return len(p), nil
		}
	}
}

// closeNow closes a descriptor. It first discards up to 16 KiB of unread input, because the kernel sends a reset if
// input is unread. After a reset, the client could lose the last events of the stream.
func closeNow(fd int) {
	var scratch [2048]byte
	for range 8 {
		if n, _, err := unix.Recvfrom(fd, scratch[:], unix.MSG_DONTWAIT); n <= 0 || err != nil {
			break
		}
	}
	_ = unix.Close(fd)
}

func resetNow(fd int) {
	_ = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: 0})
	_ = unix.Close(fd)
}

// socketError clears the pending error of a socket and returns it (nil: none).
func socketError(fd int) error {
	n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && n != 0 {
		return syscall.Errno(n)
	}
	return nil
}

// isDisconnect reports whether the client closed the connection. A normal close leaves no error, so err is nil.
func isDisconnect(err error) bool {
	return err == nil || errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET)
}

func killSelf() {
	_ = unix.Kill(os.Getpid(), unix.SIGKILL)
	select {}
}

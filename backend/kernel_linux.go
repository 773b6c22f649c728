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

// A watcher waits in epoll for peers that close, half-close or fail, and reports them to the scheduler.
type watcher struct {
	epfd int
	wake int // eventfd that ends run
	done chan struct{}
}

// newWatcher returns a watcher. The caller must start run in a goroutine, and end it with stop.
func newWatcher() (*watcher, error) {
	epfd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		_ = unix.Close(epfd)
		return nil, os.NewSyscallError("eventfd", err)
	}
	w := &watcher{epfd: epfd, wake: wake, done: make(chan struct{})}
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(wake)} // #nosec G115 -- a descriptor
	if err := unix.EpollCtl(epfd, unix.EPOLL_CTL_ADD, wake, &event); err != nil {
		_ = unix.Close(epfd)
		_ = unix.Close(wake)
		return nil, os.NewSyscallError("epoll_ctl", err)
	}
	return w, nil
}

// add watches a descriptor. When the peer disconnects, run reports the descriptor and gen. epoll forgets a descriptor
// when it and all its duplicates are closed.
func (w *watcher) add(fd int, gen uint32) error {
	event := unix.EpollEvent{Events: unix.EPOLLRDHUP | unix.EPOLLET, Fd: int32(fd), Pad: int32(gen)} // #nosec G115 -- a descriptor, and bits that are returned unchanged
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(w.epfd, unix.EPOLL_CTL_ADD, fd, &event))
}

// run reports departures in batches until stop is called or epoll fails. report may keep the slice.
func (w *watcher) run(report func([]departure)) {
	defer close(w.done)
	events := make([]unix.EpollEvent, 512)
	for {
		n, err := unix.EpollWait(w.epfd, events, -1)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return
		}
		departures := make([]departure, 0, n)
		for _, e := range events[:n] {
			if int(e.Fd) == w.wake {
				return
			}
			departures = append(departures, departure{fd: e.Fd, gen: uint32(e.Pad)}) // #nosec G115 -- the bits of gen
		}
		report(departures)
	}
}

func (w *watcher) stop() {
	_, _ = unix.Write(w.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	<-w.done
	_ = unix.Close(w.epfd)
	_ = unix.Close(w.wake)
}

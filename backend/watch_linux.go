package main

import (
	"os"

	"golang.org/x/sys/unix"
)

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

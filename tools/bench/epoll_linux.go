package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

const (
	eventsPerWait = 256      // maximum number of events of one epoll_wait
	epollBuffer   = 32 << 10 // size of the read buffer in bytes
)

// holdEpoll reads all streams in one loop over their descriptors. It only counts how often the text of a noop occurs in
// the received bytes. The backend sends each noop with a single write, so no noop is split between two reads.
func holdEpoll(ctx context.Context, o holdOptions) (r holdResult, err error) {
	fds, err := o.connectAll(ctx)
	if err != nil {
		return r, err
	}
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return r, err
	}
	for _, fd := range fds {
		if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
			return r, err
		}
	}
	// As in the goroutine client, half-closed connections end the streams. The end of the last stream ends the loop.
	go func() {
		<-ctx.Done()
		for _, fd := range fds {
			_ = unix.Shutdown(fd, unix.SHUT_WR)
		}
	}()
	r.Received, err = readAll(ctx, epoll, len(fds))
	return r, err
}

// connectAll opens the connections one after the other, which is fast enough on loopback.
func (o holdOptions) connectAll(ctx context.Context) (fds []int, err error) {
	address, err := net.ResolveTCPAddr("tcp4", o.Address)
	if err != nil {
		return nil, err
	}
	target := &unix.SockaddrInet4{Port: address.Port, Addr: [4]byte(address.IP.To4())}
	for i := 0; i < o.Streams && ctx.Err() == nil; i++ {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Connect(fd, target)
		}
		if err == nil {
			_, err = unix.Write(fd, o.request(i))
		}
		if err != nil {
			return nil, fmt.Errorf("connection %d: %w", i, err)
		}
		fds = append(fds, fd)
	}
	return fds, nil
}

// readAll counts noops until all streams have ended. Once ctx has ended, it returns an error if no data arrives for
// closeTimeout.
func readAll(ctx context.Context, epoll, open int) (received uint64, err error) {
	events := make([]unix.EpollEvent, eventsPerWait)
	buf := make([]byte, epollBuffer)
	for open > 0 {
		n, err := unix.EpollWait(epoll, events, int(closeTimeout/time.Millisecond))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return 0, err
		}
		if n == 0 && ctx.Err() != nil {
			return 0, fmt.Errorf("wait for the ends of the streams: %d still open", open)
		}
		for _, e := range events[:max(n, 0)] {
			size, err := unix.Read(int(e.Fd), buf)
			if err != nil || size == 0 {
				open--
				_ = unix.Close(int(e.Fd))
				continue
			}
			received += uint64(bytes.Count(buf[:size], noop))
		}
	}
	return received, nil
}

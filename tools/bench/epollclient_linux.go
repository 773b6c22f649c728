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

// An epollClient is the least that can hold streams: one loop over all descriptors, which knows nothing of a connection
// and counts noops in what it reads.
type epollClient struct {
	epoll    int
	open     int
	received uint64
}

const (
	eventsPerWait = 256
	epollBuffer   = 32 << 10
)

// holdEpoll opens all connections and reads them until ctx ends. Noops are told apart by their bytes alone: the backend
// writes each in one piece, so none is divided between two reads.
func holdEpoll(ctx context.Context, o rawOptions) (rawResult, error) {
	fds, err := o.connectAll(ctx)
	if err != nil {
		return rawResult{}, err
	}
	c := epollClient{open: len(fds)}
	if c.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return rawResult{}, err
	}
	for _, fd := range fds {
		if err := unix.EpollCtl(c.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}); err != nil {
			return rawResult{}, err
		}
	}
	// Half-closed, as by the raw client: then each stream ends, and with the last of them the loop.
	go func() {
		<-ctx.Done()
		for _, fd := range fds {
			_ = unix.Shutdown(fd, unix.SHUT_WR)
		}
	}()
	err = c.read(ctx)
	return rawResult{Received: c.received}, err
}

// connectAll opens the connections one after the other, which on loopback takes a moment.
func (o rawOptions) connectAll(ctx context.Context) (fds []int, err error) {
	address, err := net.ResolveTCPAddr("tcp4", o.Address)
	if err != nil {
		return nil, err
	}
	to := &unix.SockaddrInet4{Port: address.Port, Addr: [4]byte(address.IP.To4())}
	for i := 0; i < o.Connections && ctx.Err() == nil; i++ {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Connect(fd, to)
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

// read reads until all streams have ended.
func (c *epollClient) read(ctx context.Context) error {
	events := make([]unix.EpollEvent, eventsPerWait)
	buf := make([]byte, epollBuffer)
	for c.open > 0 {
		n, err := unix.EpollWait(c.epoll, events, int(goodbye/time.Millisecond))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if n == 0 && ctx.Err() != nil {
			return fmt.Errorf("%d streams did not end", c.open)
		}
		for _, e := range events[:max(n, 0)] {
			got, err := unix.Read(int(e.Fd), buf)
			if err != nil || got == 0 {
				c.open--
				_ = unix.Close(int(e.Fd))
				continue
			}
			c.received += uint64(bytes.Count(buf[:got], noop))
		}
	}
	return nil
}

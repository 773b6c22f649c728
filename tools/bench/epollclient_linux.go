package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sse-soak/sse-soak/internal/ledger"
)

// An epollClient is the least that can hold streams: one loop over all descriptors, which knows nothing of a connection
// and counts noops in what it reads. With ledgers it is the least that can account for each noop as the soak does.
type epollClient struct {
	epoll    int
	open     int
	received uint64
	ledgers  []*ledger.Ledger // by descriptor; empty: it only counts
	begun    time.Time
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
	c := epollClient{open: len(fds), begun: time.Now()}
	if o.Ledgers {
		c.keepLedgers(fds)
	}
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
	return rawResult{Received: c.received, Missed: c.missed()}, err
}

func (c *epollClient) keepLedgers(fds []int) {
	c.ledgers = make([]*ledger.Ledger, slices.Max(fds)+1)
	config := &ledger.Config{Interval: time.Second, Late: time.Second}
	for i, fd := range fds {
		l := ledger.New(strconv.Itoa(i), config)
		l.Connecting(1)
		l.Opened(max(time.Since(c.begun), 1))
		c.ledgers[fd] = l
	}
}

// missed are the noops that the ledgers say were lost.
func (c *epollClient) missed() (n uint64) {
	for _, l := range c.ledgers {
		if l != nil {
			n += l.Sums().Lost
		}
	}
	return n
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
			if c.ledgers == nil {
				c.received += uint64(bytes.Count(buf[:got], noop))
			} else {
				c.account(c.ledgers[e.Fd], buf[:got])
			}
		}
	}
	return nil
}

// account tells a ledger of the noops in what was read. Sizes of chunks and headers pass by as lines without meaning.
func (c *epollClient) account(l *ledger.Ledger, read []byte) {
	at := time.Since(c.begun)
	var number uint64
	for line := range bytes.Lines(read) {
		if id, ok := bytes.CutPrefix(line, idField); ok {
			number, _ = strconv.ParseUint(string(bytes.TrimSpace(id)), 10, 64)
		} else if bytes.Equal(line, noop) {
			l.Noop(ledger.Noop{At: at, Number: number, Intact: true})
			c.received++
		}
	}
}

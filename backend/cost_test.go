//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The costs that matter, measured on a backend in a process of its own:
//
//	go test -run '^$' -bench . -benchtime 1x ./backend

// A crowd is a client of many streams with an epoll loop. Its cost is so low that the measurement shows the backend.
type crowd struct {
	fds    []int
	epfd   int
	events atomic.Int64 // events received, by their last bytes
}

// join opens n streams, some at a time.
func join(b *testing.B, addr string, n int) *crowd {
	b.Helper()
	return joinWith(b, addr, n, func(i int) string {
		return fmt.Sprintf("GET /event/connect?id=c-%d HTTP/1.1\r\nHost: x\r\n\r\n", i)
	})
}

// joinWith calls join with a request for each stream.
func joinWith(b *testing.B, addr string, n int, request func(i int) string) *crowd {
	b.Helper()
	epfd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	require.NoError(b, err)
	c := &crowd{epfd: epfd, fds: make([]int, n)}
	var wg sync.WaitGroup
	var next atomic.Int64
	for range 16 {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if c.fds[i], err = openStream(addr, request(i)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	require.False(b, b.Failed())
	for _, fd := range c.fds {
		require.NoError(b, unix.SetNonblock(fd, true))
		require.NoError(b, unix.EpollCtl(epfd, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}))
	}
	go c.read()
	b.Cleanup(func() {
		for _, fd := range c.fds {
			_ = unix.Close(fd)
		}
	})
	return c
}

// openStream opens one stream, reads its headers and keeps the bare descriptor.
func openStream(addr, request string) (int, error) {
	network := "tcp"
	if strings.HasPrefix(addr, "/") {
		network = "unix"
	}
	conn, err := net.Dial(network, addr)
	if err != nil {
		return -1, err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		return -1, err
	}
	head := make([]byte, 0, 512)
	for !bytes.HasSuffix(head, []byte("\r\n\r\n")) && len(head) < cap(head) {
		if _, err := io.ReadFull(conn, head[len(head):len(head)+1]); err != nil {
			return -1, err
		}
		head = head[:len(head)+1]
	}
	if !bytes.HasPrefix(head, []byte("HTTP/1.1 200")) {
		return -1, fmt.Errorf("refused: %.40s", head)
	}
	return takeDescriptor(conn.(syscall.Conn))
}

func (c *crowd) read() {
	ready, buf := make([]unix.EpollEvent, 1024), make([]byte, 64<<10)
	for {
		n, err := unix.EpollWait(c.epfd, ready, -1)
		if err != nil && err != unix.EINTR {
			return
		}
		for _, e := range ready[:max(n, 0)] {
			got, err := unix.Read(int(e.Fd), buf)
			if got <= 0 && err != unix.EAGAIN {
				_ = unix.EpollCtl(c.epfd, unix.EPOLL_CTL_DEL, int(e.Fd), nil)
				continue
			}
			c.events.Add(int64(bytes.Count(buf[:max(got, 0)], []byte("\n\n\r\n"))))
		}
	}
}

// cpuOf returns the CPU time of a process in seconds.
func cpuOf(b *testing.B, pid int) float64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(b, err)
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+2:]))
	user, err := strconv.Atoi(fields[11])
	require.NoError(b, err)
	system, err := strconv.Atoi(fields[12])
	require.NoError(b, err)
	return float64(user+system) / 100
}

// BenchmarkIdleMemory: resident bytes per further idle stream.
func BenchmarkIdleMemory(b *testing.B) {
	const streams = 5000
	for b.Loop() {
		p := startChild(b, "--noop-interval=1h")
		time.Sleep(time.Second)
		before := rssOf(b, p.cmd.Process.Pid)
		join(b, p.addr, streams)
		peak := rssOf(b, p.cmd.Process.Pid)
		time.Sleep(rampQuiet + 2*time.Second) // the memory of the ramp is returned to the system
		after := rssOf(b, p.cmd.Process.Pid)
		b.ReportMetric(float64(after-before)/streams, "B/stream")
		b.ReportMetric(float64(peak-before)/streams, "B/stream-at-peak")
		b.ReportMetric(float64(after)/(1<<20), "MiB-total")
	}
}

// BenchmarkNoops: CPU seconds per million noops, in user and kernel.
func BenchmarkNoops(b *testing.B) {
	const streams, interval, rounds = 15000, time.Second, 15
	for _, kind := range []string{"tcp", "unix"} {
		b.Run(kind, func(b *testing.B) {
			for b.Loop() {
				flags := []string{"--noop-interval=" + interval.String(), "--max-connections=15500"}
				if kind == "unix" {
					flags = append(flags, "--listen=unix:"+b.TempDir()+"/s")
				}
				p := startChild(b, flags...)
				c := join(b, p.addr, streams)
				time.Sleep(rampQuiet + time.Second)
				noops, cpu := c.events.Load(), cpuOf(b, p.cmd.Process.Pid)
				time.Sleep(rounds * interval)
				noops, cpu = c.events.Load()-noops, cpuOf(b, p.cmd.Process.Pid)-cpu
				require.GreaterOrEqual(b, noops, int64(streams*(rounds-1)))
				b.ReportMetric(cpu/float64(noops)*1e6, "CPU-s/Mnoop")
				b.ReportMetric(float64(rssOf(b, p.cmd.Process.Pid))/(1<<20), "MiB-total")
			}
		})
	}
}

// BenchmarkBroadcast: time until a message to 5000 streams is in the kernel,
// and until the last client has it.
func BenchmarkBroadcast(b *testing.B) {
	const streams = 5000
	p := startChild(b, "--noop-interval=1h")
	c := join(b, p.addr, streams)
	time.Sleep(rampQuiet + time.Second)
	var sent, got, worst time.Duration
	const rounds = 20
	for range rounds {
		want := c.events.Load() + streams
		began := time.Now()
		resp, err := http.Post("http://"+p.addr+"/event/broadcast", "text/plain", strings.NewReader("hello"))
		require.NoError(b, err)
		resp.Body.Close()
		single := time.Since(began)
		sent, worst = sent+single, max(worst, single)
		for c.events.Load() < want {
			time.Sleep(100 * time.Microsecond)
		}
		got += time.Since(began)
		time.Sleep(50 * time.Millisecond)
	}
	b.ReportMetric(float64(sent.Microseconds())/rounds/1000, "ms-sent")
	b.ReportMetric(float64(worst.Microseconds())/1000, "ms-sent-worst")
	b.ReportMetric(float64(got.Microseconds())/rounds/1000, "ms-received")
}

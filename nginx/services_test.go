package nginx

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/sse-soak/sse-soak/internal/host/resources"
)

func TestPlainRequestsAreSpreadOverServers(t *testing.T) {
	t.Parallel()
	c := newConfig(t)
	c.addSockets(3)
	for n, socket := range c.Sockets {
		serve(t, "unix", socket, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, n+1) })
	}
	start(t, c)
	got := map[string]int{}
	const requests = 30
	for range requests {
		status, server := request(t, "GET", "http://"+c.Listen+"/default/services/x/echo?text=a", "")
		require.Equal(t, http.StatusOK, status)
		got[server]++
	}
	require.Equal(t, map[string]int{"1": requests / 3, "2": requests / 3, "3": requests / 3}, got)
}

// On two cores a backend whose handlers do not wait has at most two requests in progress. nginx counts the waiting
// requests too.
func TestRequestsInFlightInNginx(t *testing.T) {
	t.Parallel()
	c := newConfig(t)
	const concurrency = 20
	var arrived atomic.Int32
	release := make(chan struct{})
	serve(t, "unix", c.Sockets[0], func(w http.ResponseWriter, _ *http.Request) {
		if arrived.Add(1) == concurrency {
			close(release)
		}
		<-release
		w.Header().Set("X-In-Flight", "1000")
	})
	start(t, c)
	inFlight := make(chan string, concurrency)
	get := func() {
		resp, err := http.Get("http://" + c.Listen + "/default/services/x/status")
		if err != nil {
			inFlight <- err.Error()
			return
		}
		_ = resp.Body.Close()
		inFlight <- strings.Join(resp.Header.Values("X-In-Flight"), ", ")
	}
	for range concurrency {
		go get()
	}
	highest := ""
	for range concurrency {
		if n := <-inFlight; len(n) > len(highest) || len(n) == len(highest) && n > highest {
			highest = n
		}
	}
	require.Equal(t, strconv.Itoa(concurrency), highest)
	require.Eventually(t, func() bool { get(); return <-inFlight == "1" }, time.Minute, time.Millisecond, "completed requests must not be counted")
}

// nginx forwards the body while the client sends it, and writes no file.
func TestUploadIsNotBufferedByNginx(t *testing.T) {
	t.Parallel()
	c := newConfig(t)
	const half = 2 << 20 // more than the default limit of 1 MB
	arrived := make(chan int64)
	serve(t, "unix", c.Sockets[0], func(_ http.ResponseWriter, r *http.Request) {
		for range 2 {
			n, _ := io.CopyN(io.Discard, r.Body, half)
			arrived <- n
		}
	})
	start(t, c)
	body, send := io.Pipe()
	statuses := make(chan int, 1)
	go func() {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+c.Listen+"/default/upload", body)
		req.ContentLength = 2 * half
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			statuses <- 0
			return
		}
		_ = resp.Body.Close()
		statuses <- resp.StatusCode
	}()
	data := strings.Repeat("x", half)
	_, err := io.WriteString(send, data)
	require.NoError(t, err)
	require.EqualValues(t, half, <-arrived, "the first half must arrive before the client sends the second")
	files, err := filepath.Glob(filepath.Join(c.Dir, "body", "*"))
	require.NoError(t, err)
	require.Empty(t, files)
	_, err = io.WriteString(send, data)
	require.NoError(t, err)
	require.EqualValues(t, half, <-arrived)
	require.Equal(t, http.StatusOK, <-statuses)
	log, err := os.ReadFile(c.ErrorLog)
	require.NoError(t, err)
	require.NotContains(t, string(log), "buffered to a temporary file")
}

func TestSilentStreamStaysOpen(t *testing.T) {
	t.Parallel()
	// By default the idle timeout is only slightly longer than the silence. CALIBRATE uses the idle timeout of the stack,
	// one hour, with a silence of 100 s.
	silence, idleTimeout := 2500*time.Millisecond, 4*time.Second
	if os.Getenv("CALIBRATE") != "" {
		silence, idleTimeout = 100*time.Second, time.Hour
	}
	c := newConfig(t)
	c.IdleTimeout = idleTimeout
	serve(t, "unix", c.Sockets[0], func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "data: 0\n")
		_ = http.NewResponseController(w).Flush()
		time.Sleep(silence)
		_, _ = io.WriteString(w, "data: 1\n")
	})
	start(t, c)
	started := time.Now()
	resp, err := http.Get("http://" + c.Listen + "/event/connect?id=a")
	require.NoError(t, err)
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	for _, want := range []string{"data: 0\n", "data: 1\n"} {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, want, line)
		if want == "data: 0\n" {
			require.Less(t, time.Since(started), silence/2)
		}
	}
}

// resources.LogReader recognizes the log lines that nginx writes when its queue to the backend is full, or when it has
// no free connection.
func TestLogNamesTheFullResource(t *testing.T) {
	t.Parallel()
	awaitFull := func(c Config, count func(resources.NginxLog) int) {
		var log resources.LogReader
		client := http.Client{Timeout: time.Second, Transport: &http.Transport{}}
		defer client.CloseIdleConnections()
		require.Eventually(t, func() bool {
			for range 20 {
				go func() {
					if resp, err := client.Get("http://" + c.Listen + "/default/services/calculator/status"); err == nil {
						_ = resp.Body.Close()
					}
				}()
			}
			return count(log.Read(c.ErrorLog)) > 0
		}, time.Minute, 100*time.Millisecond, "the log must name the full resource")
	}
	c := newConfig(t)
	l, err := net.Listen("unix", filepath.Join(c.Dir, "1.sock"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	raw, err := l.(*net.UnixListener).SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) { err = unix.Listen(int(fd), 1) })) // no program accepts
	require.NoError(t, err)
	start(t, c)
	awaitFull(c, func(l resources.NginxLog) int { return l.QueueFull })

	smallConfig := newConfig(t)
	smallConfig.Connections = -250 // 12 connections, both sides together
	start(t, smallConfig)
	silent, err := net.Listen("unix", filepath.Join(smallConfig.Dir, "1.sock"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	awaitFull(smallConfig, func(l resources.NginxLog) int { return l.NoConnections })
}

package nginx

import (
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/sse-soak/sse-soak/internal/host/resources"
)

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

//go:build e2e

package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/address"
	"github.com/sse-soak/sse-soak/test/sockets"
	"github.com/sse-soak/sse-soak/test/untested"
)

// fullFrom returns the load from which a resource was full, as a cell of the report; "–": it was never full.
func fullFrom(v *verdict.Verdict, resource string) string {
	for _, row := range section(v, "Resource usage").Rows {
		if row[0] == resource {
			return row[3]
		}
	}
	return "no such row"
}

// cpuGroup creates a control group with 1 ms of CPU in 50, and returns the file to which processes are added.
func cpuGroup(t *testing.T) string {
	t.Helper()
	folder, limit := "/sys/fs/cgroup/cpu", map[string]string{"cpu.cfs_period_us": "50000", "cpu.cfs_quota_us": "1000"}
	if _, err := os.Stat(folder); err != nil {
		folder, limit = "/sys/fs/cgroup", map[string]string{"cpu.max": "1000 50000"}
	}
	group, err := os.MkdirTemp(folder, "soak-e2e-")
	if err != nil {
		untested.Skip(t, "this user cannot create control groups")
	}
	t.Cleanup(func() { require.NoError(t, os.Remove(group)) })
	for name, text := range limit {
		if err := os.WriteFile(filepath.Join(group, name), []byte(text), 0o600); err != nil {
			untested.Skip(t, "control groups do not limit CPU here: "+err.Error())
		}
	}
	return filepath.Join(group, "cgroup.procs")
}

// A backend with 20 ms of CPU per second cannot serve 1000 requests per second. The test has no lower load, which might
// also fail on a busy machine.
func TestControlGroupLimitBreaksAService(t *testing.T) {
	t.Parallel()
	group, m := cpuGroup(t), mark(t)
	r := begin(t, []string{m}, "rampup", "--profile", "smoke", "--stages", "1000", "--stage-seconds", "4", "--warmup-seconds", "3")
	await(t, "the backend must start", func() bool {
		for _, pid := range processes(m) {
			if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); err == nil && string(name) == "backend\n" {
				return os.WriteFile(group, []byte(fmt.Sprint(pid)), 0o600) == nil
			}
		}
		return false
	})
	v := r.verdict()
	require.Equal(t, "1,000/s", fullFrom(v, "CPU limit of its control group"), r.out.String())
	require.Contains(t, factOf(v, "bottleneck"), "CPU limit of its control group", r.out.String())
}

// relay forwards connections from a listener to an address, and delays the responses.
func relay(t *testing.T, l net.Listener, to string, delay time.Duration) {
	sockets.ServeOn(t, l, func(client net.Conn) {
		server, err := net.Dial("tcp", to)
		if err != nil {
			return
		}
		defer server.Close()
		go func() {
			_, _ = io.Copy(server, client)
			_ = server.(*net.TCPConn).CloseWrite()
		}()
		copyAfter(client, server, delay)
	})
}

// copyAfter copies data, with a delay after each read.
func copyAfter(to, from net.Conn, delay time.Duration) {
	buffer := make([]byte, 16<<10)
	for {
		n, err := from.Read(buffer)
		time.Sleep(delay) // the delay of the network
		if _, writeErr := to.Write(buffer[:n]); err != nil || writeErr != nil {
			return
		}
	}
}

// A response needs 100 ms, so 1500 requests per second need 150 connections. The backend has only 100 descriptors.
func TestDescriptorLimitBreaksTheBackend(t *testing.T) { // not parallel: the sampler needs a core while the service breaks
	listen := address.Reserve(t)
	startBackend(t, nil, "LISTEN="+listen, "BACKEND_TOKEN=secret")
	await(t, "the backend must be ready", func() bool {
		resp, err := http.Get("http://" + listen + "/readyz")
		return err == nil && resp.Body.Close() == nil
	})
	for _, pid := range processes(listen) { // set after the start, because the backend does not start with this limit
		require.NoError(t, unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 100, Max: 100}, nil))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	relay(t, l, listen, 100*time.Millisecond)
	r := begin(t, []string{"BACKEND_TOKEN=secret"}, "rampup", "--profile", "smoke", "--stages", "20,1500", "--stage-seconds", "4", "--warmup-seconds", "0", "--backend-url", "http://"+l.Addr().String())
	v := r.verdict()
	require.Equal(t, "1,500/s", fullFrom(v, "descriptors of the backend"), r.out.String())
	require.Contains(t, factOf(v, "bottleneck"), "descriptors of the backend", r.out.String())
	require.Contains(t, factOf(v, "bottleneck"), " of 100 open", r.out.String())
}

// A delayedListener waits before it accepts a connection.
type delayedListener struct {
	net.Listener
	delay time.Duration
}

func (l delayedListener) Accept() (net.Conn, error) {
	time.Sleep(l.delay) // the fault
	return l.Listener.Accept()
}

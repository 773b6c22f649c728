//go:build e2e

package e2e

import (
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/netns"
)

// The machine of the runners has no port left when the run ends, so the requests that end the streams are not sent. The
// run cannot be judged. No check attributes the failure to the service.
func TestEndWithoutLocalPortsIsInvalid(t *testing.T) {
	t.Parallel()
	name := netns.New(t)
	enter := []string{"ip", "netns", "exec", name}
	text, err := exec.Command("ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv4.ip_local_port_range=40000 40039").CombinedOutput()
	require.NoError(t, err, string(text))
	startBackend(t, enter, "LISTEN=127.0.0.1:8080", "NOOP_INTERVAL=1s")
	await(t, "the backend must be ready", func() bool {
		text, err := exec.Command("ip", "netns", "exec", name, "ss", "-Hltn", "sport", "=", "8080").Output()
		return err == nil && len(text) > 0
	})
	r := beginWith(t, t.TempDir(), enter, nil, "--backend-url", "http://127.0.0.1:8080", "--connections", "30", "--seconds", "12", "--noop-interval", "1")
	r.awaitStreams("30")
	fillPorts(t, name, 8080)
	v := r.verdict()
	require.Equal(t, verdict.Invalid, v.Verdict, r.out.String())
	require.Equal(t, 30, v.Connections.Completed)
	require.Regexp(t, `^\d+ requests to end a stream failed, because the load generator had no local port left`, v.Reasons[0])
	for _, c := range v.Checks {
		require.NotEqual(t, verdict.Broken, c.State(), c.Name)
	}
}

// fillPorts opens connections in a namespace until no local port is left, and again whenever one is free, until the
// test ends.
func fillPorts(t *testing.T, namespace string, port int) {
	t.Helper()
	full, stop, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	var sockets []int
	fill := func() error {
		isFull := false
		for {
			s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			switch err = unix.Connect(s, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); {
			case err == nil:
				sockets = append(sockets, s)
				continue
			case !errors.Is(err, unix.EADDRNOTAVAIL):
				_ = unix.Close(s)
				return err
			}
			_ = unix.Close(s)
			if !isFull {
				isFull = true
				close(full)
			}
			select {
			case <-stop:
				return nil
			case <-time.After(time.Millisecond):
			}
		}
	}
	go func() { done <- netns.Do(namespace, fill) }()
	t.Cleanup(func() {
		close(stop)
		require.NoError(t, <-done)
		for _, s := range sockets {
			_ = unix.Close(s)
		}
	})
	select {
	case <-full:
	case err := <-done:
		require.NoError(t, err)
	}
}

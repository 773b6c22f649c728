package resources

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestListenerOf(t *testing.T) {
	t.Parallel()
	for service, port := range map[string]uint64{
		"http://127.0.0.1:8080": 8080, "http://localhost": 80, "https://[::1]/a": 443, "http://127.3.2.1:9": 9,
		"http://example.com:8080": 0, "http://10.0.0.1:80": 0, "": 0,
	} {
		l := ListenerOf(service)
		require.Equal(t, port != 0, l != nil, service)
		if l != nil {
			require.Equal(t, port, l.port, service)
		}
	}
	require.Empty(t, (*Listener)(nil).PIDs())
}

// TestHelperListener is the program of a process that TestListeningProcessIsFound starts. It listens at TEST_LISTEN and
// prints the address.
func TestHelperListener(t *testing.T) {
	address, set := os.LookupEnv("TEST_LISTEN")
	if !set {
		t.Skip("TestListeningProcessIsFound starts this program")
	}
	l, err := net.Listen("tcp", address)
	require.NoError(t, err)
	child := exec.Command("sleep", "60")
	require.NoError(t, child.Start())
	defer func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	}()
	var used syscall.Rusage
	for used.Utime.Nano() < int64(50*time.Millisecond) { // CPU is counted in ticks of 10 ms
		require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	}
	_, _ = os.Stdout.WriteString(l.Addr().String() + "\n")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
}

// The processes of a service are the processes that listen at its address, and their children.
func TestListeningProcessIsFound(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc")
	}
	for _, address := range []string{"127.0.0.1:0", "127.77.0.1:0", "0.0.0.0:0", ":0"} {
		server := exec.Command(os.Args[0], "-test.run=^TestHelperListener$")
		server.Env = append(os.Environ(), "TEST_LISTEN="+address)
		out, err := server.StdoutPipe()
		require.NoError(t, err)
		end, err := server.StdinPipe()
		require.NoError(t, err)
		require.NoError(t, server.Start())
		line, err := bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err)
		_, port, err := net.SplitHostPort(strings.TrimSpace(line))
		require.NoError(t, err)
		host := "127.0.0.1"
		if address == "127.77.0.1:0" {
			host = "127.77.0.1"
			require.Empty(t, ListenerOf("http://127.0.0.1:"+port).PIDs(), "a listener on another loopback address must not count")
		}
		l := ListenerOf("http://" + net.JoinHostPort(host, port))
		pids := l.PIDs()
		require.Len(t, pids, 2, "the server and its child must be found")
		require.Contains(t, pids, server.Process.Pid, address)
		require.NotContains(t, pids, os.Getpid())
		var s Sample
		s.FromListener(pids)
		require.Positive(t, s.BackendCPU)
		require.NoError(t, end.Close())
		_ = server.Wait()
		l.foundAt = time.Time{}
		require.Empty(t, l.PIDs(), "a process that has ended must not be found")
	}
}

package machine

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/sse-soak/sse-soak/test/untested"
)

const inNamespace = "SOAK_TEST_IN_NAMESPACE"

// In a separate network namespace without other traffic, an accept queue overflows, and dropped connects are
// retransmitted. The record has both, and the time of the overflow.
func TestCountersOfANetworkNamespaceIncrease(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		untested.Skip(t, "network namespaces need root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		untested.SkipMissing(t, "ip is not installed: apt-get install iproute2")
	}
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), inNamespace+"=1")
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	child.Stderr = os.Stderr
	out, err := child.Output()
	if errors.Is(err, syscall.EPERM) {
		untested.Skip(t, "network namespaces cannot be created: "+err.Error())
	}
	require.NoError(t, err)
	var r Record
	require.NoError(t, json.Unmarshal(out, &r))
	self := New(time.Second).Record()
	require.Equal(t, self.Boot, r.Boot, "the machine is the same")
	require.NotEqual(t, self.Namespace, r.Namespace)
	require.False(t, r.Cards, "the namespace has only a loopback")
	overflows := r.Series(Overflows)
	require.NotZero(t, overflows.Increase)
	require.NotEmpty(t, overflows.Stretches)
	require.InDelta(t, time.Now().Unix(), overflows.Stretches[0].To().Unix(), 60)
	require.GreaterOrEqual(t, r.Series(Drops).Increase, overflows.Increase, "drops include overflows")
	require.NotZero(t, r.Series(Retrans).Increase)
	require.Empty(t, r.Series(Retrans).Stretches, "retransmits have no times")
}

// TestMain also runs the child process.
func TestMain(m *testing.M) {
	if os.Getenv(inNamespace) == "" {
		os.Exit(m.Run())
	}
	w := New(time.Second)
	check(exec.Command("ip", "link", "set", "lo", "up").Run())
	w.Sample(time.Now())
	overflow()
	increase := func(name string) float64 { return w.Record().Series(name).Increase }
	for end := time.Now().Add(20 * time.Second); increase(Overflows)*increase(Retrans) == 0 && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		w.Sample(time.Now())
	}
	check(json.NewEncoder(os.Stdout).Encode(w.Record()))
	os.Exit(0)
}

func check(err error) {
	if err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
}

// overflow connects to a listener with a backlog of 1 that never accepts.
func overflow() {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	check(err)
	check(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	check(unix.Listen(fd, 1))
	name, err := unix.Getsockname(fd)
	check(err)
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(name.(*unix.SockaddrInet4).Port))
	for range 6 {
		go func() { _, _ = net.DialTimeout("tcp", address, 10*time.Second) }()
	}
}

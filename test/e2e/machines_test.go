//go:build e2e

package e2e

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/sse-soak/sse-soak/internal/host/machine"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/netns"
	"github.com/sse-soak/sse-soak/test/reverse"
)

// An accept queue overflows on the machine of runners and target. Both runners report it, the verdict counts it once,
// and the run passes with a warning.
func TestAcceptQueueOverflowIsReported(t *testing.T) {
	t.Parallel()
	reverse.Program(t)
	name := netns.New(t)
	r := beginWith(t, t.TempDir(), []string{"ip", "netns", "exec", name}, nil, "--connections", "20", "--seconds", "12", "--noop-interval", "1", "--runners", "2")
	r.awaitStreams("20")
	const connects = 5
	overflow(t, name, connects)
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.Len(t, v.Machines, 1)
	require.Equal(t, []int{1, 2}, v.Machines[0].Runners)
	require.True(t, v.Machines[0].Target)
	overflows := v.Machines[0].Counter(machine.Overflows).Increase
	require.Positive(t, overflows)
	require.LessOrEqual(t, overflows, float64(8*connects), "the counts of the runners must not be added up")
	require.Contains(t, strings.Join(v.Warnings, "\n"), fmt.Sprintf("%.0f connects found an accept queue full on runners 1 and 2", overflows))
	text, err := os.ReadFile(r.dir.Path("report.txt"))
	require.NoError(t, err)
	require.Regexp(t, fmt.Sprintf(`overflows(.*\n)+?.* %.0f `, overflows), string(text))
}

// overflow makes connections to a listener in a namespace. The listener accepts no connection, and its queue holds two.
func overflow(t *testing.T, namespace string, connects int) {
	t.Helper()
	listener := listenIn(t, namespace, 1)
	target := &unix.SockaddrInet4{Port: listener.Addr().(*net.TCPAddr).Port, Addr: [4]byte{127, 0, 0, 1}}
	var sockets []int
	require.NoError(t, netns.Do(namespace, func() error {
		for range connects {
			s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			sockets = append(sockets, s)
			if err := unix.Connect(s, target); err != nil && err != unix.EINPROGRESS {
				return err
			}
		}
		return nil
	}))
	t.Cleanup(func() {
		_ = listener.Close()
		for _, s := range sockets {
			_ = unix.Close(s)
		}
	})
}

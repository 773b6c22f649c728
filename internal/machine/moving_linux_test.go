package machine

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const inNamespace = "SOAK_TEST_IN_NAMESPACE" // what the test does there

// In a network namespace of its own, whose counters nobody else moves, an accept queue overflows and packets are lost:
// the record has both, with their time.
func TestCountersOfANetworkNamespaceMove(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root makes network namespaces")
	}
	for what, moved := range map[string]string{"overflow": Overflows, "loss": Retrans} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			child := exec.Command(os.Args[0], "-test.run=^TestMain$")
			child.Env = append(os.Environ(), inNamespace+"="+what)
			child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
			child.Stderr = os.Stderr
			out, err := child.Output()
			var exit *exec.ExitError
			if errors.As(err, &exit) && exit.ExitCode() == notHere {
				t.Skip("this kernel or machine has no netem")
			}
			require.NoError(t, err)
			var r Record
			require.NoError(t, json.Unmarshal(out, &r))
			self := New(time.Second).Record()
			require.Equal(t, self.Boot, r.Boot, "the machine is the same")
			require.NotEqual(t, self.Namespace, r.Namespace)
			require.False(t, r.Cards, "it has a loopback only")
			s := r.Series(moved)
			require.NotZero(t, s.Grown)
			if what == "loss" {
				require.Empty(t, s.Moved, "segments are sent again all the time")
				return
			}
			require.NotEmpty(t, s.Moved)
			require.InDelta(t, time.Now().Unix(), s.Moved[0].To().Unix(), 60)
			require.GreaterOrEqual(t, r.Series(Drops).Grown, s.Grown, "an overflow is a drop too")
		})
	}
}

// notHere is how the child ends where it cannot do what it was asked for.
const notHere = 77

func TestMain(m *testing.M) {
	what := os.Getenv(inNamespace)
	if what == "" {
		os.Exit(m.Run())
	}
	w := New(time.Second)
	check(exec.Command("ip", "link", "set", "lo", "up").Run())
	w.Sample(time.Now())
	name := Retrans
	if what == "overflow" {
		name = Overflows
		overflow()
	} else {
		lose()
	}
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		w.Sample(time.Now())
		if s := w.Record().Series(name); s != nil && s.Grown > 0 {
			break
		}
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

// lose sends over a loopback that loses a third of all packets.
func lose() {
	if exec.Command("tc", "qdisc", "add", "dev", "lo", "root", "netem", "loss", "33%").Run() != nil {
		os.Exit(notHere)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, c) }()
		}
	}()
	for range 4 {
		go func() {
			if c, err := net.Dial("tcp", l.Addr().String()); err == nil {
				_, _ = c.Write(make([]byte, 1<<20))
			}
		}()
	}
}

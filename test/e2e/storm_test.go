//go:build e2e

package e2e

import (
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
	"github.com/sse-soak/sse-soak/test/netns"
	"github.com/sse-soak/sse-soak/test/reverse"
	"github.com/sse-soak/sse-soak/test/services"
)

func TestStorm(t *testing.T) {
	t.Parallel()
	reverse.Program(t)
	v := smoke(t, "storm", tolerantFlags...).verdict()
	require.Equal(t, verdict.Pass, v.Verdict, reasons(v))
	require.Equal(t, 360, v.Connections.Reconnected, "180 streams must reconnect twice")
	require.Equal(t, v.Messages.Received, v.Server.Sent, "no reconnect must lose a message")
	rows := section(v, "Storms").Rows
	require.Len(t, rows, 2)
	require.Equal(t, []string{"reconnects at once", "180"}, rows[1][:2])
	require.Equal(t, "20 stayed open during the storms; 0 of their noops were late", factOf(v, "other streams"))
	require.Len(t, section(v, "Accept queues").Rows, 1)
}

// A hub without a history loses messages that it confirmed while its streams were disconnected.
func TestStormOfAHubWithoutHistory(t *testing.T) {
	t.Parallel()
	s := startService(t, "mercure", services.Options{History: -1})
	r := begin(t, s.Env, append([]string{"storm", "--profile", "smoke", "--connections", "40", "--max-open-late", "-1"}, publishFlags(s.Service, s.URL)...)...)
	v := r.verdict()
	require.Equal(t, verdict.Fail, v.Verdict, r.out.String())
	require.Contains(t, reasons(v), " missed ")
	require.Equal(t, 72, v.Connections.Reconnected, "36 streams must reconnect twice")
	require.Len(t, section(v, "Storms").Rows, 2)
	require.Zero(t, v.Messages.Duplicated)
}

// The first storm begins after each client received a published message, so that each client has an id to resume from.
func TestStormClientsHaveAnID(t *testing.T) {
	t.Parallel()
	var resumed atomic.Int64
	h := &fakeservice.Hub{ID: fakeservice.DecimalID, History: true, Allow: func(r *http.Request) (until time.Time, err error) {
		if r.Header.Get("Last-Event-ID") != "" {
			resumed.Add(1)
		}
		return until, nil
	}}
	server := h.Start(t)
	flags := append(publishFlags(describeHub(t, ""), server.URL), "--publish-rate", "80", "--connections", "40", "--max-open-late", "-1")
	v := smoke(t, "storm", flags...).verdict()
	require.Equal(t, verdict.Pass, v.Verdict, reasons(v))
	require.EqualValues(t, 72, resumed.Load(), "36 streams must resume twice")
}

// runStorm runs two storms of 40 streams, which drop 36 of them, against a service that calls admit at each connect.
func runStorm(t *testing.T, admit func(connects int) (status int), args ...string) *verdict.Verdict {
	t.Helper()
	spec := bareService(time.Second)
	spec.Admit = func(_ string, connects int) int { return admit(connects) }
	_, url := startFake(t, spec, fakeservice.Strike{})
	return smoke(t, "storm", append([]string{"--connections", "40", "--backend-url", url}, args...)...).verdict()
}

// refusal returns the status with which a service refuses a connect, or 0 if the service accepts the connect.
func refusal(refuse bool) int {
	if refuse {
		return http.StatusServiceUnavailable
	}
	return 0
}

// A service that limits the connects per second refuses further clients, and accepts them when they retry.
func TestStormWithRefusals(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var start time.Time
	inSecond := 0 // number of connects in the current second
	v := runStorm(t, func(connects int) int {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(start) > time.Second {
			start, inSecond = time.Now(), 0
		}
		inSecond++
		return refusal(connects > 40+36 && inSecond > 12) // only in the second storm, after the ramp and the first storm
	}, "--seconds", "33")
	require.Equal(t, verdict.Pass, v.Verdict, reasons(v))
	require.Contains(t, strings.Join(v.Warnings, "\n"), "reconnects at once: refused: ")
	require.Contains(t, factOf(v, "reconnects at once"), "× status 503, the first after ")
	require.Equal(t, "0", section(v, "Storms").Rows[0][11])
}

func TestServiceRefusesAfterStorm(t *testing.T) {
	t.Parallel()
	v := runStorm(t, func(connects int) int { return refusal(connects > 76+20) })
	require.Equal(t, verdict.Fail, v.Verdict)
	require.Contains(t, reasons(v), "reconnects at once: 16 of 36 streams did not reconnect within 5 s; refused: ")
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

// The accept queue of a service holds two connections, and overflows. Connects then take over 1 s, and the counters of
// the machine show the reason.
func TestStormOverflowsTheAcceptQueue(t *testing.T) {
	t.Parallel()
	name := netns.New(t)
	listener := delayedListener{listenIn(t, name, 1), 2 * time.Millisecond}
	spec := bareService(time.Second)
	spec.Admit = func(string, int) int { return 0 }
	t.Cleanup(fakeservice.StartService(spec, fakeservice.Strike{}, listener).Stop)
	v := beginWith(t, t.TempDir(), []string{"ip", "netns", "exec", name}, nil,
		"storm", "--profile", "smoke", "--connections", "60", "--seconds", "33", "--late-ms", "20000", "--backend-url", "http://"+listener.Addr().String()).verdict()
	require.Contains(t, strings.Join(v.Warnings, "\n"), "found an accept queue full")
	require.Contains(t, strings.Join(v.Warnings, "\n"), "connects took over 1 s")
	row := section(v, "Accept queues").Rows[0]
	require.NotEqual(t, "0", row[2], "overflows must be counted")
	require.NotEqual(t, "0", row[4], "SYNs must be retransmitted")
}

// listenIn listens on loopback in a network namespace, with an accept queue of length backlog.
func listenIn(t *testing.T, namespace string, backlog int) (l net.Listener) {
	t.Helper()
	require.NoError(t, netns.Do(namespace, func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		file := os.NewFile(uintptr(fd), "listener")
		defer file.Close()
		if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
			return err
		}
		if err := unix.Listen(fd, backlog); err != nil {
			return err
		}
		l, err = net.FileListener(file)
		return err
	}))
	return l
}

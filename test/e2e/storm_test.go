//go:build e2e

package e2e

import (
	"net"
	"net/http"
	"os"
	"strconv"
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

// Messages that nchan confirmed while its streams were disconnected arrive after they reconnect. A hub without a
// history loses them.
func TestStormOfThirdPartyServices(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		options services.Options
		want    verdict.Outcome
		reason  string
	}{
		{"nchan", services.Options{}, verdict.Pass, "reconnects at once: all 90 streams reconnected"},
		{"mercure", services.Options{History: -1}, verdict.Fail, " missed "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := startService(t, c.name, c.options)
			r := beginWith(t, t.TempDir(), nil, s.Env, append([]string{"storm", "--profile", "smoke", "--connections", "100", "--max-open-late", "-1"}, publishFlags(s.Service, s.URL)...)...)
			v := r.verdict()
			require.Equal(t, c.want, v.Verdict, r.out.String())
			require.Contains(t, reasons(v), c.reason)
			require.Equal(t, 180, v.Connections.Reconnected, "90 streams must reconnect twice")
			require.Len(t, section(v, "Storms").Rows, 2)
			require.Zero(t, v.Messages.Duplicated)
		})
	}
}

// Settings that the script rejects are usage errors, even in a suite with the plan of a soak.
func TestStormIsTooShort(t *testing.T) {
	t.Parallel()
	r := begin(t, nil, "storm", "--profile", "smoke", "--seconds", "10")
	require.Equal(t, 64, r.end(), r.out.String())
	require.Contains(t, r.out.String(), "SECONDS must be at least 15, because 200 streams need 4 seconds to open, and each of two storms 3, got 10")
}

// storms runs a storm of 100 streams, of which 90 are dropped, against a service that calls admit at each connect.
func storms(t *testing.T, admit func(connects int) (status int), args ...string) *verdict.Verdict {
	t.Helper()
	return stormsOf(t, bareService(time.Second), admit, args...)
}

// stormsOf calls storms for another service.
func stormsOf(t *testing.T, spec fakeservice.ServiceSpec, admit func(connects int) (status int), args ...string) *verdict.Verdict {
	t.Helper()
	spec.Admit = func(_ string, connects int) int { return admit(connects) }
	_, url := startFake(t, spec, fakeservice.Strike{})
	return smoke(t, "storm", append([]string{"--connections", "100", "--backend-url", url}, args...)...).verdict()
}

// refusal returns the status with which a service refuses a connect, or 0 if it accepts it.
func refusal(refuse bool) int {
	if refuse {
		return http.StatusServiceUnavailable
	}
	return 0
}

// A service with a limit of connects per second refuses the others, and accepts them when they retry.
func TestStormWithRefusals(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var start time.Time
	accepted := 0
	v := storms(t, func(connects int) int {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(start) > time.Second {
			start, accepted = time.Now(), 0
		}
		accepted++
		return refusal(connects > 100+90 && accepted > 30) // only in the second storm, after the ramp and the first storm
	}, "--seconds", "33")
	require.Equal(t, verdict.Pass, v.Verdict, reasons(v))
	require.Contains(t, strings.Join(v.Warnings, "\n"), "reconnects at once: refused: ")
	require.Contains(t, factOf(v, "reconnects at once"), "× status 503, the first after ")
	require.Equal(t, "0", section(v, "Storms").Rows[0][11])
}

// A limiter delays connects so that it admits one per 100 ms, except for the first connects, which are not limited.
type limiter struct {
	free     int // connects that are not limited
	mu       sync.Mutex
	admitted []time.Time // intended times
	last     time.Time   // actual time of the latest one, including delays of this machine
}

// admit returns when a connect may enter.
func (l *limiter) admit(connects int) (status int) {
	if connects <= l.free {
		return 0
	}
	l.mu.Lock()
	now := time.Now()
	slot := now
	if n := len(l.admitted); n > 0 {
		slot = l.admitted[n-1].Add(100 * time.Millisecond)
	}
	if slot.Before(now) {
		slot = now
	}
	l.admitted = append(l.admitted, slot)
	l.mu.Unlock()
	time.Sleep(time.Until(slot))
	l.mu.Lock()
	l.last = time.Now()
	l.mu.Unlock()
	return 0
}

// rate returns the connects per second that were admitted.
func (l *limiter) rate() float64 {
	n := len(l.admitted)
	return float64(n) / l.last.Sub(l.admitted[0]).Seconds()
}

// A service that makes clients wait always has requests, so its rate is measured.
func TestStormMeasuresTheRateOfWaitingClients(t *testing.T) {
	t.Parallel()
	l := &limiter{free: 40 + 36} // the ramp, the first storm
	v := storms(t, l.admit, "--connections", "40", "--seconds", "33", "--min-rate", "20", "--late-ms", "20000")
	require.Equal(t, verdict.Fail, v.Verdict, reasons(v))
	rate, err := strconv.ParseFloat(section(v, "Storms").Rows[1][5], 64)
	require.NoError(t, err)
	require.Len(t, l.admitted, 36)
	require.InEpsilon(t, l.rate(), rate, .2)
}

func TestServiceRefusesAfterStorm(t *testing.T) {
	t.Parallel()
	v := storms(t, func(connects int) int { return refusal(connects > 190+50) })
	require.Equal(t, verdict.Fail, v.Verdict)
	require.Contains(t, reasons(v), "reconnects at once: 40 of 90 streams did not reconnect within 5 s; refused: ")
}

func TestStormDelaysOpenStreams(t *testing.T) {
	t.Parallel()
	var stallEnd atomic.Int64 // the service stalls
	spec := bareService(time.Second)
	spec.Text = func(string, int) string {
		time.Sleep(time.Until(time.UnixMilli(stallEnd.Load())))
		return goodNoop
	}
	v := stormsOf(t, spec, func(connects int) int {
		if connects == 190 {
			stallEnd.Store(time.Now().Add(2500 * time.Millisecond).UnixMilli())
		}
		return 0
	})
	require.Contains(t, reasons(v), "late", "noops of the open streams must be late")
	require.NotEqual(t, verdict.Pass, v.Verdict)
	require.NotContains(t, factOf(v, "other streams"), "; 0 of their noops")
}

// The accept queue of a service, which holds two connections, overflows. So connects take over 1 s, and the counters of
// the machine show the reason.
func TestStormOverflowsTheAcceptQueue(t *testing.T) {
	t.Parallel()
	name := netns.New(t)
	listener := delayedListener{listenIn(t, name, 1), 2 * time.Millisecond}
	spec := bareService(time.Second)
	spec.Admit = func(string, int) int { return 0 }
	t.Cleanup(fakeservice.StartService(spec, fakeservice.Strike{}, listener).Stop)
	v := beginWith(t, t.TempDir(), []string{"ip", "netns", "exec", name}, nil,
		"storm", "--profile", "smoke", "--connections", "100", "--seconds", "33", "--late-ms", "20000", "--backend-url", "http://"+listener.Addr().String()).verdict()
	require.Contains(t, strings.Join(v.Warnings, "\n"), "found an accept queue full")
	require.Contains(t, strings.Join(v.Warnings, "\n"), "connects took over 1 s")
	row := section(v, "Accept queues").Rows[0]
	require.NotEqual(t, "0", row[2], "overflows")
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

//go:build e2e

package e2e

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/netns"
	"github.com/sse-soak/sse-soak/test/services"
)

func TestStorm(t *testing.T) {
	t.Parallel()
	needNginx(t)
	v := smoke(t, "storm", patient...).judged()
	require.Equal(t, verdict.Pass, v.Verdict, reasons(v))
	require.Equal(t, 360, v.Connections.Reconnected, "180 streams, twice")
	require.Equal(t, v.Messages.Received, v.Server.Sent, "nothing was lost at any seam")
	rows := section(v, "Storms").Rows
	require.Len(t, rows, 2)
	require.Equal(t, []string{"reconnects at once", "180"}, rows[1][:2])
	require.Equal(t, "20 streams through the storms, 0 of their noops late", factOf(v, "held"))
	require.Len(t, section(v, "Accept queues").Rows, 1)
}

// What nchan confirmed while its streams were away comes once they are back. A hub without a history has lost it.
func TestStormsOfServicesThatOthersWrote(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		options services.Options
		want    verdict.Outcome
		reason  string
	}{
		{"nchan", services.Options{}, verdict.Pass, "reconnects at once: all 90 streams came back"},
		{"mercure", services.Options{History: -1}, verdict.Fail, " missed "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := startService(t, c.name, c.options)
			r := beginWith(t, t.TempDir(), nil, s.Env, append([]string{"storm", "--profile", "smoke", "--connections", "100", "--max-held-late", "-1"}, published(s.Service, s.URL)...)...)
			v := r.judged()
			require.Equal(t, c.want, v.Verdict, r.out.String())
			require.Contains(t, reasons(v), c.reason)
			require.Equal(t, 180, v.Connections.Reconnected, "90 streams, twice")
			require.Len(t, section(v, "Storms").Rows, 2)
			require.Zero(t, v.Messages.Duplicated)
		})
	}
}

// What its script refuses is wrong usage, also of a suite whose plan is that of a soak.
func TestAStormThatIsTooShort(t *testing.T) {
	t.Parallel()
	r := begin(t, nil, "storm", "--profile", "smoke", "--seconds", "10")
	require.Equal(t, 64, r.end(), r.out.String())
	require.Contains(t, r.out.String(), "SECONDS is 10: 200 streams take 4 seconds to open")
}

// stormy is a foreign service that a test spoils.
type stormy struct {
	foreign
	connects int
	refuse   func(connects int) bool          // whether it refuses the connect of that number, from 1
	wait     func(connects int) time.Duration // for how long it delays that connect
	stalls   int                              // at the connect of this number it stalls
	until    time.Time                        // until then
}

func (s *stormy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/event/connect" {
		s.mu.Lock()
		s.connects++
		if s.connects == s.stalls {
			s.until = time.Now().Add(2500 * time.Millisecond)
		}
		refused, delay := s.refuse != nil && s.refuse(s.connects), time.Duration(0)
		if s.wait != nil {
			delay = s.wait(s.connects)
		}
		s.mu.Unlock()
		time.Sleep(delay)
		if refused {
			http.Error(w, "too many at once", http.StatusServiceUnavailable)
			return
		}
	}
	s.foreign.ServeHTTP(w, r)
}

// storms runs 100 streams, of which 90 are dropped, against a service.
func storms(t *testing.T, s *stormy, args ...string) *verdict.Verdict {
	t.Helper()
	s.interval, s.streams = time.Second, map[string]chan struct{}{}
	s.say = func(string, int) string {
		s.mu.Lock()
		until := s.until
		s.mu.Unlock()
		time.Sleep(time.Until(until))
		return "data: 0\n\n"
	}
	server := httptest.NewServer(s)
	defer server.Close()
	return smoke(t, "storm", append([]string{"--connections", "100", "--backend-url", server.URL}, args...)...).judged()
}

// A service with a limit of connects per second refuses the others, and accepts them when they retry.
func TestAStormOfWhichSomeAreRefused(t *testing.T) {
	t.Parallel()
	var begun time.Time
	taken := 0
	s := &stormy{refuse: func(connects int) bool {
		if time.Since(begun) > time.Second {
			begun, taken = time.Now(), 0
		}
		taken++
		return connects > 1+100+90 && taken > 30 // in the second storm: after the trial stream, the load and the first storm
	}}
	v := storms(t, s, "--seconds", "33")
	require.Equal(t, verdict.Pass, v.Verdict, reasons(v))
	require.Contains(t, strings.Join(v.Warnings, "\n"), "reconnects at once: refused: ")
	require.Contains(t, factOf(v, "reconnects at once"), "× status 503, the first after ")
	require.Equal(t, "0", section(v, "Storms").Rows[0][11])
}

// A limiter admits ten connects per second, evenly, from the connect after the first ones on.
type limiter struct {
	after    int
	admitted []time.Time
}

// turn returns for how long the connect has to wait for its turn.
func (l *limiter) turn() time.Duration {
	now := time.Now()
	if n := len(l.admitted); n > 0 {
		return max(l.admitted[n-1].Add(100*time.Millisecond).Sub(now), 0)
	}
	return 0
}

// refuse refuses a connect that is too early.
func (l *limiter) refuse(connects int) bool {
	if connects <= l.after {
		return false
	}
	wait := l.turn()
	if wait == 0 {
		l.admitted = append(l.admitted, time.Now())
	}
	return wait > 0
}

// wait delays a connect that is too early.
func (l *limiter) wait(connects int) time.Duration {
	if connects <= l.after {
		return 0
	}
	wait := l.turn()
	l.admitted = append(l.admitted, time.Now().Add(wait))
	return wait
}

// rate returns the connects per second that were admitted.
func (l *limiter) rate() float64 {
	n := len(l.admitted)
	return float64(n) / l.admitted[n-1].Sub(l.admitted[0]).Seconds()
}

// A refused client waits ever longer, so the rate of reconnects is not the one that the service admits.
func TestStormDoesNotJudgeTheRateOfRefusedClients(t *testing.T) {
	t.Parallel()
	l := &limiter{after: 1 + 40 + 36} // the trial, the ramp, the first storm
	v := storms(t, &stormy{refuse: l.refuse}, "--connections", "40", "--seconds", "65", "--min-rate", "8", "--late-ms", "20000")
	require.Greater(t, len(l.admitted), 18, "the last of 36 clients may wait beyond the end of the run")
	require.Less(t, l.rate(), 8., "the clients waited, or this tests nothing")
	require.Equal(t, verdict.Invalid, v.Verdict, reasons(v))
	require.Contains(t, reasons(v), "whether the service admits 8 connects per second was not measured: ")
	require.Contains(t, section(v, "Storms").Rows[1][5], "≥ ")
}

// A service that makes clients wait is asked all the time, so its rate is measured.
func TestStormMeasuresTheRateOfWaitingClients(t *testing.T) {
	t.Parallel()
	for least, want := range map[string]verdict.Outcome{"8": verdict.Pass, "20": verdict.Fail} {
		t.Run("MIN_RATE="+least, func(t *testing.T) {
			t.Parallel()
			l := &limiter{after: 1 + 40 + 36} // the trial, the ramp, the first storm
			v := storms(t, &stormy{wait: l.wait}, "--connections", "40", "--seconds", "33", "--min-rate", least, "--late-ms", "20000")
			require.Equal(t, want, v.Verdict, reasons(v))
			rate, err := strconv.ParseFloat(section(v, "Storms").Rows[1][5], 64)
			require.NoError(t, err)
			require.Len(t, l.admitted, 36)
			require.InEpsilon(t, l.rate(), rate, .1)
		})
	}
}

func TestAStormAfterWhichTheServiceRefuses(t *testing.T) {
	t.Parallel()
	v := storms(t, &stormy{refuse: func(connects int) bool { return connects > 1+190+50 }})
	require.Equal(t, verdict.Fail, v.Verdict)
	require.Contains(t, reasons(v), "reconnects at once: 40 of 90 streams were not back within 5 s; refused: ")
}

func TestAStormThatHeldStreamsNotice(t *testing.T) {
	t.Parallel()
	v := storms(t, &stormy{stalls: 191})
	require.Contains(t, reasons(v), "late", "the held streams were, for 2.5 s")
	require.NotEqual(t, verdict.Pass, v.Verdict)
	require.NotContains(t, factOf(v, "held"), " 0 of their noops late")
}

// The accept queue of a service has room for two and overflows: connects take a second or more, and the counters of
// the machine show the reason.
func TestAStormOverflowsTheAcceptQueue(t *testing.T) {
	t.Parallel()
	name := netns.New(t)
	s := &stormy{foreign: foreign{interval: time.Second, streams: map[string]chan struct{}{}}}
	listener := &slowListener{Listener: listenIn(t, name, 1)}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: s}}
	server.Start()
	t.Cleanup(server.Close)
	v := beginWith(t, t.TempDir(), []string{"ip", "netns", "exec", name}, nil,
		"storm", "--profile", "smoke", "--connections", "100", "--seconds", "33", "--late-ms", "20000", "--backend-url", server.URL).judged()
	require.Contains(t, strings.Join(v.Warnings, "\n"), "found an accept queue full")
	require.Contains(t, strings.Join(v.Warnings, "\n"), "connects took over 1 s")
	row := section(v, "Accept queues").Rows[0]
	require.NotEqual(t, "0", row[2], "overflows")
	require.NotEqual(t, "0", row[4], "SYNs that were sent again")
}

// slowListener takes one connection per 2 ms.
type slowListener struct {
	net.Listener
	one sync.Mutex
}

func (l *slowListener) Accept() (net.Conn, error) {
	l.one.Lock()
	defer l.one.Unlock()
	time.Sleep(2 * time.Millisecond)
	return l.Listener.Accept()
}

// listenIn listens on loopback in a network namespace, with an accept queue of that length.
func listenIn(t *testing.T, namespace string, backlog int) (l net.Listener) {
	t.Helper()
	require.NoError(t, netns.In(namespace, func() error {
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

//go:build e2e

package e2e

import (
	"fmt"
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

	"github.com/sse-soak/sse-soak/internal/plan"
	"github.com/sse-soak/sse-soak/internal/results"
	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/fakeservice"
	"github.com/sse-soak/sse-soak/test/netns"
	"github.com/sse-soak/sse-soak/test/reverse"
	"github.com/sse-soak/sse-soak/test/services"
)

// In these runs each stream receives a message every 0.5 s, and cuts occur from 3.5 s to 6 s.
const (
	resumeStreams = 24
	resumeCuts    = 10
)

// cutStreams starts `soak run resume`.
func cutStreams(t *testing.T, env []string, args ...string) *soakRun {
	t.Helper()
	out := t.TempDir()
	r := prepare(t, out, nil, env, append([]string{
		"--prefix", "cut-", "--connections", fmt.Sprint(resumeStreams), "--seconds", "17", "--runners", "2",
		"--cuts-per-second", "4", "--pause", "0.5", "--seed", "7",
	}, args...)...)
	r.cmd.Args = append([]string{r.cmd.Args[0], "run", "resume"}, r.cmd.Args[2:]...)
	r.start()
	return r
}

// publishFlags returns the flags of a run that publishes.
func publishFlags(service, url string) []string {
	return []string{"--service", service, "--backend-url", url, "--topics", "8", "--publish-rate", "16"}
}

// describeHub writes the description of a fakeservice.Hub with extra or other fields, and returns its path.
func describeHub(t *testing.T, extra string) string {
	t.Helper()
	return writeFile(t, "mine.js", `export default {
		name: 'mine',
		connect: { url: '{base}/sub/{topic}' },
		message: { seq: 'json:$.seq', run: 'json:$.run', sentAt: 'json:$.t', sum: 'json:$.sum' },
		publish: { url: '{base}/pub/{topic}', body: '{"run":"{run}","seq":{seq},"t":{sentAt},"sum":"{sum}"}' },
		`+extra+`
	};`)
}

// cutsByKind returns the cuts of a verdict by kind.
func cutsByKind(t *testing.T, v *verdict.Verdict) map[string]verdict.Cuts {
	t.Helper()
	all := map[string]verdict.Cuts{}
	for _, c := range v.Cuts {
		all[c.Kind] = c
	}
	require.Len(t, all, len(plan.CutKinds()))
	return all
}

// sum adds up the cuts of all kinds.
func sum(v *verdict.Verdict) (all verdict.Cuts) {
	for _, c := range v.Cuts {
		all.Count, all.Ended, all.Resumed, all.WithoutLoss = all.Count+c.Count, all.Ended+c.Ended, all.Resumed+c.Resumed, all.WithoutLoss+c.WithoutLoss
		all.Lost, all.Duplicated, all.Announced = all.Lost+c.Lost, all.Duplicated+c.Duplicated, all.Announced+c.Announced
	}
	return all
}

func TestResumePasses(t *testing.T) {
	t.Parallel()
	h := &fakeservice.Hub{ID: fakeservice.DecimalID, History: true, HeartbeatInterval: time.Second, Heartbeat: ":\n\n"}
	server := h.Start(t)
	r := cutStreams(t, nil, publishFlags(describeHub(t, ""), server.URL)...)
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	all := sum(v)
	require.Equal(t, resumeCuts, all.Count)
	require.Equal(t, resumeCuts, all.WithoutLoss)
	require.Equal(t, all.Ended, all.Resumed)
	for kind, c := range cutsByKind(t, v) {
		require.Equal(t, c.Planned, c.Count, kind)
		require.Positive(t, c.Count, kind)
		if kind == plan.CutPause { // the stream continues after the pause
			require.Zero(t, c.Ended)
			require.GreaterOrEqual(t, c.OutageMS.P50, 500.)
		} else {
			require.Equal(t, c.Count, c.Ended, kind)
		}
	}
	require.Equal(t, all.Ended, v.Connections.Reconnected)
	opened, _ := h.StreamCounts()
	require.Equal(t, resumeStreams+all.Ended, opened-1, "there must be one stream per client, one per reconnect, and one for the trial")
	require.Zero(t, v.Messages.NotExpected)
	require.Zero(t, v.Evidence.Undetectable)
	require.NotEmpty(t, section(v, "Resumes by kind of disconnect").Rows, r.out.String())
	cuts, err := os.ReadFile(r.dir.Path(results.CutsFile))
	require.NoError(t, err)
	rows := strings.Split(strings.TrimSpace(string(cuts)), "\n")
	require.Len(t, rows, 1+resumeCuts)
	require.Regexp(t, `^cut-[0-9]+,[12],(fin|rst|half|pause),[0-9.]+,[0-9]+,(true|false),[0-9.]+,(true|false),[0-9.]+,[0-9]+,[0-9.]+,0,0,0,0$`, rows[1])
	page, err := os.ReadFile(r.dir.Path(results.PageFile))
	require.NoError(t, err)
	require.Contains(t, string(page), "Resumes by kind of disconnect")
}

// Each fault of a resume is detected by the numbers of messages, and attributed to its cut.
func TestWrongResumeIsDetected(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hub    *fakeservice.Hub
		extra  string
		flags  []string
		want   verdict.Outcome
		reason string
		check  func(t *testing.T, all verdict.Cuts)
	}{
		"no history": {
			hub: &fakeservice.Hub{}, want: verdict.Fail, reason: "lost, 0 received twice",
			check: func(t *testing.T, all verdict.Cuts) { require.Positive(t, all.Lost); require.Zero(t, all.Announced) },
		},
		"no history, announced by an event, and allowed": {
			hub: &fakeservice.Hub{GapEvent: "event: reset\ndata: x\n\n"}, extra: `resume: { by: 'header', gap: { event: 'reset' } },`,
			flags: []string{"--allow-announced-gaps"},
			want:  verdict.Pass, reason: "messages are missing in announced gaps, which ALLOW_ANNOUNCED_GAPS=1 allows",
			check: func(t *testing.T, all verdict.Cuts) {
				require.EqualValues(t, all.Ended, all.Announced)
				require.Positive(t, all.Lost)
			},
		},
		"the last message is repeated": {
			hub:  &fakeservice.Hub{History: true, Replay: func(_ *http.Request, all []string, from int) []string { return all[from-1:] }},
			want: verdict.Fail, reason: "0 messages were lost, 1 received twice, and the stream continued with ",
			check: func(t *testing.T, all verdict.Cuts) { require.EqualValues(t, all.Ended, all.Duplicated) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.hub.ID = fakeservice.DecimalID
			server := c.hub.Start(t)
			r := cutStreams(t, nil, append(publishFlags(describeHub(t, c.extra), server.URL), c.flags...)...)
			v := r.verdict()
			require.Equal(t, c.want, v.Verdict, r.out.String())
			require.Contains(t, reasons(v), c.reason)
			all := sum(v)
			require.Equal(t, resumeCuts, all.Count, "each planned cut must be made")
			c.check(t, all)
			require.Equal(t, all.Ended, v.Connections.Reconnected)
		})
	}
}

// The backend generates the noops of the outage again, even behind nginx.
func TestNoopsResume(t *testing.T) {
	t.Parallel()
	r := cutStreams(t, nil, "--noop-interval", "0.5")
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	all := sum(v)
	require.Equal(t, []int{resumeCuts, resumeCuts}, []int{all.Count, all.WithoutLoss})
	require.Equal(t, all.Ended, all.Resumed)
	require.Positive(t, all.Ended)
	require.True(t, v.Server.Agrees)
}

// A service that does not resume passes. Without a buffer, nchan loses messages. A Mercure hub without a history also
// loses messages, and announces the gap.
func TestResumeOfThirdPartyServices(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		options services.Options
		want    verdict.Outcome
		reason  string
	}{
		{"sse-starlette", services.Options{}, verdict.Pass, "the service does not resume"},
		{"nchan", services.Options{History: -1}, verdict.Fail, "lost, 0 received twice"},
		{"mercure", services.Options{History: -1}, verdict.Fail, "and the service announced a gap by the header Last-Event-ID with an id other than the requested one"},
	} {
		t.Run(fmt.Sprint(c.name, " ", c.want), func(t *testing.T) {
			t.Parallel()
			s := startService(t, c.name, c.options)
			r := cutStreams(t, s.Env, publishFlags(s.Service, s.URL)...)
			v := r.verdict()
			require.Equal(t, c.want, v.Verdict, r.out.String())
			require.Contains(t, reasons(v), c.reason)
			all := sum(v)
			require.Equal(t, resumeCuts, all.Count)
			require.Equal(t, all.Ended, all.Resumed)
			if c.name == "mercure" {
				require.EqualValues(t, all.Ended, all.Announced)
			} else {
				require.Zero(t, all.Announced)
			}
		})
	}
}

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

// The first storm begins after each client has received a published message, so that each client has an id to resume
// from.
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

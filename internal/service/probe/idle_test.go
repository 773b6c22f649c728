package probe

import (
	"context"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/fakeservice"
	"github.com/sse-soak/sse-soak/test/sockets"
)

// A network is a path between client and service that drops connections after a silence.
type network struct {
	limit  time.Duration
	closes bool // the path closes connections; otherwise it drops data, as a NAT does
	resets bool // the path closes connections with a reset
}

// start listens for connections to an address, and returns the URL of the listener.
func (p *network) start(t *testing.T, to string) string {
	t.Helper()
	return "http://" + sockets.Serve(t, func(client net.Conn) { p.carry(client, strings.TrimPrefix(to, "http://")) })
}

// carry copies data between a client and a service until the silence exceeds the limit.
func (p *network) carry(client net.Conn, to string) {
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer server.Close()
	var expired atomic.Bool
	timer := time.AfterFunc(p.limit, func() {
		expired.Store(true)
		if p.closes {
			if p.resets {
				_ = client.(*net.TCPConn).SetLinger(0)
			}
			_ = client.Close()
			_ = server.Close()
		}
	})
	defer timer.Stop()
	pass := func(to io.Writer, from io.Reader) {
		b := make([]byte, 4096)
		for {
			n, err := from.Read(b)
			if err != nil {
				return
			}
			if !expired.Load() {
				timer.Reset(p.limit)
				_, _ = to.Write(b[:n])
			}
		}
	}
	go func() { pass(client, server); _ = client.Close() }()
	pass(server, client)
}

// testCheckTimes are the check times of these tests. They are far apart, and pathLimit is in the middle of them, so a delay of half a
// second on a busy machine changes no result.
var testCheckTimes = []time.Duration{400 * time.Millisecond, 1200 * time.Millisecond, 4800 * time.Millisecond, 6 * time.Second, 7600 * time.Millisecond}

const pathLimit = 2800 * time.Millisecond

func probeIdle(t *testing.T, url string, publish Request, c Config) string {
	t.Helper()
	c.URL, c.Publish, c.Streams, c.Pace, c.checkTimes = url+"/sub/{topic}", publish, 3, 80*time.Millisecond, testCheckTimes
	if c.Length == 0 {
		c.Length = 10 * time.Second
	}
	text, err := Idle(t.Context(), c)
	require.NoError(t, err)
	t.Log(text)
	return text
}

func TestIdleTimeouts(t *testing.T) {
	t.Parallel()
	const limit = pathLimit
	const two = `\n(after +\S+ s  alive\n){2}after`
	for name, c := range map[string]struct {
		path        *network
		hub         *fakeservice.Hub
		noPublisher bool
		wantText    []string
	}{
		"no limit": {wantText: []string{
			`\n(after +\S+ s  alive\n){5}\n`, `No stream was closed during a silence of (7\.[6-9]|[89]|1\d).* s\.`,
		}},
		"a proxy that closes": {path: &network{limit: limit, closes: true}, wantText: []string{
			two, `\n(after +(2\.[89]|3\.[0-6]) s  closed: the connection was closed in the middle of the response\n){3}\n`,
			"Send something on each stream, such as a comment, at least every 1.",
		}},
		"a proxy that resets": {path: &network{limit: limit, closes: true, resets: true}, wantText: []string{`(closed: the connection was reset\n.*){3}`}},
		"a NAT": {path: &network{limit: limit}, wantText: []string{
			two, `\n(after +(4\.[89]|[5-9]\.\d) s  lost: the message did not arrive, and the stream did not end\n){2}`, "at least every ",
		}},
		"a proxy that closes, without a publisher": {path: &network{limit: limit, closes: true}, noPublisher: true, wantText: []string{
			"Only closed streams can be detected", `\n(after +(2\.[89]|3\.[0-6]) s  closed: .*\n){3}`,
		}},
		"a NAT, without a publisher": {path: &network{limit: limit}, noPublisher: true, wantText: []string{`No stream was closed during a silence of (9\.[5-9]|1\d)`}},
		"a service that closes": {hub: &fakeservice.Hub{Lifetime: limit}, noPublisher: true, wantText: []string{
			`(closed: the response ended in order, possibly by the service itself .*\n.*){3}`,
		}},
		"empty lines as heartbeats": {path: &network{limit: limit, closes: true}, hub: &fakeservice.Hub{Heartbeat: "\n", HeartbeatInterval: 200 * time.Millisecond}, noPublisher: true, wantText: []string{
			"No stream was closed during a silence of 0.",
		}},
		"many heartbeats": {path: &network{limit: limit, closes: true}, hub: &fakeservice.Hub{Heartbeat: strings.Repeat(":\n\n", 1000), HeartbeatInterval: 100 * time.Millisecond}, noPublisher: true, wantText: []string{
			"No stream was closed during a silence of 0.",
		}},
		"heartbeats": {path: &network{limit: limit, closes: true}, hub: &fakeservice.Hub{Heartbeat: ":\n\n", HeartbeatInterval: 200 * time.Millisecond}, noPublisher: true, wantText: []string{
			`No stream was closed during a silence of [0-2]\.`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := c.hub
			if h == nil {
				h = &fakeservice.Hub{}
			}
			to := h.Start(t).URL
			if c.path != nil {
				to = c.path.start(t, to)
			}
			publish := publishRequest
			if c.noPublisher {
				publish = Request{}
			}
			text := probeIdle(t, to, publish, Config{})
			for _, want := range c.wantText {
				require.Regexp(t, want, text)
			}
		})
	}
}

func TestKnownLimits(t *testing.T) {
	t.Parallel()
	at := func(f silenceOutcome, after ...time.Duration) (out []*silentStream) {
		for _, d := range after {
			out = append(out, &silentStream{track: &track{ended: io.ErrUnexpectedEOF}, outcome: f, silence: d})
		}
		return out
	}
	conclude := func(all ...*silentStream) string { return (&idleProbe{session: &session{}, streams: all}).conclusion() }
	minute := conclude(at(closed, 60030*time.Millisecond, 60100*time.Millisecond)...)
	require.Contains(t, minute, "Known limit of 60 s: nginx's proxy_read_timeout")
	require.Contains(t, minute, "Application Load Balancer")
	require.Contains(t, minute, "at least every 30 s")
	require.NotContains(t, minute, "NAT")
	nat := conclude(append(at(alive, 345*time.Second), at(lost, 355*time.Second, 895*time.Second)...)...)
	require.Contains(t, nat, "Known limit of 350 s: an AWS NAT gateway")
	require.NotContains(t, nat, "nginx")
	require.NotContains(t, conclude(at(closed, 77*time.Second)...), "Known limit")
	soon := conclude(at(lost, 30*time.Second, 55*time.Second)...)
	require.Contains(t, soon, "A silence of less than 30 s is too long; probe again with --seconds 20.")
	require.NotContains(t, soon, "at least every")
	lostFirst := conclude(slices.Concat(at(alive, 30*time.Second, 55*time.Second), at(closed, 100*time.Second), at(lost, 65*time.Second))...)
	require.Contains(t, lostFirst, "Known limit of 60 s: nginx's proxy_read_timeout", "the limit is between 55 and 65 seconds")
	require.Contains(t, lostFirst, "at least every 28 s")
	for _, f := range []silenceOutcome{closed, lost} {
		one := conclude(append(at(alive, 30*time.Second, 345*time.Second), at(f, 60*time.Second)...)...)
		require.Equal(t, "One stream ended, and another was alive after a longer silence, so the silence was not the reason. Probe again.", one)
		require.Contains(t, conclude(append(at(alive, 30*time.Second, 345*time.Second), at(f, 60*time.Second, 60*time.Second)...)...), "Known limit of 60 s")
	}
}

func TestStoppedIdleProbeReports(t *testing.T) {
	t.Parallel()
	h := &fakeservice.Hub{}
	c := Config{URL: h.Start(t).URL + "/sub/{topic}", Streams: 2, Length: time.Minute}
	ctx, stop := context.WithCancel(t.Context())
	c.Progress = func(message string) {
		if strings.HasPrefix(message, "holding") {
			stop()
		}
	}
	text, err := Idle(ctx, c)
	require.NoError(t, err)
	require.Contains(t, text, "was stopped after")
}

func TestCheckTimesFitTheProbe(t *testing.T) {
	t.Parallel()
	c := Config{Length: 2 * time.Minute, Pace: time.Second}
	require.Equal(t, []time.Duration{30 * time.Second, 55 * time.Second, 65 * time.Second, 115 * time.Second, 119 * time.Second}, c.checkTimesWithin(checkTimes))
	c.Length = LongestIdle
	all := c.checkTimesWithin(checkTimes)
	require.Len(t, all, MaxStreams)
	require.Equal(t, 899*time.Second, all[len(all)-1])
}

// If a service confirms messages but delivers none, checks cannot distinguish silent streams that are alive.
func TestIdleProbeRejectsLostMessages(t *testing.T) {
	t.Parallel()
	h := &fakeservice.Hub{Lose: func(string, string) bool { return true }}
	_, err := Idle(t.Context(), Config{URL: h.Start(t).URL + "/sub/{topic}", Publish: publishRequest, Pace: 20 * time.Millisecond, Length: time.Second, checkTimes: testCheckTimes})
	require.ErrorContains(t, err, "was confirmed, but did not arrive on the stream of that topic")
}

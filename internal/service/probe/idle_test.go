package probe

import (
	"cmp"
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/test/fakeservice"
	"github.com/sse-soak/sse-soak/test/memory"
)

// A path drops connections between the client and the service after a silence.
type path struct {
	limit  time.Duration
	closes bool  // it closes connections; otherwise it drops data, as a NAT does
	err    error // error of reads from a closed connection
}

type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

func (p path) wrap(dial dialer) dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		c := &pathConn{Conn: conn, path: p}
		c.timer = time.AfterFunc(p.limit, func() {
			if c.expired.Store(true); p.closes {
				_ = conn.Close()
			}
		})
		return c, nil
	}
}

// A pathConn is the client's end of a connection through a path.
type pathConn struct {
	net.Conn
	path
	timer   *time.Timer
	expired atomic.Bool
}

// Read returns no bytes that arrive after the silence.
func (c *pathConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		switch {
		case err != nil && c.expired.Load() && c.closes:
			return 0, c.err
		case err != nil || !c.expired.Load():
			c.timer.Reset(c.limit)
			return n, err
		}
	}
}

func (c *pathConn) Close() error {
	c.timer.Stop()
	return c.Conn.Close()
}

// probeIdle probes a hub for two minutes of a fake clock.
func probeIdle(t *testing.T, h *fakeservice.Hub, p *path, publish Request) (text string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := Config{
			URL: base + "/sub/{topic}", Publish: publish, Streams: 3, Length: 2 * time.Minute, Dial: memory.Serve(t, h),
		}
		if p != nil {
			c.Dial = p.wrap(c.Dial)
		}
		var err error
		text, err = Idle(t.Context(), c)
		require.NoError(t, err)
	})
	return text
}

func TestIdleTimeouts(t *testing.T) {
	t.Parallel()
	const limit = time.Minute
	const twoAlive = `\n(after +\S+ s  alive\n){2}after`
	proxy := &path{limit: limit, closes: true, err: io.EOF}
	for name, c := range map[string]struct {
		path        *path
		hub         *fakeservice.Hub
		noPublisher bool
		wantText    []string
	}{
		"no limit": {wantText: []string{`\n(after +\S+ s  alive\n){5}\n`, `No stream was closed during a silence of 119 s\.`}},
		"a proxy that closes": {path: proxy, wantText: []string{
			twoAlive, `\n(after +60\.0 s  closed: the connection was closed in the middle of the response\n){3}\n`,
			"Send something on each stream, such as a comment, at least every 30 s",
		}},
		"a proxy that resets": {path: &path{limit: limit, closes: true, err: syscall.ECONNRESET}, wantText: []string{`(closed: the connection was reset\n.*){3}`}},
		"a NAT": {path: &path{limit: limit}, wantText: []string{
			twoAlive, `\n(after +(65|115)\.\d s  lost: the message did not arrive, and the stream did not end\n){2}`, "at least every ",
		}},
		"a proxy that closes, without a publisher": {path: proxy, noPublisher: true, wantText: []string{
			"Only closed streams can be detected", `\n(after +60\.0 s  closed: .*\n){3}`,
		}},
		"a NAT, without a publisher": {path: &path{limit: limit}, noPublisher: true, wantText: []string{`No stream was closed during a silence of 12[01] s`}},
		"a service that closes": {hub: &fakeservice.Hub{Lifetime: limit}, noPublisher: true, wantText: []string{
			`(closed: the response was complete; the service may limit the lifetime of streams .*\n.*){3}`,
		}},
		"empty lines as heartbeats": {path: proxy, hub: &fakeservice.Hub{Heartbeat: "\n", HeartbeatInterval: 5 * time.Second}, noPublisher: true, wantText: []string{
			"No stream was closed during a silence of [45]",
		}},
		"many heartbeats": {path: proxy, hub: &fakeservice.Hub{Heartbeat: strings.Repeat(":\n\n", 1000), HeartbeatInterval: 5 * time.Second}, noPublisher: true, wantText: []string{
			"No stream was closed during a silence of [45]",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := cmp.Or(c.hub, &fakeservice.Hub{})
			publish := publishRequest
			if c.noPublisher {
				publish = Request{}
			}
			text := probeIdle(t, h, c.path, publish)
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
	require.Contains(t, soon, "The limit is at most 30 s; probe again with --seconds 20 to measure it.")
	require.NotContains(t, soon, "at least every")
	lostFirst := conclude(slices.Concat(at(alive, 30*time.Second, 55*time.Second), at(closed, 100*time.Second), at(lost, 65*time.Second))...)
	require.Contains(t, lostFirst, "Known limit of 60 s: nginx's proxy_read_timeout", "the limit is between 55 and 65 seconds")
	require.Contains(t, lostFirst, "at least every 28 s")
	for _, f := range []silenceOutcome{closed, lost} {
		one := conclude(append(at(alive, 30*time.Second, 345*time.Second), at(f, 60*time.Second)...)...)
		require.Equal(t, "One stream failed, and another was alive after a longer silence, so the silence was not the reason. Probe again.", one)
		require.Contains(t, conclude(append(at(alive, 30*time.Second, 345*time.Second), at(f, 60*time.Second, 60*time.Second)...)...), "Known limit of 60 s")
	}
}

func TestStoppedIdleProbeReports(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := Config{URL: base + "/sub/{topic}", Streams: 2, Length: time.Minute, Dial: memory.Serve(t, &fakeservice.Hub{})}
		ctx, stop := context.WithCancel(t.Context())
		c.Progress = func(message string) {
			if strings.HasPrefix(message, "holding") {
				stop()
			}
		}
		text, err := Idle(ctx, c)
		require.NoError(t, err)
		require.Contains(t, text, "was stopped after")
	})
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

// If a service confirms messages but delivers none, a check cannot distinguish an open stream from a lost one.
func TestIdleProbeRejectsLostMessages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dial := memory.Serve(t, &fakeservice.Hub{Lose: func(string, string) bool { return true }})
		_, err := Idle(t.Context(), Config{URL: base + "/sub/{topic}", Publish: publishRequest, Length: time.Minute, Dial: dial})
		require.ErrorContains(t, err, "was confirmed, but did not arrive on the stream of that topic")
	})
}

// A stream may be alive even if the service refuses the message that checks it.
func TestRefusedMessageIsNotALostStream(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub, published := &fakeservice.Hub{}, atomic.Int64{}
		dial := memory.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost && published.Add(1) > 5 { // one message tests each of the five streams
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			hub.ServeHTTP(w, r)
		}))
		text, err := Idle(t.Context(), Config{URL: base + "/sub/{topic}", Publish: publishRequest, Length: 2 * time.Minute, Dial: dial})
		require.NoError(t, err)
		require.NotContains(t, text, "lost")
		require.Contains(t, text, "was not confirmed: ")
	})
}

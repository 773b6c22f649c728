//go:build e2e

package e2e

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/sse-soak/sse-soak/internal/verdict"
	"github.com/sse-soak/sse-soak/test/netns"
	"github.com/sse-soak/sse-soak/test/untested"
)

// TCP retransmits packets that are lost, or sent during a network outage that is shorter than the idle timeout. So
// noops may be late, but none is missing.
func TestPacketLossDelayAndShortDisconnectLoseNothing(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	w.secure = true
	w.delay.Store(int64(30 * time.Millisecond))
	w.loss.Store(10_000) // 1 %
	r := w.begin(t, "2", "--seconds", "20")
	r.awaitStreams("30")
	w.cut.Store(true)
	time.Sleep(600 * time.Millisecond) // the fault; TCP retransmits after 0.2, 0.6 and 1.4 s
	w.cut.Store(false)
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.Zero(t, v.Messages.Missed)
	require.GreaterOrEqual(t, v.ConnectMS.P50, 60.0, "the delay must be effective")
}

// Dropped packets leave connections half-open. The clients detect this within 3 intervals.
func TestHalfOpenConnectionIsDetected(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	w.secure = true
	r := w.begin(t, "1", "--seconds", "15")
	r.awaitStreams("30")
	cutAt := float64(time.Now().UnixMilli()) / 1000
	w.cut.Store(true)
	await(t, "all streams must be dropped", func() bool { return strings.Contains(r.out.String(), " 0/30 open") })
	w.cut.Store(false) // otherwise the requests after the run wait for their timeouts
	v := r.verdict()
	require.Equal(t, verdict.Fail, v.Verdict, r.out.String())
	require.Equal(t, 30, v.Connections.Dropped)
	require.Contains(t, reasons(v), "went silent")
	for _, f := range v.Findings {
		if f.Kind == "dropped" {
			require.InDelta(t, cutAt, f.Unix, 3.2, f.Text)
		}
	}
}

// With RECONNECT the clients reconnect after a longer outage, replace their old streams and receive the missed
// messages by number.
func TestReconnectsSurviveLongDisconnect(t *testing.T) {
	t.Parallel()
	w := newWire(t)
	r := w.begin(t, "1", "--seconds", "20", "--reconnect")
	r.awaitStreams("30")
	w.cut.Store(true)
	time.Sleep(5 * time.Second) // the fault
	w.cut.Store(false)
	v := r.verdict()
	require.Equal(t, verdict.Pass, v.Verdict, r.out.String())
	require.Zero(t, v.Messages.Missed)
	require.GreaterOrEqual(t, v.Connections.Reconnected, 30)
}

// A wire connects two network namespaces, with a TUN device in each of them. Its relay can delay packets, and silently
// drop some or all of them. The wire also works on kernels without `tc netem`.
type wire struct {
	client, server string        // names of the namespaces
	loss           atomic.Uint64 // share of dropped packets, in millionths
	delay          atomic.Int64  // nanoseconds each way
	cut            atomic.Bool   // drop all packets silently
	secure         bool          // the backend on the server side uses TLS
}

const (
	clientAddress = "10.77.0.1"
	serverAddress = "10.77.0.2"
)

// newWire returns a wire. It skips the test without root, network namespaces or /dev/net/tun.
func newWire(t *testing.T) *wire {
	t.Helper()
	w := &wire{client: netns.New(t), server: netns.New(t)}
	a, b := tun(t, w.client), tun(t, w.server)
	run(t, "ip", "-n", w.client, "addr", "add", clientAddress+"/30", "dev", "soak0")
	run(t, "ip", "-n", w.server, "addr", "add", serverAddress+"/30", "dev", "soak0")
	for _, name := range []string{w.client, w.server} {
		run(t, "ip", "-n", name, "link", "set", "soak0", "up")
	}
	var relays sync.WaitGroup
	relays.Go(func() { w.relay(a, b) })
	relays.Go(func() { w.relay(b, a) })
	t.Cleanup(func() {
		require.NoError(t, a.Close())
		require.NoError(t, b.Close())
		relays.Wait()
	})
	return w
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	text, err := exec.Command(name, args...).CombinedOutput()
	require.NoError(t, err, "%s %s: %s", name, strings.Join(args, " "), text)
}

// tun creates the device soak0 in a namespace and returns its packets as a file.
func tun(t *testing.T, namespace string) *os.File {
	t.Helper()
	var file *os.File
	err := netns.Do(namespace, func() (err error) {
		file, err = openTun()
		return err
	})
	if err != nil {
		untested.Skip(t, "a TUN device cannot be created: "+err.Error())
	}
	return file
}

func openTun() (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	request, err := unix.NewIfreq("soak0")
	if err != nil {
		return nil, err
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "tun"), nil
}

// relay forwards packets from one end to the other until the first end is closed.
func (w *wire) relay(from, to *os.File) {
	packet := make([]byte, 1<<16)
	for {
		n, err := from.Read(packet)
		if err != nil {
			return
		}
		if w.cut.Load() || rand.Uint64N(1_000_000) < w.loss.Load() {
			continue
		}
		if delay := time.Duration(w.delay.Load()); delay > 0 {
			packetCopy := append([]byte(nil), packet[:n]...)
			time.AfterFunc(delay, func() { _, _ = to.Write(packetCopy) }) // an error at the end is like a lost packet
			continue
		}
		_, _ = to.Write(packet[:n])
	}
}

// begin starts a soak on the client side against a backend on the server side, with a noop every interval seconds.
func (w *wire) begin(t *testing.T, interval string, args ...string) *soakRun {
	t.Helper()
	url, env := w.backend(t, interval)
	return beginWith(t, t.TempDir(), []string{"ip", "netns", "exec", w.client}, env,
		append([]string{"--backend-url", url, "--connections", "30", "--noop-interval", interval}, args...)...)
}

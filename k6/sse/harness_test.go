package sse

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/grafana/sobek"
	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	"go.k6.io/k6/v2/js/modulestest"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/lib/netext"
	"go.k6.io/k6/v2/lib/types"
	"go.k6.io/k6/v2/metrics"
	"gopkg.in/guregu/null.v3"

	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/internal/sseclient/eventstream"
	"github.com/sse-soak/sse-soak/test/sockets"
)

// patience bounds whatever a test waits for.
const patience = time.Minute

// A vu is a virtual user with the module, as a script uses it.
type vu struct {
	*modulestest.Runtime
	t       testing.TB
	m       *module
	state   *lib.State
	samples chan metrics.SampleContainer
	way     way // of its streams
	opener  *Opener
}

func newVU(t testing.TB) *vu {
	t.Helper()
	rt := modulestest.NewRuntime(t)
	registry := rt.VU.InitEnvField.Registry
	rt.VU.InitEnvField.BuiltinMetrics = rt.BuiltinMetrics
	m := New().NewModuleInstance(rt.VU).(*module)
	m.patience = patience // on a busy machine a handshake takes more than a second
	exports := m.Exports()
	require.NoError(t, rt.VU.Runtime().Set("sse", exports.Default))
	for name, value := range exports.Named {
		require.NoError(t, rt.VU.Runtime().Set(name, value))
	}
	v := &vu{Runtime: rt, t: t, m: m, samples: make(chan metrics.SampleContainer, 100_000), opener: NewOpener(rt.VU)}
	v.opener.m.patience = patience
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	v.state = &lib.State{
		Dialer: netext.NewDialer(net.Dialer{Timeout: patience},
			netext.NewResolver(net.LookupIP, 0, types.DNSfirst, types.DNSpreferIPv4)),
		Options: lib.Options{
			SystemTags: metrics.NewSystemTagSet(metrics.TagURL, metrics.TagName, metrics.TagProto,
				metrics.TagStatus, metrics.TagMethod, metrics.TagIP, metrics.TagTLSVersion),
			UserAgent: null.StringFrom("test-agent"),
		},
		Logger: logger, CookieJar: jar, Samples: v.samples, BuiltinMetrics: rt.BuiltinMetrics,
		Tags: lib.NewVUStateTags(registry.RootTagSet()),
	}
	rt.MoveToVUContext(v.state)
	v.set("wait", func(ms int) { time.Sleep(time.Duration(ms) * time.Millisecond) })
	return v
}

func (v *vu) set(name string, value any) {
	v.t.Helper()
	switch value.(type) {
	case interface{ Opened(at time.Time) }, interface {
		Event(at time.Time, e *eventstream.Event)
	}, interface {
		Block(at time.Time, b *eventstream.Block)
	}:
		value = testObserver{value}
	}
	require.NoError(v.t, v.VU.Runtime().Set(name, value))
}

// A testObserver is the observer of a test as a Ledger, and as a secondRequester.
type testObserver struct{ observer any }

// Callbacks calls the methods that the observer has.
func (o testObserver) Callbacks() (on sseclient.Callbacks) {
	type (
		connecting interface{ Connecting(at time.Time) }
		response   interface{ Response(r *sseclient.Response) }
		opened     interface{ Opened(at time.Time) }
		event      interface {
			Event(at time.Time, e *eventstream.Event)
		}
		blocks interface {
			Comment(at time.Time, text []byte)
			Block(at time.Time, b *eventstream.Block)
		}
		answered interface {
			Answered(at time.Time, r *sseclient.Response)
		}
		closed   interface{ Closed(at time.Time, c Close) }
		resuming interface{ LastEventID() string }
		cuts     interface {
			Cuttable(s *sseclient.Stream) bool
			Cut(at time.Time, how Cut)
			Resumed(at time.Time, how Cut)
		}
	)
	if c, ok := o.observer.(connecting); ok {
		on.Connecting = c.Connecting
	}
	on.Opened = func(_ time.Time, r *sseclient.Response) {
		if c, ok := o.observer.(response); ok {
			c.Response(r)
		}
		if c, ok := o.observer.(opened); ok {
			c.Opened(r.At)
		}
	}
	if c, ok := o.observer.(event); ok {
		on.Event = c.Event
	}
	if c, ok := o.observer.(blocks); ok {
		on.Comment, on.Block = c.Comment, c.Block
	}
	if c, ok := o.observer.(answered); ok {
		on.Answered = c.Answered
	}
	if c, ok := o.observer.(closed); ok {
		on.Closed = c.Closed
	}
	if c, ok := o.observer.(resuming); ok {
		on.LastEventID = c.LastEventID
	}
	if c, ok := o.observer.(cuts); ok {
		on.Cuttable, on.Cut, on.Resumed = c.Cuttable, c.Cut, c.Resumed
	}
	return on
}

func (o testObserver) FollowUp(e *eventstream.Event, f *sseclient.FollowUp) bool {
	r, err := o.observer.(interface {
		SecondRequest(e *eventstream.Event) (*sseclient.SecondRequest, error)
	}).SecondRequest(e)
	if r == nil && err == nil {
		return false
	}
	f.Send(r, err)
	return true
}

type (
	Close = sseclient.Close
	Cut   = sseclient.Cut
)

const (
	CutFIN, CutRST, CutHalf, CutPause = sseclient.CutFIN, sseclient.CutRST, sseclient.CutHalf, sseclient.CutPause

	handshakesAtATime = 200 // as internal/sseclient allows
	typeHandshake     = 22  // of a TLS record
)

// run runs a script on the event loop to the end of the iteration, as k6 does: on
// an error the context is cancelled before the loop is wound down.
func (v *vu) run(script string) (sobek.Value, error) {
	v.t.Helper()
	var value sobek.Value
	err := v.iterate(script, func() (err error) {
		value, err = v.VU.Runtime().RunString(script)
		return err
	})
	return value, err
}

// iterate runs a function as an iteration.
func (v *vu) iterate(what string, f func() error) error {
	v.t.Helper()
	guard := time.AfterFunc(patience, func() {
		buf := make([]byte, 1<<20)
		fmt.Printf("the iteration hangs:\n%s\n%s\n", what, buf[:runtime.Stack(buf, true)])
		v.CancelContext()
	})
	defer guard.Stop()
	err := v.EventLoop.Start(f)
	if err != nil {
		v.CancelContext()
	}
	v.EventLoop.WaitOnRegistered()
	return err
}

// block makes k6's dialer refuse a range of addresses, as --blacklist-ip does.
func (v *vu) block(cidr string) {
	v.t.Helper()
	ipnet, err := lib.ParseCIDR(cidr)
	require.NoError(v.t, err)
	v.state.Dialer.(*netext.Dialer).Blacklist = []*lib.IPNet{ipnet}
}

func (v *vu) mustRun(script string) sobek.Value {
	v.t.Helper()
	value, err := v.run(script)
	require.NoError(v.t, err)
	return value
}

// log runs a script and returns what it pushed to the array `log`, joined by blanks.
func (v *vu) log(script string) string {
	v.t.Helper()
	v.mustRun("var log = []; " + script)
	return v.str(`log.join(" ")`)
}

func (v *vu) str(expression string) string {
	v.t.Helper()
	value, err := v.VU.Runtime().RunString(expression)
	require.NoError(v.t, err)
	return value.String()
}

// sum adds the values of all samples of a metric whose tags hold the given ones.
func (v *vu) sum(all []metrics.Sample, metric string, tags ...string) (sum float64, n int) {
	for _, s := range all {
		match := s.Metric.Name == metric
		for i := 0; i+1 < len(tags); i += 2 {
			got, _ := s.Tags.Get(tags[i])
			match = match && got == tags[i+1]
		}
		if match {
			sum += s.Value
			n++
		}
	}
	return sum, n
}

func (v *vu) drainSamples() (all []metrics.Sample) {
	for _, c := range metrics.GetBufferedSamples(v.samples) {
		all = append(all, c.GetSamples()...)
	}
	return all
}

// A peer is the server's side of one connection.
type peer struct {
	net.Conn // perhaps of TLS
	tcp      *net.TCPConn
	line     *sockets.Line // between the two
	req      *http.Request
	n        int    // 0 for the first connection to the server
	abort    func() // resets the stream, where that is all there is
}

const streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"

func (p *peer) say(s string) { _, _ = io.WriteString(p.Conn, s) }

// reset closes with a TCP RST.
func (p *peer) reset() {
	if p.abort != nil {
		p.abort()
		return
	}
	_ = p.tcp.SetLinger(0)
	_ = p.tcp.Close() // without TLS's close_notify
}

// hold waits until the client has disconnected.
func (p *peer) hold() { _, _ = io.Copy(io.Discard, p.Conn) }

// serve starts a server that hands each connection, its request read, to handle and
// closes it afterwards. It returns the URL, and understands https: just as well. It is gone
// with the test.
func serve(t testing.TB, handle func(p *peer)) string {
	t.Helper()
	return serveTLS(t, sockets.ServerTLS(), handle)
}

// serveTLS is serve with a configuration for clients that speak TLS.
func serveTLS(t testing.TB, config *tls.Config, handle func(p *peer)) string {
	t.Helper()
	var n atomic.Int32
	return "http://" + sockets.Serve(t, func(raw net.Conn) {
		conn, line := accept(raw, config)
		req, err := http.ReadRequest(bufio.NewReader(conn))
		if err == nil {
			handle(&peer{Conn: conn, tcp: raw.(*net.TCPConn), line: line, req: req, n: int(n.Add(1)) - 1})
			_ = conn.Close()
		}
	})
}

// say is serve for a fixed answer, then a clean end.
func serveText(t testing.TB, text string) string {
	return serve(t, func(p *peer) { p.say(text) })
}

// A recorder is an Observer that records its calls.
type recorder struct {
	mu    sync.Mutex
	lines []string
	last  Close
	at    time.Time
}

func (r *recorder) note(at time.Time, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at.Before(r.at) {
		r.lines = append(r.lines, "TIME-GOES-BACK")
	}
	r.at = at
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}
func (r *recorder) Connecting(at time.Time) { r.note(at, "connecting") }
func (r *recorder) Opened(at time.Time)     { r.note(at, "opened") }
func (r *recorder) Event(at time.Time, e *eventstream.Event) {
	r.note(at, "event:%s", e.Data)
}

func (r *recorder) Closed(at time.Time, c Close) {
	suffix := ""
	if c.Retry >= 0 {
		suffix = "+retry"
	}
	r.note(at, "closed:%s%s", c.Reason, suffix)
	r.last = c
}

func (r *recorder) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.lines, " ")
}

// stuckServer accepts connections and never says a word. It returns its address.
func stuckServer(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

// An eventTally counts the events of its streams.
type eventTally struct{ atomic.Int64 }

func (c *eventTally) Event(time.Time, *eventstream.Event) { c.Add(1) }

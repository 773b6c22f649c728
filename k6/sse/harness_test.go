package sse

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"reflect"
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

const testTimeout = time.Minute

// A vu is a virtual user whose scripts can use the module.
type vu struct {
	*modulestest.Runtime
	t         testing.TB
	m         *Module
	state     *lib.State
	samples   chan metrics.SampleContainer
	transport transport // the transport of its streams
	rec       *recorder // the global variable ledger of its scripts
}

// newVU returns a virtual user in the VU context, with the exports of the module as globals.
func newVU(t testing.TB) *vu {
	t.Helper()
	rt := modulestest.NewRuntime(t)
	registry := rt.VU.InitEnvField.Registry
	rt.VU.InitEnvField.BuiltinMetrics = rt.BuiltinMetrics
	m := New().NewModuleInstance(rt.VU).(*Module)
	m.dialPatience = testTimeout // a handshake may take more than a second on a busy machine
	exports := m.Exports()
	require.NoError(t, rt.VU.Runtime().Set("sse", exports.Default))
	for name, value := range exports.Named {
		require.NoError(t, rt.VU.Runtime().Set(name, value))
	}
	v := &vu{Runtime: rt, t: t, m: m, samples: make(chan metrics.SampleContainer, 10_000), rec: &recorder{}}
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	logger := logrus.New()
	logger.SetOutput(io.Discard)
	v.state = &lib.State{
		Dialer: netext.NewDialer(net.Dialer{Timeout: testTimeout},
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
	v.set("ledger", v.rec)
	v.set("wait", func(ms int) { time.Sleep(time.Duration(ms) * time.Millisecond) })
	return v
}

// set defines a global variable. If value is an observer, the variable is a Ledger.
func (v *vu) set(name string, value any) {
	v.t.Helper()
	switch value.(type) {
	case interface {
		Opened(started time.Time, r *sseclient.Response)
	}, interface {
		Event(at time.Time, e *eventstream.Event)
	}:
		value = testObserver{value}
	}
	require.NoError(v.t, v.VU.Runtime().Set(name, value))
}

// A testObserver adapts the observer of a test to the interface Ledger.
type testObserver struct{ observer any }

// Callbacks returns callbacks that call the methods of the observer with the same names. The methods may omit the
// parameter with the stream.
func (o testObserver) Callbacks() (out sseclient.Callbacks) {
	callbacks := reflect.ValueOf(&out).Elem()
	for i := range callbacks.NumField() {
		method := reflect.ValueOf(o.observer).MethodByName(callbacks.Type().Field(i).Name)
		if method.IsValid() {
			kind := callbacks.Type().Field(i).Type
			withoutStream := kind.NumIn() - method.Type().NumIn() // 1 unless the method needs the stream
			callbacks.Field(i).Set(reflect.MakeFunc(kind, func(arguments []reflect.Value) []reflect.Value {
				return method.Call(arguments[withoutStream:])
			}))
		}
	}
	return out
}

type (
	Close = sseclient.Close
	Cut   = sseclient.Cut
)

const (
	CutFIN, CutRST, CutHalfOpen, CutPause = sseclient.CutFIN, sseclient.CutRST, sseclient.CutHalfOpen, sseclient.CutPause

	maxHandshakes = 200 // the limit of internal/sseclient
	typeHandshake = 22  // of a TLS record
)

// run runs a script on the event loop to the end of the iteration. As in k6, an error cancels the context before the
// end of the loop.
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
func (v *vu) iterate(action string, f func() error) error {
	v.t.Helper()
	guard := time.AfterFunc(testTimeout, func() {
		buf := make([]byte, 1<<20)
		fmt.Printf("the iteration hangs:\n%s\n%s\n", action, buf[:runtime.Stack(buf, true)])
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

// log runs a script and returns the elements of its array `log`, separated by spaces.
func (v *vu) log(script string) string {
	v.t.Helper()
	v.mustRun("var log = []; " + script)
	return v.str(`log.join(" ")`)
}

// readStream opens a stream with the given options. It returns the data of each message, or the length of long data,
// and the reason and the message of the end.
func (v *vu) readStream(options string) string {
	v.t.Helper()
	return v.log(`{
		const s = new EventSource(url, { reconnect: false, ` + options + ` });
		s.onmessage = (e) => log.push(e.data.length > 100 ? e.data.length : e.data);
		s.onerror = (e) => log.push(e.reason + ":", e.message);
	}`)
}

func (v *vu) str(expression string) string {
	v.t.Helper()
	value, err := v.VU.Runtime().RunString(expression)
	require.NoError(v.t, err)
	return value.String()
}

// sum returns the sum and the number of the samples of a metric with the given tags: alternating names and values.
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

// drainSamples removes and returns all samples so far.
func (v *vu) drainSamples() (all []metrics.Sample) {
	for _, c := range metrics.GetBufferedSamples(v.samples) {
		all = append(all, c.GetSamples()...)
	}
	return all
}

// A peer is the server side of one connection.
type peer struct {
	net.Conn // with TLS if the client uses TLS
	tcp      *net.TCPConn
	line     *sockets.BufferedConn // between net.Conn and tcp
	req      *http.Request
	n        int    // index of the connection, from 0
	abort    func() // resets the HTTP/2 stream; nil over HTTP/1.1
}

const streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"

func (p *peer) send(s string) { _, _ = io.WriteString(p.Conn, s) }

// reset resets the connection, or the HTTP/2 stream.
func (p *peer) reset() {
	if p.abort != nil {
		p.abort()
		return
	}
	_ = p.tcp.SetLinger(0)
	_ = p.tcp.Close() // without close_notify of TLS
}

// hold waits until the client has disconnected.
func (p *peer) hold() { _, _ = io.Copy(io.Discard, p.Conn) }

// serve starts a server that reads the request of each connection, calls handle and closes the connection. It accepts
// clients with and without TLS, and stops at the end of the test. serve returns its URL.
func serve(t testing.TB, handle func(p *peer)) string {
	t.Helper()
	return serveTLS(t, sockets.ServerTLS(), handle)
}

// serveTLS is like serve, with a TLS configuration.
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

// respond returns a handler that sends a text. serve then closes the connection.
func respond(text string) func(p *peer) { return func(p *peer) { p.send(text) } }

// serveText starts a server that sends a text to each connection and then closes it.
func serveText(t testing.TB, text string) string { return serve(t, respond(text)) }

// serveVU returns a virtual user, and starts a server whose URL is the variable url of its scripts.
func serveVU(t testing.TB, handle func(p *peer)) *vu {
	t.Helper()
	v := newVU(t)
	v.set("url", serve(t, handle))
	return v
}

// A recorder is an observer that records its calls.
type recorder struct {
	mu    sync.Mutex
	lines []string
	last  Close     // the latest Close
	at    time.Time // the time of the latest call
}

// note records a call. The times of calls must not decrease.
func (r *recorder) note(at time.Time, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at.Before(r.at) {
		r.lines = append(r.lines, "TIME-DECREASES")
	}
	r.at = at
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

func (r *recorder) Connecting(at time.Time)                  { r.note(at, "connecting") }
func (r *recorder) Event(at time.Time, e *eventstream.Event) { r.note(at, "event:%s", e.Data) }

func (r *recorder) Opened(_ time.Time, response *sseclient.Response) {
	r.note(response.At, "%s", strings.TrimSuffix("opened:"+response.Coding(), ":"))
}

func (r *recorder) Closed(at time.Time, c Close) {
	suffix := ""
	if c.Retry >= 0 {
		suffix = "+retry"
	}
	r.note(at, "closed:%s%s", c.Reason, suffix)
	r.last = c
}

// Answered runs in the goroutine of the second request, so its time may precede the time of the latest event.
func (r *recorder) Answered(at time.Time, response *sseclient.Response) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at.IsZero() {
		r.lines = append(r.lines, "NO-TIME")
	}
	r.lines = append(r.lines, fmt.Sprintf("answered:%d", response.Status))
}

func (r *recorder) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.lines, " ")
}

// stuckServer returns an address at which clients can connect, but no server reads or responds.
func stuckServer(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String()
}

// observers defines the script function ledger(), which returns a new observer for a stream. observers returns the list
// of these observers.
func observers[T any](v *vu) *[]*T {
	all := new([]*T)
	v.set("ledger", func() testObserver {
		*all = append(*all, new(T))
		return testObserver{(*all)[len(*all)-1]}
	})
	return all
}

type eventTally struct{ atomic.Int64 }

func (c *eventTally) Event(time.Time, *eventstream.Event) { c.Add(1) }

// A sleeper is a recorder that delays the reader of all streams if the data of an event is a duration.
type sleeper struct{ recorder }

func (s *sleeper) Event(at time.Time, e *eventstream.Event) {
	s.recorder.Event(at, e)
	if d, err := time.ParseDuration(string(e.Data)); err == nil {
		time.Sleep(d)
	}
}

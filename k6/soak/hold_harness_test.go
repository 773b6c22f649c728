package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	"go.k6.io/k6/v2/js/modulestest"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/lib/netext"
	"go.k6.io/k6/v2/lib/types"
	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/ledger"
	"github.com/sse-soak/sse-soak/test/sockets"
)

// A noopService imitates the reference service, with an interval so long that a test receives only the first noop. A
// DELETE ends a stream.
type noopService struct {
	refuse    int              // status of the responses to DELETEs, which do not end their streams; 0: DELETEs succeed
	slow      time.Duration    // response time of a DELETE
	hangUp    bool             // a DELETE gets no response: its connection is closed
	onConnect func()           // nil: none
	numbers   map[string][]int // of the noops of each client, one per second; nil: only 1

	mu                      sync.Mutex
	streams                 map[string]chan struct{}
	connects                []string // the headers Authorization and Accept-Encoding of each GET
	deletes                 int
	openDeletes, maxDeletes int // concurrent DELETEs
}

func (s *noopService) serve(t *testing.T) string { return serve(t, s.handler()) }

func (s *noopService) handler() http.HandlerFunc {
	s.streams = map[string]chan struct{}{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /event/connect", s.connect)
	mux.HandleFunc("DELETE /event/forcedisconnect", s.disconnect)
	return mux.ServeHTTP
}

func (s *noopService) connect(w http.ResponseWriter, r *http.Request) {
	ended := make(chan struct{})
	s.mu.Lock()
	s.streams[r.URL.Query().Get("id")] = ended
	if s.onConnect != nil {
		s.onConnect()
	}
	s.connects = append(s.connects, r.Header.Get("Authorization")+r.Header.Get("Accept-Encoding"))
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	numbers := []int{1}
	if s.numbers != nil {
		numbers = s.numbers[r.URL.Query().Get("id")]
	}
	for i, n := range numbers {
		time.Sleep(time.Duration(min(i, 1)) * time.Second)
		fmt.Fprintf(w, "id: %d\ndata: 0\n\n", n)
		w.(http.Flusher).Flush() //nolint:forcetypeassert // a ResponseWriter of net/http is a Flusher
	}
	select {
	case <-ended:
	case <-r.Context().Done():
	}
}

func (s *noopService) disconnect(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("X-Server", "backend-1")
	s.deletes++
	s.openDeletes++
	s.maxDeletes = max(s.maxDeletes, s.openDeletes)
	s.mu.Unlock()
	time.Sleep(s.slow)
	s.mu.Lock()
	s.openDeletes--
	if s.hangUp {
		panic(http.ErrAbortHandler)
	}
	if s.refuse != 0 {
		w.WriteHeader(s.refuse)
		return
	}
	close(s.streams[r.URL.Query().Get("id")])
}

var processStart = time.Now()

// inBubble runs a test in a bubble of synctest. It advances the clock of the bubble past the start of the process,
// because the SSE client stores times relative to that start. Tests in a bubble are not parallel, because all streams
// of a process share the timer of the idle timeouts.
func inBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(processStart) + time.Hour)
		test(t)
	})
}

// serve starts a server in memory that stops at the end of the test, and returns its URL.
func serve(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	l := listen(t)
	var handlers sync.WaitGroup
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handlers.Add(1)
		defer handlers.Done()
		handle(w, r)
	})}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() {
		_ = server.Close()
		handlers.Wait()
	})
	return l.url()
}

// serveTCP is serve over TCP, for tests in which a client disconnects, vanishes or reads slowly.
func serveTCP(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(func() {
		server.CloseClientConnections() // a vanished client does not close its connection
		server.Close()
	})
	return server.URL
}

// A listener accepts connections in memory. Its address is its host, which belongs to no other listener.
type listener struct {
	host        string
	connections chan net.Conn
	closed      chan struct{}
	close       func()
}

var (
	listeners     sync.Map // by host
	listenerCount atomic.Int64
)

func listen(t *testing.T) *listener {
	t.Helper()
	l := &listener{host: fmt.Sprintf("service-%d.test", listenerCount.Add(1)), connections: make(chan net.Conn), closed: make(chan struct{})}
	l.close = sync.OnceFunc(func() { close(l.closed) })
	listeners.Store(l.host, l)
	t.Cleanup(func() { listeners.Delete(l.host) })
	return l
}

func (l *listener) url() string    { return "http://" + l.host }
func (l *listener) Addr() net.Addr { return &net.UnixAddr{Name: l.host} }

func (l *listener) Close() error {
	l.close()
	return nil
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.connections:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// A pipe is an end of net.Pipe whose Read returns the error of a closed socket.
type pipe struct{ net.Conn }

func (p pipe) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	if errors.Is(err, io.ErrClosedPipe) {
		err = net.ErrClosed
	}
	return n, err
}

// A memoryDialer connects to the listener of a host. A host without a listener refuses the connection.
type memoryDialer struct{}

func (memoryDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, _ := net.SplitHostPort(address)
	l, ok := listeners.Load(host)
	if !ok {
		return sockets.FailingDialer{Errno: syscall.ECONNREFUSED}.DialContext(ctx, network, address)
	}
	client, server := net.Pipe()
	select {
	case l.(*listener).connections <- server:
		return pipe{client}, nil
	case <-l.(*listener).closed:
		return nil, net.ErrClosed
	}
}

// A holder is a virtual user that calls hold.
type holder struct {
	*modulestest.Runtime
	r       *recorder
	samples chan metrics.SampleContainer
}

// holderOf runs the init context of a script and moves to the VU context.
func holderOf(t *testing.T, url, init string) holder {
	t.Helper()
	rt, r := newVU(t)
	r.telemetry.interval = time.Hour
	rt.VU.InitEnvField.BuiltinMetrics = rt.BuiltinMetrics
	js(t, rt, `var __ENV = {BACKEND_TOKEN: "x", SUBSCRIBE_TOKEN: "a-subscriber-key"}`)
	js(t, rt, init)
	js(t, rt, fmt.Sprintf(`plan({testid: "t", connections: 100, seconds: 3600, noopInterval: 60, runners: 1, connectionsPerVU: 100,
		backendUrl: %q, prefix: "d-", lateMs: 1000, reconnect: false}); var url = %q`, url, url))
	h := holder{rt, r, make(chan metrics.SampleContainer, 100_000)}
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	log := logrus.New()
	log.SetOutput(io.Discard)
	var dialer lib.DialContexter = memoryDialer{}
	if strings.Contains(url, "127.0.0.1") {
		dialer = netext.NewDialer(net.Dialer{}, netext.NewResolver(net.LookupIP, 0, types.DNSfirst, types.DNSpreferIPv4))
	}
	transport := &http.Transport{DialContext: dialer.DialContext}
	t.Cleanup(transport.CloseIdleConnections)
	rt.MoveToVUContext(&lib.State{
		Dialer: dialer, Transport: transport, Logger: log, CookieJar: jar, Samples: h.samples, BuiltinMetrics: rt.BuiltinMetrics,
		BufferPool: lib.NewBufferPool(), Options: lib.Options{SystemTags: &metrics.DefaultSystemTagSet},
		Tags: lib.NewVUStateTags(rt.VU.InitEnvField.Registry.RootTagSet()),
	})
	return h
}

const holdTen = `hold(null, {from: 0, to: 10, openFor: 2000, idleTimeout: 5000, endTimeout: 5, reconnect: false, prefix: "d-"})`

// run runs an iteration to its end, and reports whether the promise of the script was resolved.
func (h *holder) run(t *testing.T, script string) (resolved bool) {
	t.Helper()
	guard := time.AfterFunc(2*time.Minute, func() { panic("the iteration hangs: " + script) })
	defer guard.Stop()
	require.NoError(t, h.VU.Runtime().Set("done", func() { resolved = true }))
	err := h.EventLoop.Start(func() error {
		_, err := h.VU.Runtime().RunString("(" + script + ").then(done)")
		return err
	})
	if err != nil {
		h.CancelContext()
	}
	h.EventLoop.WaitOnRegistered()
	require.NoError(t, err)
	return resolved
}

// metricSums returns the sum and the number of the samples of a metric, by the value of a tag.
func (h *holder) metricSums(metric, tag string) map[string][2]float64 {
	out := map[string][2]float64{}
	for len(h.samples) > 0 {
		container := <-h.samples
		defer func() { h.samples <- container }()
		for _, s := range container.GetSamples() {
			if s.Metric.Name == metric {
				name, _ := s.Tags.Get(tag)
				sum := out[name]
				out[name] = [2]float64{sum[0] + s.Value, sum[1] + 1}
			}
		}
	}
	return out
}

func (h *holder) states() map[ledger.State]int {
	out := map[ledger.State]int{}
	for _, c := range shardOf(h.r).Connections {
		out[c.State]++
	}
	return out
}

func (r *recorder) openStreamCount() int {
	r.tally.mu.Lock()
	defer r.tally.mu.Unlock()
	return r.open
}

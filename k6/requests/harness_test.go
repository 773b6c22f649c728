package requests

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
	"go.k6.io/k6/v2/js/modulestest"
	"go.k6.io/k6/v2/lib"
	"go.k6.io/k6/v2/lib/netext"
	"go.k6.io/k6/v2/lib/types"
	"go.k6.io/k6/v2/metrics"

	"github.com/sse-soak/sse-soak/internal/proxy"
	"github.com/sse-soak/sse-soak/test/sockets"
)

// A vu is a virtual user whose scripts can use the module.
type vu struct {
	*modulestest.Runtime
	t       *testing.T
	state   *lib.State
	module  *module
	samples chan metrics.SampleContainer
	log     *logrus.Logger
}

func newVU(t *testing.T, change ...func(*lib.State)) *vu {
	t.Helper()
	rt := modulestest.NewRuntime(t)
	v := &vu{Runtime: rt, t: t, samples: make(chan metrics.SampleContainer, 10_000), log: logrus.New()}
	v.log.SetOutput(io.Discard)
	v.module = rootModule{}.NewModuleInstance(rt.VU).(*module)
	v.module.proxies = proxy.Chooser(direct)
	for name, value := range v.module.Exports().Named {
		require.NoError(t, rt.VU.Runtime().Set(name, value))
	}
	v.state = &lib.State{
		Dialer:         netext.NewDialer(net.Dialer{}, netext.NewResolver(net.LookupIP, 0, types.DNSfirst, types.DNSpreferIPv4)),
		Tags:           lib.NewVUStateTags(rt.VU.InitEnvField.Registry.RootTagSet()),
		BuiltinMetrics: rt.BuiltinMetrics, Samples: v.samples, Logger: v.log,
	}
	for _, c := range change {
		c(v.state)
	}
	rt.MoveToVUContext(v.state)
	return v
}

// A counts value is the result of a stage.
type counts struct{ Made, Failed, Dropped int64 }

// await runs a call of the module and returns the value of its promise.
func (v *vu) await(format string, args ...any) (c counts) {
	v.t.Helper()
	done := make(chan string, 1)
	require.NoError(v.t, v.VU.Runtime().Set("done", func(text string) { done <- text }))
	_, err := v.RunOnEventLoop(fmt.Sprintf("("+format+").then((c) => done(JSON.stringify(c)))", args...))
	require.NoError(v.t, err)
	require.NoError(v.t, json.Unmarshal([]byte(<-done), &c))
	return c
}

// lane returns a lane of a closed stage with one operation, and a function that makes a request and returns its code.
func (v *vu) lane(operation string, args ...any) (l *lane, request func() string) {
	v.t.Helper()
	options, err := v.VU.Runtime().RunString("({concurrency: 1, requests: 1, operations: [" + fmt.Sprintf(operation, args...) + "]})")
	require.NoError(v.t, err)
	s, err := v.module.parse("closed", options, v.state)
	require.NoError(v.t, err)
	s.ctx = v.VU.Context()
	l = s.newLane()
	v.t.Cleanup(l.hangUp)
	return l, func() string {
		x := l.do(s.operations[0], time.Now(), time.Now().Add(time.Minute))
		return x.code
	}
}

// awaitUnusable waits until the server has closed the idle connection or sent bytes on it. It also makes the lane check
// the connection before the next request.
func (l *lane) awaitUnusable(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		received, err := l.conn.PeekUnrequested()
		return len(received) > 0 || err != nil
	}, 10*time.Second, time.Millisecond)
	l.lastUse = time.Time{}
}

// A sum summarizes the samples of one metric, outcome and server.
type sum struct {
	n     int
	total float64
	max   float64
}

// sums summarizes the samples since the last call, by metric, outcome and server.
func (v *vu) sums() map[string]sum {
	out := map[string]sum{}
	for _, container := range metrics.GetBufferedSamples(v.samples) {
		for _, s := range container.GetSamples() {
			name := s.Metric.Name
			for _, tag := range []string{"code", "server"} {
				if value, ok := s.Tags.Get(tag); ok {
					name += " " + value
				}
			}
			previous := out[name]
			out[name] = sum{previous.n + 1, previous.total + s.Value, max(previous.max, s.Value)}
		}
	}
	return out
}

// codes counts the requests since the last call by outcome.
func (v *vu) codes() map[string]int {
	out := map[string]int{}
	for name, s := range v.sums() {
		var code string
		if n, _ := fmt.Sscanf(name, "request_duration %s", &code); n == 1 {
			out[code] += s.n
		}
	}
	return out
}

// closedURL has no listener. Another test might reuse a port that was just closed.
const closedURL = "http://127.0.0.1:1"

func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s
}

// serveRaw starts a server that calls handle with each connection. request reads a whole request, and returns false
// at the end of the connection.
func serveRaw(t *testing.T, handle func(conn net.Conn, request func() bool)) (url string) {
	t.Helper()
	return "http://" + sockets.Serve(t, func(conn net.Conn) {
		r := bufio.NewReader(conn)
		handle(conn, func() bool {
			req, err := http.ReadRequest(r)
			return err == nil && req.Body.Close() == nil
		})
	})
}

// serveBytes starts a server that sends the same bytes for each request.
func serveBytes(t *testing.T, response string) string {
	return serveRaw(t, func(conn net.Conn, request func() bool) {
		for request() {
			if _, err := conn.Write([]byte(response)); err != nil {
				return
			}
		}
	})
}

// serveTruncated starts a server that responds to one request per connection and closes the connection.
func serveTruncated(t *testing.T, response string) string {
	return serveRaw(t, func(conn net.Conn, request func() bool) {
		_ = request()
		_, _ = io.WriteString(conn, response)
	})
}

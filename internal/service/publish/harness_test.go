package publish

import (
	"bufio"
	"cmp"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/shard"
	"github.com/sse-soak/sse-soak/test/sockets"
)

// newService returns the description of a service with an API like nchan's. publish is the JSON of the field publish,
// or "" for the default. messageFields is JSON that is added to the field message.
func newService(t *testing.T, publish, messageFields string) *service.Service {
	t.Helper()
	s, err := service.Parse([]byte(`{"name":"test","connect":{"url":"{base}/sub/{topic}"},
		"message":{"seq":"json:$.seq","run":"json:$.run","sentAt":"json:$.t"` + messageFields + `},
		"publish":` + cmp.Or(publish, `{"url":"{base}/pub/{topic}","body":"{\"run\":\"{run}\",\"seq\":{seq},\"t\":{sentAt}}"}`) + `}`))
	require.NoError(t, err)
	return s
}

type receivedMessage struct {
	Run  string `json:"run"`
	Seq  int    `json:"seq"`
	Sent int64  `json:"t"`
	at   int64
}

// A hub is a service that records the messages that are published to it.
type hub struct {
	*httptest.Server
	mu     sync.Mutex
	topics map[string][]receivedMessage
	ended  chan struct{} // closed when the test ends
	// onMessage is called before the response to a message; it returns the status.
	onMessage func(topic string, seq int) int
}

func newHub(t *testing.T, onMessage func(topic string, seq int) int) *hub {
	t.Helper()
	h := &hub{topics: map[string][]receivedMessage{}, onMessage: onMessage, ended: make(chan struct{})}
	h.Server = httptest.NewServer(http.HandlerFunc(h.serve))
	t.Cleanup(h.Close)
	t.Cleanup(func() { close(h.ended) })
	return h
}

func (h *hub) serve(w http.ResponseWriter, r *http.Request) {
	m := receivedMessage{at: time.Now().UnixMicro()}
	topic := r.URL.Path[len("/pub/"):]
	body, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(body, &m)
	h.mu.Lock()
	h.topics[topic] = append(h.topics[topic], m)
	h.mu.Unlock()
	status := http.StatusOK
	if h.onMessage != nil {
		status = h.onMessage(topic, m.Seq)
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, "answer of the hub\nsecond line")
}

func (h *hub) numbers(topic string) (out []int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range h.topics[topic] {
		out = append(out, m.Seq)
	}
	return out
}

// A peak counts concurrent calls.
type peak struct {
	mu            sync.Mutex
	current, most int // most: the highest value of current
}

// pass counts one call that lasts for wait.
func (p *peak) pass(wait time.Duration) {
	p.mu.Lock()
	p.current++
	p.most = max(p.most, p.current)
	p.mu.Unlock()
	time.Sleep(wait)
	p.mu.Lock()
	p.current--
	p.mu.Unlock()
}

func numbersUpTo(n int) (out []int) {
	for i := range n {
		out = append(out, i+1)
	}
	return out
}

func newConfig(t *testing.T, base string) Config {
	t.Helper()
	return Config{
		Service: newService(t, "", ""), Base: base, Run: fixedMarker("r1"), Topics: []string{"a", "b"}, Rate: 200, Start: time.Now(), For: time.Second / 2,
		Timeout: 2 * time.Minute, // with the race detector, a response may take more than 10 s on a busy machine
	}
}

func start(t *testing.T, c Config) *Publisher {
	t.Helper()
	p, err := Start(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { await(t, p.Done()) }) // the context of a test ends before its cleanups
	return p
}

func await(t *testing.T, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(5 * time.Minute):
		require.Fail(t, "the publisher did not end within 5 minutes")
	}
}

// publishAll runs a publisher to its end, and returns its results.
func publishAll(t *testing.T, c Config) *shard.Published {
	t.Helper()
	p := start(t, c)
	await(t, p.Done())
	out := p.Published()
	require.True(t, out.Finished)
	return out
}

func serve(t *testing.T, serve func(c net.Conn, in *bufio.Reader)) (base string) {
	t.Helper()
	return "http://" + sockets.Serve(t, func(c net.Conn) { serve(c, bufio.NewReader(c)) })
}

// serveCounting starts a server that sends the same bytes as each response and counts connections. With keep, it
// answers all requests of a connection, otherwise only the first.
func serveCounting(t *testing.T, answer string, keep bool) (base string, dials *atomic.Int32) {
	t.Helper()
	dials = new(atomic.Int32)
	return serve(t, func(c net.Conn, in *bufio.Reader) {
		dials.Add(1)
		for next := true; next; next = keep {
			if _, _, err := request(in); err != nil {
				return
			}
			_, _ = io.WriteString(c, answer)
		}
	}), dials
}

func request(in *bufio.Reader) (r *http.Request, body []byte, err error) {
	if r, err = http.ReadRequest(in); err != nil {
		return nil, nil, err
	}
	body, err = io.ReadAll(r.Body)
	return r, body, err
}

func fixedMarker(run string) func(int) string { return func(int) string { return run } }

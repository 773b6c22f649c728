// Package hub is a small SSE service for tests. Its fields select the behaviour of different services.
package hub

import (
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/test/bufconn"
)

// A Hub serves GET /sub/TOPIC, an event stream, and POST /pub/TOPIC, whose body is a message of it. With RequireJoin
// a stream carries no messages before POST /join with {"client":…,"topic":…}.
type Hub struct {
	Preamble          string        // start of each stream, as text on the wire
	Heartbeat         string        // as it is sent, such as ":\n" or "event: ping\n\n"
	HeartbeatInterval time.Duration // between two heartbeats
	WhenSilent        bool          // so long after the last message, not after the last heartbeat alone

	ID    func(n int) string          // of the nth message of the hub; nil: none
	Event string                      // of messages
	Wrap  func(payload string) string // the data of a message; nil: the published one

	Generate         func(stream, n int) string // each stream's own blocks as text on the wire: its nth, from 1
	GenerateInterval time.Duration

	History   bool                                  // Last-Event-ID replays the messages since then
	Replay    func(all []string, from int) []string // with History: in place of all[from:], of a topic's messages as they are sent
	Newcomers bool                                  // and a stream without one gets all
	GapEvent  string                                // as it is sent, where Last-Event-ID is not known
	GapHeader string                                // the response header Last-Event-ID, if the id is unknown

	Lifetime    time.Duration                                      // after which the hub ends a stream
	Gzip        time.Duration                                      // delay between compression and flush; 0: no compression
	Token       string                                             // that both requests need, as Authorization: Bearer
	PubToken    string                                             // that publishing needs
	Allow       func(r *http.Request) (until time.Time, err error) // of a stream: when the hub ends it, zero for never; or why it is refused
	OK          int                                                // the status of publishing; 0: 200
	Lose        func(topic string, payload string) bool
	RequireJoin bool

	LateHeaders bool // the service sends the headers of a stream with its first event

	mu          sync.Mutex
	streamCount int
	openCount   int
	peak        int
	n           int
	streams     map[*client]bool
	history     []message
}

type message struct {
	n        int
	topic    string
	id, text string
}

type client struct {
	topic    string
	messages chan string
}

// Start serves the hub until the test ends.
func (h *Hub) Start(t testing.TB) *httptest.Server { return h.start(t, httptest.NewUnstartedServer(h)) }

// StartInMemory starts the hub on a network within this process; dial connects to it. In a bubble of testing/synctest
// no time passes there, however busy the machine is.
func (h *Hub) StartInMemory(t testing.TB) (server *httptest.Server, dial func(ctx context.Context) (net.Conn, error)) {
	l := bufconn.Listen(1 << 20)
	return h.start(t, &httptest.Server{Listener: l, Config: &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}}), l.DialContext
}

func (h *Hub) start(t testing.TB, server *httptest.Server) *httptest.Server {
	h.streams = map[*client]bool{}
	server.Start()
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server
}

// StreamCounts returns the number of streams opened so far, and the largest number open at a time.
func (h *Hub) StreamCounts() (all, peak int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.streamCount, h.peak
}

func (h *Hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind, topic, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case kind == "sub" && r.Method == http.MethodGet:
		if h.Token != "" && token != h.Token {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		var until time.Time
		if h.Allow != nil {
			var err error
			if until, err = h.Allow(r); err != nil {
				http.Error(w, err.Error(), http.StatusUnauthorized)
				return
			}
		}
		h.stream(w, r, topic, until)
	case kind == "pub":
		if h.PubToken != "" && token != h.PubToken {
			http.Error(w, "may you?", http.StatusUnauthorized)
			return
		}
		body, _ := io.ReadAll(r.Body)
		h.Publish(topic, string(body))
		w.WriteHeader(cmp.Or(h.OK, http.StatusOK))
	case kind == "join" && h.RequireJoin:
		h.join(w, r)
	default:
		http.NotFound(w, r)
	}
}

// Publish sends a message to all streams of a topic.
func (h *Hub) Publish(topic, payload string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.n++
	m := message{n: h.n, topic: topic}
	if h.Event != "" {
		m.text = "event: " + h.Event + "\n"
	}
	if h.ID != nil {
		m.id = h.ID(h.n)
		m.text += "id: " + m.id + "\n"
	}
	if h.Lose != nil && h.Lose(topic, payload) {
		return
	}
	if h.Wrap != nil {
		payload = h.Wrap(payload)
	}
	m.text += "data: " + strings.ReplaceAll(payload, "\n", "\ndata: ") + "\n\n"
	h.history = append(h.history, m)
	h.send(topic, m.text)
}

// Send sends a text to all streams of a topic as it is. An empty text ends them.
func (h *Hub) Send(topic, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.send(topic, text)
}

func (h *Hub) send(topic, text string) {
	for c := range h.streams {
		if c.topic == topic {
			c.messages <- text
		}
	}
}

func (h *Hub) join(w http.ResponseWriter, r *http.Request) {
	var form struct{ Client, Topic string }
	_ = json.NewDecoder(r.Body).Decode(&form)
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.streams {
		if fmt.Sprintf("%p", c) == form.Client {
			c.topic = form.Topic
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	http.NotFound(w, r)
}

// enter registers a stream, and returns the messages that it has missed.
func (h *Hub) enter(c *client, w http.ResponseWriter, r *http.Request) (missed string, number int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.streamCount++
	h.openCount++
	h.peak = max(h.peak, h.openCount)
	h.streams[c] = true
	last, known := r.Header.Get("Last-Event-ID"), false
	var all []string
	from := 0
	for _, m := range h.history {
		if m.topic != c.topic {
			continue
		}
		all = append(all, m.text)
		if last != "" && m.id == last {
			known, from = true, len(all)
		}
	}
	if h.History && known || h.Newcomers && last == "" {
		replay := h.Replay
		if replay == nil || last == "" {
			replay = func(all []string, from int) []string { return all[from:] }
		}
		missed = strings.Join(replay(all, from), "")
	}
	if last != "" && !(h.History && known) {
		missed += h.GapEvent
		if h.GapHeader != "" {
			w.Header().Set("Last-Event-ID", h.GapHeader)
		}
	}
	return missed, h.streamCount - 1
}

func (h *Hub) leave(c *client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.openCount--
	delete(h.streams, c)
}

// ticks returns a ticker and its channel, or no channel for 0.
func ticks(d time.Duration) (*time.Ticker, <-chan time.Time) {
	if d <= 0 {
		return nil, nil
	}
	t := time.NewTicker(d)
	return t, t.C
}

func (h *Hub) stream(w http.ResponseWriter, r *http.Request, topic string, until time.Time) {
	c := &client{topic: topic, messages: make(chan string, 1024)}
	if h.RequireJoin {
		c.topic = ""
	}
	missed, number := h.enter(c, w, r)
	defer h.leave(c)
	send, flush := h.writer(w, r)
	w.Header().Set("Content-Type", "text/event-stream")
	send(h.Preamble)
	if h.RequireJoin {
		send(fmt.Sprintf("event: HELLO\ndata: {\"client\":\"%p\"}\n\n", c))
	}
	send(missed)
	flush()
	if !h.LateHeaders {
		w.(http.Flusher).Flush()
	}
	ticker, heartbeats := ticks(h.HeartbeatInterval)
	_, generated := ticks(h.GenerateInterval)
	_, end := ticks(h.Lifetime)
	if !until.IsZero() {
		_, end = ticks(max(time.Until(until), time.Millisecond))
	}
	_, hold := ticks(h.Gzip)
	for n := 1; ; {
		select {
		case text := <-c.messages:
			if text == "" {
				return
			}
			send(text)
			if h.WhenSilent && ticker != nil {
				ticker.Reset(h.HeartbeatInterval)
			}
		case <-heartbeats:
			send(h.Heartbeat)
		case <-generated:
			send(h.Generate(number, n))
			n++
		case <-hold:
			flush()
		case <-end:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// writer writes to a stream: at once, or compressed and when flush is called.
func (h *Hub) writer(w http.ResponseWriter, r *http.Request) (send func(string), flush func()) {
	if h.Gzip == 0 || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		return func(text string) {
			if text == "" {
				return
			}
			_, _ = io.WriteString(w, text)
			w.(http.Flusher).Flush()
		}, func() {}
	}
	w.Header().Set("Content-Encoding", "gzip")
	z := gzip.NewWriter(w)
	return func(text string) { _, _ = io.WriteString(z, text) }, func() {
		_ = z.Flush()
		w.(http.Flusher).Flush()
	}
}

// DecimalID returns the ids 1, 2, 3 and so on.
func DecimalID(n int) string { return strconv.Itoa(n) }

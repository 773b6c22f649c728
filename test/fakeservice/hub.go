package fakeservice

import (
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A Hub is a service with topics. GET /sub/TOPIC opens an event stream, and POST /pub/TOPIC publishes its body as a
// message. With RequireJoin, a stream carries no messages before POST /join with {"client":…,"topic":…}.
type Hub struct {
	Preamble          string        // text on the wire at the start of each stream
	Heartbeat         string        // text on the wire, such as ":\n" or "event: ping\n\n"
	HeartbeatInterval time.Duration // time between two heartbeats; 0: no heartbeats
	WhenSilent        bool          // a message also restarts the heartbeat interval

	ID    func(n int) string          // id of the nth message of the hub; nil: messages have no id
	Event string                      // event name of messages
	Wrap  func(payload string) string // data of a message; nil: the published text

	Generate         func(stream, n int) string // block n (from 1) of a stream (from 0), as text on the wire
	GenerateInterval time.Duration              // time between two of these blocks; 0: no blocks

	History bool // a stream with Last-Event-ID first receives the messages after that id
	// Replay returns the messages to replay after a Last-Event-ID, as text on the wire. It requires History. The client
	// missed the messages all[from:] of the topic. If Replay is nil, the hub replays exactly these messages.
	Replay    func(r *http.Request, all []string, from int) []string
	Newcomers bool   // a stream without Last-Event-ID first receives all earlier messages
	GapEvent  string // text on the wire if the request has a Last-Event-ID, and it is unknown or History is false
	GapHeader string // response header Last-Event-ID in these cases; "": no header

	Lifetime time.Duration // time after which the hub ends a stream; 0: no limit
	Gzip     time.Duration // time between two flushes of a compressed stream; 0: no compression
	Token    string        // bearer token that streams need; "": none
	PubToken string        // bearer token that publishing needs; "": none
	// Allow returns the time at which the hub ends a stream (zero: after Lifetime), or an error to refuse the stream.
	// If Allow is nil, the hub refuses no stream.
	Allow       func(r *http.Request) (until time.Time, err error)
	OK          int                                     // status code of a successful publish; 0: 200
	Lose        func(topic string, payload string) bool // reports whether the hub loses a message; nil: it loses none
	RequireJoin bool                                    // a stream must join a topic with a second request

	LateHeaders bool // the hub sends the headers of a stream only with its first data

	URL string // set by Start

	Server
	streamCount  int // streams opened so far
	peak         int // highest number of streams open at the same time
	messageCount int
	streams      map[*hubStream]bool
	history      []hubMessage
}

type hubMessage struct{ topic, id, text string }

type hubStream struct {
	*Stream
	topic       string
	gzip        *gzip.Writer // nil: the stream is not compressed
	heartbeatAt time.Time    // time of the last heartbeat or, with WhenSilent, of a later message
}

// Start starts the hub, and returns it. The hub stops when the test ends.
func (h *Hub) Start(t interface {
	Cleanup(do func())
	Fatal(args ...any)
},
) *Hub {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.Serve(&http.Server{Handler: h, ReadHeaderTimeout: time.Minute}, l)
	t.Cleanup(h.Stop)
	h.URL = "http://" + l.Addr().String()
	return h
}

// StreamCounts returns the number of streams opened so far, and the highest number of streams open at the same time.
func (h *Hub) StreamCounts() (all, peak int) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
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
			http.Error(w, "no permission to publish", http.StatusUnauthorized)
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

// Publish sends a message to all streams of a topic and adds it to the history, unless Lose selects the message.
func (h *Hub) Publish(topic, payload string) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	h.messageCount++
	m := hubMessage{topic: topic}
	if h.Event != "" {
		m.text = "event: " + h.Event + "\n"
	}
	if h.ID != nil {
		m.id = h.ID(h.messageCount)
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

// Send sends text unchanged to all streams of a topic. An empty text ends the streams.
func (h *Hub) Send(topic, text string) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	h.send(topic, text)
}

func (h *Hub) send(topic, text string) {
	for s := range h.streams {
		if s.topic == topic {
			s.Queue(time.Now(), true, func(time.Time) error {
				if text == "" {
					return ErrOver
				}
				if h.WhenSilent {
					s.heartbeatAt = time.Now()
				}
				return s.write(text)
			})
		}
	}
}

func (h *Hub) join(w http.ResponseWriter, r *http.Request) {
	var form struct{ Client, Topic string }
	_ = json.NewDecoder(r.Body).Decode(&form)
	h.Mu.Lock()
	defer h.Mu.Unlock()
	for s := range h.streams {
		if fmt.Sprintf("%p", s) == form.Client {
			s.topic = form.Topic
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	http.NotFound(w, r)
}

// register adds a stream. It returns the messages to replay or GapEvent, and the number of the stream, from 0.
func (h *Hub) register(s *hubStream, r *http.Request) (missed string, number int) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	h.streamCount++
	if h.streams == nil {
		h.streams = map[*hubStream]bool{}
	}
	h.streams[s] = true
	h.peak = max(h.peak, len(h.streams))
	last, known := r.Header.Get("Last-Event-ID"), false
	var all []string
	from := 0
	for _, m := range h.history {
		if m.topic != s.topic {
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
			replay = func(_ *http.Request, all []string, from int) []string { return all[from:] }
		}
		missed = strings.Join(replay(r, all, from), "")
	}
	if last != "" && !(h.History && known) {
		missed += h.GapEvent
		if h.GapHeader != "" {
			s.W.Header().Set("Last-Event-ID", h.GapHeader)
		}
	}
	return missed, h.streamCount - 1
}

func (h *Hub) remove(s *hubStream) {
	h.Mu.Lock()
	defer h.Mu.Unlock()
	delete(h.streams, s)
}

func (h *Hub) stream(w http.ResponseWriter, r *http.Request, topic string, until time.Time) {
	if !h.AddHandler() {
		return
	}
	defer h.Handlers.Done()
	s := &hubStream{Stream: h.NewStream(Format{}, w, r), topic: topic, heartbeatAt: time.Now()}
	if s.EndAt = until; h.Lifetime > 0 && until.IsZero() {
		s.EndAt = time.Now().Add(h.Lifetime)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if h.Gzip > 0 && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		s.gzip = gzip.NewWriter(w)
		s.repeat(h.Gzip, s.flush)
	}
	first := h.Preamble
	if h.RequireJoin {
		s.topic = ""
		first += fmt.Sprintf("event: HELLO\ndata: {\"client\":\"%p\"}\n\n", s)
	}
	missed, number := h.register(s, r)
	defer h.remove(s)
	_ = s.write(first + missed)
	if !h.LateHeaders {
		_ = s.flush()
	}
	if h.HeartbeatInterval > 0 {
		s.Repeat(func() time.Duration { return h.HeartbeatInterval - time.Since(s.heartbeatAt) }, func() error {
			if time.Since(s.heartbeatAt) < h.HeartbeatInterval {
				return nil
			}
			s.heartbeatAt = time.Now()
			return s.write(h.Heartbeat)
		})
	}
	n := 0
	s.repeat(h.GenerateInterval, func() error {
		n++
		return s.write(h.Generate(number, n))
	})
	s.Run()
}

// repeat calls write once per interval, or never if the interval is 0.
func (s *hubStream) repeat(interval time.Duration, write func() error) {
	if interval > 0 {
		s.Repeat(func() time.Duration { return interval }, write)
	}
}

// write writes text unchanged. Compressed text is sent by flush.
func (s *hubStream) write(text string) error {
	switch {
	case text == "":
		return nil
	case s.gzip == nil:
		return s.send(text)
	}
	_, err := io.WriteString(s.gzip, text)
	return err
}

func (s *hubStream) flush() error {
	if s.gzip != nil {
		if err := s.gzip.Flush(); err != nil {
			return err
		}
	}
	return s.conn.Flush()
}

// DecimalID returns n as the id of message n.
func DecimalID(n int) string { return strconv.Itoa(n) }

package live

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"time"

	"github.com/sse-soak/sse-soak/internal/format"
	"github.com/sse-soak/sse-soak/internal/report/html"
)

const (
	// queue is how many events a viewer may be behind before it is cut off.
	queue = 16
	// maxKey is the length of a viewer's key, which is kept for the whole run. Keys of the page have at most 13 characters.
	maxKey = 100
	// writeWithin is how long one write may take: a browser that sleeps holds nothing here.
	writeWithin = 10 * time.Second
)

// A viewer is one stream of a page that is open.
type viewer struct {
	key    string // of the page: the same after it was cut off
	events chan event
}

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.servePage)
	mux.HandleFunc("GET /events", s.serveEvents)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer") // the token is in the URL
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		if r.URL.Path == "/favicon.ico" { // which browsers ask for by themselves, and the report is shown without
			w.WriteHeader(http.StatusNoContent)
			return
		}
		if fromAnotherSite(r) {
			http.Error(w, "requests from pages of other sites are refused; open the address in a browser tab", http.StatusForbidden)
			return
		}
		if !s.authorized(r) {
			http.Error(w, "this page is shown to whom soak gave its whole address, with the token in it, or on this machine by the address of it", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func (s *Server) servePage(w http.ResponseWriter, r *http.Request) {
	content, err := s.page()
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if _, err := w.Write(content); err == nil && r.Method == http.MethodGet {
		s.delivered()
	}
}

// delivered notes that somebody has the report. A page that is loaded again does not say which one it was: whoever was
// seen last is taken to be it.
func (s *Server) delivered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.report == nil {
		return
	}
	var last string
	for key, at := range s.seen {
		if !s.took[key] && (last == "" || at.After(s.seen[last])) {
			last = key
		}
	}
	s.took[last] = true
}

func (s *Server) serveEvents(w http.ResponseWriter, r *http.Request) {
	key := cmp.Or(r.URL.Query().Get("viewer"), r.RemoteAddr)
	if len(key) > maxKey {
		http.Error(w, fmt.Sprintf("viewer must have at most %d characters, got %d", maxKey, len(key)), http.StatusBadRequest)
		return
	}
	id := cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("id"))
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	send := func(text []byte) error {
		if err := control.SetWriteDeadline(time.Now().Add(writeWithin)); err != nil {
			return err
		}
		if _, err := w.Write(text); err != nil { //nolint:gosec // an event stream: no browser takes it for a page
			return err
		}
		return control.Flush()
	}
	v, missed, ok := s.subscribe(key, id)
	if !ok {
		http.Error(w, fmt.Sprintf("%d pages of this run are open already: close one", mostViewers), http.StatusServiceUnavailable)
		return
	}
	defer s.leave(v)
	if send([]byte("retry: 1000\n\n")) != nil { // the headers go with it: nothing may be new for a while
		return
	}
	for _, e := range missed {
		if send(e.encode()) != nil {
			return
		}
	}
	for {
		select {
		case <-r.Context().Done():
			return
		case e, open := <-v.events:
			if !open {
				if s.ended() {
					_ = send((&event{name: "report", data: []byte("{}")}).encode())
				}
				return
			}
			if send(e.encode()) != nil {
				return
			}
		}
	}
}

// encode returns the event as the stream has it. Its data is JSON without line breaks: an escaped character is the same
// string.
func (e *event) encode() []byte {
	var b bytes.Buffer
	if e.id != "" {
		fmt.Fprintf(&b, "id: %s\n", e.id)
	}
	fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", e.name, format.Escape(string(e.data)))
	return b.Bytes()
}

// subscribe adds a viewer, and returns what it has missed: the events after the one of its id, or a snapshot.
func (s *Server) subscribe(key, id string) (v *viewer, missed []event, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.viewers) >= mostViewers {
		return nil, nil, false
	}
	v = &viewer{key: key, events: make(chan event, queue)}
	s.see(key)
	if s.over {
		close(v.events)
		return v, nil, true
	}
	s.wanted = time.Now()
	if missed, ok = s.log.since(id); !ok {
		l, err := s.advance(true)
		if err != nil {
			return nil, nil, false
		}
		snapshot, err := html.Snapshot(l)
		if err != nil {
			return nil, nil, false
		}
		missed = []event{{id: s.log.last(), name: "snapshot", data: snapshot}}
	}
	s.viewers[v] = struct{}{}
	return v, missed, true
}

func (s *Server) leave(v *viewer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(v)
}

func (s *Server) ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.report != nil
}

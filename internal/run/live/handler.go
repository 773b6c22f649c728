package live

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"time"
)

const (
	// maxKey is the maximum length of a viewer's key in bytes. It limits the memory, because the server stores the keys.
	// The page sends about 12 bytes.
	maxKey = 100
	// writeTimeout limits one write, so that a suspended browser does not block its handler.
	writeTimeout = 10 * time.Second
)

// handler returns the handler of the page and of its events. It rejects requests from other sites, and unauthorized
// requests.
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
		if r.URL.Path == "/favicon.ico" { // browsers request it
			w.WriteHeader(http.StatusNoContent)
			return
		}
		if isCrossSite(r) {
			http.Error(w, "requests from pages of other sites are rejected; open the address in a browser tab", http.StatusForbidden)
			return
		}
		if !s.isAuthorized(r) {
			remedy := "open the address that soak printed, on this machine"
			if s.token != "" {
				remedy = "open the complete address that soak printed, with its token"
			}
			http.Error(w, remedy, http.StatusForbidden)
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
		s.recordDelivery()
	}
}

// recordDelivery records that a viewer has loaded the report. A reload of the page has no key, so it counts for the
// most recent viewer without the report.
func (s *Server) recordDelivery() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.report == nil {
		return
	}
	var last string
	for key, at := range s.pendingViewers {
		if at.After(s.pendingViewers[last]) { // the time of the key "" is zero
			last = key
		}
	}
	delete(s.pendingViewers, last)
}

// serveEvents sends an event stream with the changes of the page, and with an event about the report at the end.
func (s *Server) serveEvents(w http.ResponseWriter, r *http.Request) {
	key := cmp.Or(r.URL.Query().Get("viewer"), r.RemoteAddr)
	if len(key) > maxKey {
		http.Error(w, fmt.Sprintf("viewer must have at most %d bytes, got %d", maxKey, len(key)), http.StatusBadRequest)
		return
	}
	id := cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("id"))
	if !s.addViewer(key) {
		http.Error(w, fmt.Sprintf("%d pages of this run are already open; close one", maxViewers), http.StatusServiceUnavailable)
		return
	}
	defer s.removeViewer(key)
	w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(w)
	text := []byte("retry: 1000\n\n") // sends the headers too
	for {
		if len(text) > 0 {
			if control.SetWriteDeadline(time.Now().Add(writeTimeout)) != nil {
				return
			}
			if _, err := w.Write(text); err != nil || control.Flush() != nil { // #nosec G705 -- an event stream: no browser interprets it as a page
				return
			}
		}
		event, next, news, ended := s.nextEvent(id)
		if ended {
			return
		}
		if text, id = event, next; len(text) > 0 {
			continue
		}
		select {
		case <-r.Context().Done():
			return
		case <-s.done:
			return
		case <-news:
		}
	}
}

// addViewer counts a new viewer, and makes the first page if none exists. It returns false if there are too many
// viewers. After many viewers, it forgets those that opened or left the page more than viewerGrace ago.
func (s *Server) addViewer(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.viewers >= maxViewers {
		return false
	}
	s.viewers++
	s.lastView = time.Now()
	s.pendingViewers[key] = s.lastView
	if len(s.pendingViewers) > 10*maxViewers {
		maps.DeleteFunc(s.pendingViewers, func(_ string, at time.Time) bool { return time.Since(at) > viewerGrace })
	}
	if len(s.parts) == 0 && !s.ended {
		_, _ = s.update()
	}
	return true
}

func (s *Server) removeViewer(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.viewers--
	if _, ok := s.pendingViewers[key]; ok { // false if the viewer has loaded the report, or was forgotten
		s.pendingViewers[key] = time.Now()
	}
}

const finalID = "report"

// nextEvent returns the event after the event with the given id, and the id of that next event. The event is nil if
// it has not occurred yet. news is closed at the next event. ended reports whether no event will follow.
func (s *Server) nextEvent(id string) (event []byte, next string, news <-chan struct{}, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.report != nil && id != finalID:
		return []byte("event: report\ndata: {}\n\n"), finalID, nil, false
	case s.ended:
		return nil, id, nil, true
	}
	return s.changesSince(id), s.id(), s.news, false
}

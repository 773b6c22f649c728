package sse

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// A pocketBase is a fake PocketBase. Its first event contains the client ID, with which the client subscribes in a
// second request.
type pocketBase struct {
	// second responds to the nth second request. If second is nil or returns false, the pocketBase responds.
	second func(w http.ResponseWriter, r *http.Request, n int) bool
	mute   int           // number of streams, from the first one on, that get no first event
	retry  int           // reconnection time in ms; 0 means 1; a long time prevents a second stream
	end    chan struct{} // each value ends one stream

	mu      sync.Mutex
	clients map[string]http.ResponseWriter
	streams int
	log     []string // the second requests
}

func newPocketBase() *pocketBase {
	return &pocketBase{clients: map[string]http.ResponseWriter{}, end: make(chan struct{})}
}

func (b *pocketBase) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		b.stream(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	b.mu.Lock()
	b.log = append(b.log, fmt.Sprintf("%s %s %s", r.Method, r.RequestURI, body))
	n := len(b.log)
	b.mu.Unlock()
	if b.second != nil && b.second(w, r, n) {
		return
	}
	var form struct{ ClientID string }
	_ = json.Unmarshal(body, &form)
	b.mu.Lock()
	defer b.mu.Unlock()
	to := b.clients[form.ClientID]
	if to == nil {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"title":"Missing or invalid client id."}`)
		return
	}
	_, _ = io.WriteString(to, "id:"+form.ClientID+"\nevent:notes\ndata:1\n\n")
	to.(http.Flusher).Flush()
	w.WriteHeader(http.StatusNoContent)
}

func (b *pocketBase) stream(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	b.streams++
	id := fmt.Sprintf("c\"%d", b.streams)
	b.clients[id] = w
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = fmt.Fprintf(w, ":\nretry: %d\n\n", max(b.retry, 1))
	if b.streams > b.mute {
		_, _ = fmt.Fprintf(w, "id:%s\nevent:PB_CONNECT\ndata:{}\n\n", id)
	}
	w.(http.Flusher).Flush()
	b.mu.Unlock()
	select {
	case <-r.Context().Done():
	case <-b.end:
	}
	b.mu.Lock()
	delete(b.clients, id)
	b.mu.Unlock()
}

func (b *pocketBase) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.log, "; ")
}

// serve starts the server and returns the URL of its streams.
func (b *pocketBase) serve(v *vu) string { return v.serveHTTP(b.ServeHTTP) + "/api/realtime" }

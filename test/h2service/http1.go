package h2service

import (
	"io"
	"net/http"
)

// http1Head begins a stream over HTTP/1.1.
const http1Head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"

// connect takes a connection over from net/http, for the one stream that it carries.
func (s *Service) connect(w http.ResponseWriter, r *http.Request) {
	id := idOf(r)
	if id == "" {
		http.Error(w, "the parameter id is missing or wrong", http.StatusBadRequest)
		return
	}
	c := s.newConnection(nil)
	st, err := s.enter(id, r.Header.Get("Last-Event-ID") != "", c, 0)
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	if c.conn, _, err = http.NewResponseController(w).Hijack(); err != nil {
		s.leave(st, "client")
		return
	}
	c.begin()
	if c.send([]byte(http1Head)) == nil {
		c.add(st)
		_, _ = io.Copy(io.Discard, c.conn) // until the client leaves, or the stream has ended
	}
	c.close()
	s.leave(st, "client")
}

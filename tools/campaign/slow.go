package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// What a service does with a broadcast for a client that does not read.
const (
	slowCut  = "cut"  // the client
	slowDrop = "drop" // the message
	slowKeep = "keep" // without a bound
	slowWait = "wait" // and so does whoever publishes
	slowLose = "lose" // one message, of a client that reads; it cuts the others
)

const (
	fillerKB  = 60 // the size of a broadcast
	usualRoom = 8  // so many may wait for a client
)

// slowly is a service with clients that do not read, of which it does so.
func slowly(does string, outcomes []verdict.Outcome, reason string, args ...string) prepare {
	return func(r *rand.Rand, sc *scenario) {
		streams("slow", strike{}, outcomes)(r, sc)
		sc.Service.Nginx, sc.Service.Slow, sc.want.Reason = false, does, reason
		sc.Args = append([]string{
			"--prefix", sc.Plan.Prefix, "--connections", "20", "--slow-percent", "20", "--seconds", "22", "--after-seconds", "3", "--message-rate", "12", "--max-held-late", "-1",
			"--gauge", "campaign_kept_bytes",
		}, args...)
	}
}

// enter gives a stream the room for broadcasts that wait for it.
func (s *service) enter(st *noopStream) {
	room := usualRoom
	if s.Slow == slowKeep {
		room = 1 << 12
	}
	st.inbox, st.cut = make(chan string, room), make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inboxes[st] = true
}

func (s *service) leave(st *noopStream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.inboxes, st)
}

// kept is how many bytes wait for clients.
func (s *service) kept() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for st := range s.inboxes {
		n += len(st.inbox) * fillerKB << 10
	}
	return n
}

// broadcast sends an event to all streams.
func (s *service) broadcast(w http.ResponseWriter, r *http.Request) {
	payload, err := io.ReadAll(r.Body)
	if s.Slow == "" || err != nil {
		http.NotFound(w, r)
		return
	}
	text := "event: " + r.URL.Query().Get("event") + s.Lines + "data: " + string(payload) + s.Lines + s.Lines
	loses := s.Slow == slowLose && strings.Contains(string(payload[:min(40, len(payload))]), " 5 ")
	s.mu.Lock()
	all := make([]*noopStream, 0, len(s.inboxes))
	for st := range s.inboxes {
		all = append(all, st)
	}
	s.mu.Unlock()
	for _, st := range all {
		if loses && strings.HasSuffix(st.device.id, "-1") {
			continue
		}
		select {
		case st.inbox <- text:
		default:
			s.full(r, st, text)
		}
	}
	fmt.Fprintln(w, len(all))
}

// full does what the service does where no more may wait for a client.
func (s *service) full(r *http.Request, st *noopStream, text string) {
	switch s.Slow {
	case slowWait:
		select {
		case st.inbox <- text:
		case <-st.gone:
		case <-r.Context().Done():
		}
	case slowCut, slowLose:
		s.leave(st)
		close(st.cut)
		_ = st.conn.SetWriteDeadline(time.Now())
	}
}

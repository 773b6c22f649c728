//go:build e2e

package e2e

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sse-soak/sse-soak/internal/verdict"
)

// A foreign speaks the bare protocol and nothing else: no ids, no timestamps, no ledger. Its
// fault, if it has one, hits the device f-3 at its fourth noop.
type foreign struct {
	interval time.Duration
	fault    string
	say      func(id string, n int) string // what the nth noop of a stream is on the wire; nil: as it should be
	mu       sync.Mutex
	streams  map[string]chan struct{}

	copies    func(id string, broadcast int) int // of a broadcast to that stream; nil: one
	broadcast int
	inboxes   map[string]chan string
	room      int // broadcasts that wait for a stream before the next one waits for it, too; 0: 16
}

func (f *foreign) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("id")
	switch r.Method + " " + r.URL.Path {
	case "GET /event/connect":
		f.connect(w, r, id)
	case "DELETE /event/forcedisconnect":
		f.mu.Lock()
		end, ok := f.streams[id]
		delete(f.streams, id)
		f.mu.Unlock()
		if !ok {
			http.NotFound(w, r)
			return
		}
		close(end)
	case "POST /event/broadcast":
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, `{"delivered":%d}`, f.toAll(fmt.Sprintf(": sent=%d\nevent: %s\ndata: %s\n\n", time.Now().UnixMicro(), r.URL.Query().Get("event"), body)))
	default:
		http.NotFound(w, r)
	}
}

// toAll puts an event on every stream, and says on how many.
func (f *foreign) toAll(event string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broadcast++
	for id, inbox := range f.inboxes {
		n := 1
		if f.copies != nil {
			n = f.copies(id, f.broadcast)
		}
		inbox <- strings.Repeat(event, n)
	}
	return len(f.inboxes)
}

func (f *foreign) connect(w http.ResponseWriter, r *http.Request, id string) {
	end := make(chan struct{})
	f.mu.Lock()
	f.streams[id] = end
	if f.inboxes == nil {
		f.inboxes = map[string]chan string{}
	}
	inbox := make(chan string, cmp.Or(f.room, 16))
	f.inboxes[id] = inbox
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.inboxes, id)
		f.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	flush := w.(http.Flusher).Flush
	flush()
	tick := time.NewTicker(f.interval)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-end:
			return
		case <-r.Context().Done():
			return
		case text := <-inbox:
			fmt.Fprint(w, text)
			flush()
			n--
			continue
		case <-tick.C:
		}
		text := "data: 0\n\n"
		if f.say != nil {
			text = f.say(id, n)
		}
		if id == "f-3" && n >= 4 {
			switch {
			case f.fault == "drop" && n == 4:
				text = ""
			case f.fault == "duplicate" && n == 4:
				text += text
			case f.fault == "corrupt" && n == 4:
				text = "data: 1\n\n"
			case f.fault == "cut":
				return
			case f.fault == "silence":
				text = ": still here\n\n"
			}
		}
		fmt.Fprint(w, text)
		flush()
	}
}

func TestAForeignBackendIsJudgedByTheClock(t *testing.T) {
	t.Parallel()
	cases := []struct {
		fault                         string
		missed, duplicated, corrupted uint64
		dropped                       int
		reason                        string
	}{
		{fault: ""},
		{fault: "drop", missed: 1, reason: "f-3 missed 1"},
		{fault: "duplicate", duplicated: 1, reason: "f-3 received noop 4 twice"},
		{fault: "corrupt", corrupted: 1, reason: "f-3 received noop 4 corrupted"},
		{fault: "cut", dropped: 1, reason: "f-3 was "},
		{fault: "silence", missed: 5, reason: "f-3 missed 5"},
	}
	for _, c := range cases {
		t.Run("fault="+c.fault, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(&foreign{interval: 800 * time.Millisecond, fault: c.fault, streams: map[string]chan struct{}{}})
			defer server.Close()
			r := begin(t, nil, "--backend-url", server.URL+"/", "--connections", "10", "--seconds", "12", "--noop-interval", "0.8", "--prefix", "f-")
			v := r.judged()
			want := verdict.Pass
			if c.fault != "" {
				want = verdict.Fail
			}
			require.Equal(t, want, v.Verdict, r.out.String())
			n := v.Messages
			require.Equal(t, []uint64{c.missed, c.duplicated, c.corrupted}, []uint64{n.Missed, n.Duplicated, n.Corrupted}, r.out.String())
			require.Equal(t, c.dropped, v.Connections.Dropped)
			require.False(t, v.Server.Known)
			require.Contains(t, strings.Join(v.Reasons, "\n"), c.reason)
		})
	}
}

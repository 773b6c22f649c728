package h2service

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"time"
)

// A numbering is what the service put on the streams of a device since it began with 1.
type numbering struct {
	last, sent atomic.Uint64 // number of the last noop, and how many the kernel took
}

// A device is one id. A stream goes on in its numbering where its client says so by a Last-Event-ID, and begins a new one
// where it does not, as with our backend: else a run would miss what an earlier one received. Guarded by Service.mu.
type device struct {
	id string
	*numbering
	stream           *stream // nil where none is open
	streams          int
	opened, closedAt time.Time
	reason           string
}

// row is a line of the ledger, in the form of our backend.
type row struct {
	ID       string `json:"id"`
	First    uint64 `json:"first"`
	Last     uint64 `json:"last"`
	Sent     uint64 `json:"sent"`
	Streams  int    `json:"streams"`
	Open     bool   `json:"open"`
	Closed   string `json:"closed"`
	Opened   int64  `json:"opened_unix_us"`
	ClosedAt int64  `json:"closed_unix_us"`
	Slow     bool   `json:"slow"`
}

func (d *device) row() row {
	r := row{
		ID: d.id, Last: d.last.Load(), Sent: d.sent.Load(), Streams: d.streams, Open: d.stream != nil, Closed: d.reason,
		Opened: d.opened.UnixMicro(),
	}
	r.First = min(r.Last, 1)
	if !r.Open {
		r.ClosedAt = d.closedAt.UnixMicro()
	}
	return r
}

var (
	errInUse = errors.New("a stream with this id is open")
	validID  = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)
)

// enter opens a stream of a device. It falls due only when it has been added to its connection.
func (s *Service) enter(id string, resumes bool, c *connection, number uint32) (*stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.devices[id]
	if d == nil {
		d = &device{id: id}
		s.devices[id], s.order = d, append(s.order, d)
	}
	if d.stream != nil {
		return nil, errInUse
	}
	if !resumes || d.numbering == nil {
		d.numbering, d.streams = &numbering{}, 0
	}
	d.stream = &stream{device: d, numbering: d.numbering, connection: c, number: number, slot: s.next % s.Slots}
	d.streams, d.opened, d.reason = d.streams+1, time.Now(), ""
	s.next++
	s.open++
	return d.stream, nil
}

// leave takes down that a stream is over.
func (s *Service) leave(st *stream, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := st.device; d.stream == st {
		d.stream, d.closedAt, d.reason = nil, time.Now(), reason
		s.open--
	}
}

// idOf is the device that a request is about; "" where it names none that is valid.
func idOf(r *http.Request) string {
	if id := r.URL.Query().Get("id"); validID.MatchString(id) {
		return id
	}
	return ""
}

// routes are the requests that do not open a stream over HTTP/2.
func (s *Service) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /event/connect", s.connect)
	mux.HandleFunc("DELETE /event/forcedisconnect", s.disconnect)
	mux.HandleFunc("GET /event/ledger", s.ledger)
	mux.HandleFunc("GET /metrics", s.metrics)
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"status": "ok", "noop_interval_s": s.Interval.Seconds()})
	})
	return mux
}

func (s *Service) disconnect(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	d, st := s.devices[idOf(r)], (*stream)(nil)
	if d != nil {
		st = d.stream
	}
	s.mu.Unlock()
	if st == nil {
		http.Error(w, "no stream with this id is open", http.StatusNotFound)
		return
	}
	st.connection.end(st)
}

func (s *Service) ledger(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	s.mu.Lock()
	devices := s.order[:len(s.order):len(s.order)]
	s.mu.Unlock()
	out := bufio.NewWriter(w)
	lines := json.NewEncoder(out)
	for _, d := range devices {
		if strings.HasPrefix(d.id, r.URL.Query().Get("prefix")) {
			s.mu.Lock()
			line := d.row()
			s.mu.Unlock()
			if lines.Encode(line) != nil {
				return
			}
		}
	}
	_ = out.Flush()
}

// metrics has what the bench reads of our backend's page.
func (s *Service) metrics(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, value := range map[string]uint64{
		"backend_streams_open gauge": uint64(s.open), "backend_noops_sent_total counter": s.sent.Load(), "backend_connections_open gauge": uint64(len(s.connections)),
	} {
		name, kind, _ := strings.Cut(name, " ")
		fmt.Fprintf(w, "# TYPE %s %s\n%[1]s %[3]d\n", name, kind, value)
	}
}

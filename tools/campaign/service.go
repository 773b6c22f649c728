package main

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// How a service numbers its noops.
const (
	idsNumbers = "numbers" // 1, 2, 3 … per device
	idsNone    = "none"
)

// A serviceSpec is the kind of service that is soaked.
type serviceSpec struct {
	Schedule schedule
	IDs      string // numbers, none, or a name in foreignIDs
	Ledger   bool   // it tells GET /event/ledger
	Resume   bool   // what a client missed while it was away is replayed
	Seam     int    `json:",omitempty"` // so many noops further on than it should
	Lines    string // how lines end
	BOM      bool
	Comments bool          // a comment between noops
	Framing  string        // chunks, split (each event in several chunks), close (ends with the connection)
	EndsLate bool          // ends a stream at its next tick
	Retry    int           // ms; 0: none
	Lives    time.Duration `json:",omitempty"` // mean lifetime of a stream, which the service then ends; 0: until its end is requested
	Anew     bool          `json:",omitempty"` // the schedule of each stream begins anew, and nothing falls due between two
	Nginx    bool          // in front of it
	Slow     string        `json:",omitempty"` // what becomes of broadcasts for clients that do not read; "": it has none
	Gauge    string        `json:",omitempty"` // what its gauge of open streams shows
	Notices  time.Duration `json:",omitempty"` // so long a client may acknowledge nothing; 0: as the system has it
}

func drawService(r *rand.Rand) *serviceSpec {
	return &serviceSpec{
		Schedule: drawSchedule(r),
		IDs:      oneOf(r, idsNumbers, idsNone, oneOf(r, slices.Sorted(maps.Keys(foreignIDs))...)),
		Ledger:   r.IntN(2) == 0,
		Nginx:    r.IntN(3) == 0,
		Lines:    oneOf(r, "\n", "\n", "\r\n", "\r"),
		BOM:      r.IntN(6) == 0,
		Comments: r.IntN(4) == 0,
		EndsLate: r.IntN(5) == 0,
		Framing:  oneOf(r, "chunks", "chunks", "split", "close"),
	}
}

// numbered says that each loss can be named.
func (s *serviceSpec) numbered() bool { return s.IDs == idsNumbers }

// keepsLedger says that the service tells what it sent: by number, so only where there are some.
func (s *serviceSpec) keepsLedger() bool { return s.Ledger && s.numbered() }

// A service is one that is soaked, with its fault. It knows what it did: see device.
type service struct {
	serviceSpec
	strike  strike
	late    atomic.Int64 // the longest time, in ns, by which a noop left later than it was meant to: whether this program itself was saturated
	global  atomic.Uint64
	mu      sync.Mutex
	devices map[string]*device
	inboxes map[*stream]bool
	began   time.Time // the first connect
	open    sync.WaitGroup
	server  *http.Server
}

// startService listens on each of the listeners.
func startService(spec serviceSpec, strike strike, listeners ...net.Listener) *service {
	s := &service{serviceSpec: spec, strike: strike, devices: map[string]*device{}, inboxes: map[*stream]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /event/connect", s.connect)
	mux.HandleFunc("DELETE /event/forcedisconnect", s.forceDisconnect)
	if s.keepsLedger() {
		mux.HandleFunc("GET /event/ledger", s.ledger)
	}
	mux.HandleFunc("GET /metrics", s.metrics)
	mux.HandleFunc("POST /event/broadcast", s.broadcast)
	s.server = &http.Server{Handler: mux, ConnContext: s.notices}
	for _, l := range listeners {
		go func() { _ = s.server.Serve(l) }()
	}
	return s
}

// stop ends every stream and waits for it.
func (s *service) stop() {
	_ = s.server.Close()
	s.open.Wait()
}

func (s *service) all() []*device {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.devices))
}

func (s *service) device(id string) *device {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.devices[id] == nil {
		s.devices[id] = &device{id: id}
	}
	return s.devices[id]
}

// opened is how many devices have had a stream.
func (s *service) opened() (n int) {
	for _, d := range s.all() {
		d.mu.Lock()
		n += btoi(d.streams > 0)
		d.mu.Unlock()
	}
	return n
}

func (s *service) forceDisconnect(w http.ResponseWriter, r *http.Request) {
	d := s.device(r.URL.Query().Get("id"))
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.end == nil {
		http.NotFound(w, r)
		return
	}
	if d.askedAt.IsZero() {
		d.askedAt = time.Now()
	}
	if !d.ended && (!s.strike.NeverEnd || !s.strike.meant(d.id)) {
		d.ended = true
		close(d.end)
	}
}

func (s *service) ledger(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	out := json.NewEncoder(w)
	for _, d := range s.all() {
		d.mu.Lock()
		sent, opened := d.numbers, d.streams > 0 // a noop that was lost counts as sent
		d.mu.Unlock()
		if opened && strings.HasPrefix(d.id, r.URL.Query().Get("prefix")) {
			_ = out.Encode(map[string]any{"id": d.id, "first": min(sent, 1), "last": sent, "sent": sent, "slow": false})
		}
	}
}

// since is how long ago the first connect was.
func (s *service) since() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.began.IsZero() {
		s.began = time.Now()
	}
	return time.Since(s.began)
}

// connect opens a stream, unless the fault has another answer.
func (s *service) connect(w http.ResponseWriter, r *http.Request) {
	d := s.device(r.URL.Query().Get("id"))
	d.mu.Lock()
	taken, first := d.end != nil, d.streams == 0
	d.mu.Unlock()
	if taken {
		w.WriteHeader(http.StatusConflict)
		return
	}
	if s.strike.answers(w, r, d.id, first, s.since()) {
		return
	}
	s.open.Add(1)
	defer s.open.Done()
	st := &stream{service: s, device: d, w: w, conn: http.NewResponseController(w), gone: r.Context().Done()}
	st.run(r.Header.Get("Last-Event-ID"))
}

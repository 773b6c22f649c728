package main

import (
	"encoding/json"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A serviceSpec is the kind of service that is soaked.
type serviceSpec struct {
	Schedule schedule
	IDs      string
	Ledger   bool   // it tells GET /event/ledger
	Resume   bool   // what a client missed while it was away is replayed
	Lines    string // how lines end
	BOM      bool
	Comments bool   // a comment between noops
	Framing  string // chunks, split (each event in several chunks), close (ends with the connection)
	EndsLate bool   // ends a stream at its next tick
	Retry    int    // ms; 0: none
	Nginx    bool   // in front of it
}

func drawService(r *rand.Rand) serviceSpec {
	s := serviceSpec{
		Schedule: drawSchedule(r),
		IDs:      idsNumbers, Lines: "\n", Framing: "chunks", Nginx: r.IntN(3) == 0,
	}
	switch r.IntN(3) {
	case 0:
		s.IDs = idsNone
	case 1:
		s.IDs = foreignIDs[r.IntN(len(foreignIDs))]
	}
	s.Ledger = s.IDs == idsNumbers && r.IntN(2) == 0
	s.Lines = []string{"\n", "\n", "\r\n", "\r"}[r.IntN(4)]
	s.BOM, s.Comments, s.EndsLate = r.IntN(6) == 0, r.IntN(4) == 0, r.IntN(5) == 0
	s.Framing = []string{"chunks", "chunks", "split", "close"}[r.IntN(4)]
	return s
}

// numbered says that each loss can be named.
func (s *serviceSpec) numbered() bool { return s.IDs == idsNumbers }

// A service is one that is soaked, with its fault. It knows what it did: see device.
type service struct {
	serviceSpec
	strike  strike
	late    lateness
	global  atomic.Uint64
	mu      sync.Mutex
	devices map[string]*device
	began   time.Time // the first connect
	open    sync.WaitGroup
	server  *http.Server
}

// startService listens on each of the listeners.
func startService(spec serviceSpec, strike strike, listeners ...net.Listener) *service {
	s := &service{serviceSpec: spec, strike: strike, devices: map[string]*device{}}
	s.server = &http.Server{Handler: s}
	for _, l := range listeners {
		go func() { _ = s.server.Serve(l) }()
	}
	return s
}

// stop ends every stream and waits for it.
func (s *service) stop() {
	_ = s.server.Close()
	for _, d := range s.all() {
		d.mu.Lock()
		d.askEnd()
		d.mu.Unlock()
	}
	s.open.Wait()
}

func (s *service) all() (out []*device) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.devices {
		out = append(out, d)
	}
	return out
}

func (s *service) device(id string) *device {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.devices[id] == nil {
		s.devices[id] = &device{id: id}
	}
	return s.devices[id]
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.URL.Query().Get("id")
	switch r.Method + " " + r.URL.Path {
	case "GET /event/connect":
		s.connect(w, r, id)
	case "DELETE /event/forcedisconnect":
		d := s.device(id)
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.end == nil {
			http.NotFound(w, r)
			return
		}
		if d.askedAt.IsZero() {
			d.askedAt = time.Now()
		}
		if !s.strike.neverEnds(id) {
			d.askEnd()
		}
	case "GET /event/ledger":
		s.ledger(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (d *device) askEnd() {
	if d.end != nil && !d.ended {
		d.ended = true
		close(d.end)
	}
}

func (s *service) ledger(w http.ResponseWriter, r *http.Request) {
	if !s.Ledger {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	out := json.NewEncoder(w)
	for _, d := range s.all() {
		d.mu.Lock()
		entry := map[string]any{"id": d.id, "first": min(d.sent(), 1), "last": d.sent(), "sent": d.sent(), "slow": false}
		told := d.streams > 0 && strings.HasPrefix(d.id, r.URL.Query().Get("prefix"))
		d.mu.Unlock()
		if told {
			_ = out.Encode(entry)
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
func (s *service) connect(w http.ResponseWriter, r *http.Request, id string) {
	d := s.device(id)
	d.mu.Lock()
	if d.end != nil {
		d.mu.Unlock()
		w.WriteHeader(http.StatusConflict)
		return
	}
	d.mu.Unlock()
	if s.strike.answers(w, r, id, s.since()) {
		d.mu.Lock()
		d.struck = true
		d.mu.Unlock()
		return
	}
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		return
	}
	conn, _, err := hijacker.Hijack()
	if err != nil {
		return
	}
	s.open.Add(1)
	defer s.open.Done()
	defer conn.Close()
	st := &stream{service: s, device: d, conn: conn, gone: make(chan struct{})}
	var watching sync.WaitGroup
	watching.Go(func() { st.watch() })
	st.run(r.Header.Get("Last-Event-ID"))
	_ = conn.Close()
	watching.Wait()
}

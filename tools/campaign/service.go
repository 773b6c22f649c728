package main

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
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
	format
	Comments bool          // a comment between noops
	EndsLate bool          // ends a stream at its next tick
	Lives    time.Duration `json:",omitempty"` // mean lifetime of a stream, which the service then ends; 0: until its end is requested
	Anew     bool          `json:",omitempty"` // the schedule of each stream begins anew, and nothing falls due between two
	Nginx    bool          // in front of it
	Slow     string        `json:",omitempty"` // what becomes of broadcasts for clients that do not read; "": it has none
	Gauge    string        `json:",omitempty"` // what its gauge of open streams shows
	Notices  time.Duration `json:",omitempty"` // so long a client may acknowledge nothing; 0: as the system has it
}

func drawService(r *rand.Rand) *serviceSpec {
	s := &serviceSpec{
		Schedule: drawSchedule(r),
		IDs:      oneOf(r, idsNumbers, idsNone, oneOf(r, slices.Sorted(maps.Keys(foreignIDs))...)),
		Ledger:   r.IntN(2) == 0,
		Nginx:    r.IntN(3) == 0,
		format:   format{Lines: oneOf(r, "\n", "\n", "\r\n", "\r"), BOM: r.IntN(6) == 0},
		Comments: r.IntN(4) == 0,
		EndsLate: r.IntN(5) == 0,
	}
	s.Framing = oneOf(r, "chunks", "chunks", "split", "close")
	return s
}

// numbered says that each loss can be named.
func (s *serviceSpec) numbered() bool { return s.IDs == idsNumbers }

// keepsLedger says that the service tells what it sent: by number, so only where there are some.
func (s *serviceSpec) keepsLedger() bool { return s.Ledger && s.numbered() }

// A service sends noops: each client has messages of its own, numbered and at an interval. It records what it did: see device.
type service struct {
	serviceSpec
	server
	strike  strike
	global  atomic.Uint64
	devices map[string]*device
	inboxes map[*noopStream]bool
	began   time.Time // the first connect
}

// startService listens on each of the listeners.
func startService(spec serviceSpec, strike strike, listeners ...net.Listener) *service {
	s := &service{serviceSpec: spec, strike: strike, devices: map[string]*device{}, inboxes: map[*noopStream]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /event/connect", s.connect)
	mux.HandleFunc("DELETE /event/forcedisconnect", s.forceDisconnect)
	if s.keepsLedger() {
		mux.HandleFunc("GET /event/ledger", s.ledger)
	}
	mux.HandleFunc("GET /metrics", s.metrics)
	mux.HandleFunc("POST /event/broadcast", s.broadcast)
	s.serve(&http.Server{Handler: mux, ConnContext: s.notices}, listeners...)
	return s
}

// device returns the record of an id. The caller holds the lock.
func (s *service) device(id string) *device {
	if s.devices[id] == nil {
		s.devices[id] = &device{client: client{id: id}}
	}
	return s.devices[id]
}

// opened returns how many devices have had a stream, and how many have one.
func (s *service) opened() (ever, now int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.devices {
		ever += btoi(len(d.spans) > 0)
		now += btoi(d.present != nil)
	}
	return ever, now
}

func (s *service) forceDisconnect(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.device(r.URL.Query().Get("id"))
	s.endStream(w, r, &d.client, s.strike.Never && s.strike.meant(d.id))
}

func (s *service) ledger(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	out := json.NewEncoder(w)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.devices {
		if len(d.spans) > 0 && strings.HasPrefix(d.id, r.URL.Query().Get("prefix")) {
			sent := d.numbers // a noop that was lost counts as sent
			_ = out.Encode(map[string]any{"id": d.id, "first": min(sent, 1), "last": sent, "sent": sent, "slow": false})
		}
	}
}

// connect opens a stream, unless the fault has another answer.
func (s *service) connect(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	d := s.device(r.URL.Query().Get("id"))
	taken, first := d.present != nil, len(d.spans) == 0
	if s.began.IsZero() {
		s.began = time.Now()
	}
	since := time.Since(s.began)
	s.mu.Unlock()
	if taken {
		w.WriteHeader(http.StatusConflict)
		return
	}
	if s.strike.answers(w, r, d.id, first, since) {
		return
	}
	s.open.Add(1)
	defer s.open.Done()
	st := &noopStream{stream: s.newStream(s.format, w, r), service: s, device: d}
	st.run(r.Header.Get("Last-Event-ID"))
}

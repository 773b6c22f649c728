package fakeservice

import (
	"crypto/tls"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// Values of ServiceSpec.IDs. The other values are the keys of ForeignIDs.
const (
	IDsNumbers = "numbers" // 1, 2, 3 … per client
	IDsNone    = "none"
)

// A ServiceSpec describes the behavior of a Service.
type ServiceSpec struct {
	Schedule Schedule
	IDs      string // numbers, none, or a key of ForeignIDs
	Ledger   bool   // serves GET /event/ledger; requires numbers
	Resume   bool   // replays the noops that a client missed while it was disconnected; requires numbers
	Seam     int    `json:",omitempty"` // number of noops by which a replay starts too late; negative: too early
	Format
	Comments     bool          // sends a comment before each noop
	EndWait      time.Duration `json:",omitempty"` // time without noops before the service ends a stream on request
	EndsLate     bool          // ends a stream on request only when its next noop is due
	MeanLifetime time.Duration `json:",omitempty"` // mean time after which the service ends a stream; 0: no limit
	NewSchedule  bool          `json:",omitempty"` // each stream has a new schedule, so no noop is due between streams
	Nginx        bool          // nginx runs in front of the service
	Slow         string        `json:",omitempty"` // effect of broadcasts on slow clients; "": no broadcasts
	Stamp        time.Duration `json:",omitempty"` // time from a request for a broadcast to the timestamp of the event; negative: a slow clock
	Gauge        string        `json:",omitempty"` // value of the metric campaign_streams, such as GaugeOpen
	AckTimeout   time.Duration `json:",omitempty"` // maximum time without an acknowledgment; 0: the system's default
	HTTP2        int           `json:",omitempty"` // maximum number of streams per HTTP/2 connection; 0: HTTP/1.1 only
	TLS          *tls.Config   `json:"-"`          // nil: no TLS; HTTP/2 over TLS requires NextProtos with "h2"

	// Each of the functions below may be nil.

	// Admit returns the response status for a connect. connects is the number of connects so far, of all clients.
	// Status 0 opens a stream, even if the client already has one.
	Admit func(id string, connects int) (status int) `json:"-"`
	// Text returns a noop as text on the wire.
	Text func(id string, slot int) string `json:"-"`
	// Copies returns how many times the nth broadcast, from 1, is sent to a client.
	Copies func(id string, broadcast int) int `json:"-"`
}

// Numbered reports whether noops have numbers, so that each lost noop can be identified.
func (s *ServiceSpec) Numbered() bool { return s.IDs == IDsNumbers }

// KeepsLedger reports whether the service has a ledger of its noops. A ledger requires numbered noops.
func (s *ServiceSpec) KeepsLedger() bool { return s.Ledger && s.Numbered() }

// A Service sends noops: messages at an interval, numbered separately for each client. Clients contains a record for
// each client id.
type Service struct {
	ServiceSpec
	Server
	strike  Strike
	global  atomic.Uint64 // last id that the function "global" of ForeignIDs returned
	sent    atomic.Uint64 // number of noops sent
	Clients map[string]*NoopClient
	inboxes map[*noopStream]bool // streams that receive broadcasts

	firstConnect         time.Time
	connects, broadcasts int
}

// StartService starts a service that accepts connections on all listeners.
func StartService(spec ServiceSpec, strike Strike, listeners ...net.Listener) *Service {
	s := &Service{ServiceSpec: spec, strike: strike, Clients: map[string]*NoopClient{}, inboxes: map[*noopStream]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /event/connect", s.connect)
	mux.HandleFunc("DELETE /event/forcedisconnect", s.forceDisconnect)
	if s.KeepsLedger() {
		mux.HandleFunc("GET /event/ledger", s.ledger)
	}
	mux.HandleFunc("GET /metrics", s.metrics)
	mux.HandleFunc("POST /event/broadcast", s.broadcast)
	h := &http.Server{Handler: mux, ConnContext: s.setAckTimeout}
	if s.HTTP2 > 0 {
		h.Protocols, h.HTTP2 = &http.Protocols{}, &http.HTTP2Config{MaxConcurrentStreams: s.HTTP2}
		h.Protocols.SetHTTP1(true)
		h.Protocols.SetHTTP2(s.TLS != nil)
		h.Protocols.SetUnencryptedHTTP2(s.TLS == nil)
	}
	if s.TLS != nil { // h.TLSConfig stays nil: http.Server would modify it, and services may share s.TLS
		for i, l := range listeners {
			listeners[i] = tls.NewListener(l, s.TLS)
		}
	}
	s.Serve(h, listeners...)
	return s
}

// NewSpec returns the spec of a correct service with numbered noops and a ledger. streams is ServiceSpec.HTTP2.
func NewSpec(interval time.Duration, phase string, streams int) ServiceSpec {
	return ServiceSpec{
		IDs: IDsNumbers, Ledger: true, Format: Format{Lines: "\n", Framing: "chunks"}, Schedule: Schedule{Factor: 1, Interval: interval, Phase: phase}, HTTP2: streams,
	}
}

// client returns the record of a client id, which it creates on first use. The caller holds the lock.
func (s *Service) client(id string) *NoopClient {
	if s.Clients[id] == nil {
		s.Clients[id] = &NoopClient{Client: Client{ID: id}}
	}
	return s.Clients[id]
}

// ClientCounts returns the number of clients that have had a stream, and how many of them have an open stream.
func (s *Service) ClientCounts() (total, open int) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for _, c := range s.Clients {
		if len(c.Spans) > 0 {
			total++
		}
		if c.Open != nil {
			open++
		}
	}
	return total, open
}

func (s *Service) forceDisconnect(w http.ResponseWriter, r *http.Request) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	c := s.client(r.URL.Query().Get("id"))
	s.EndStream(w, r, &c.Client, s.strike.NeverEnds && s.strike.Matches(c.ID))
}

func (s *Service) ledger(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	out := json.NewEncoder(w)
	s.Mu.Lock()
	defer s.Mu.Unlock()
	for _, c := range s.Clients {
		if len(c.Spans) > 0 && strings.HasPrefix(c.ID, r.URL.Query().Get("prefix")) {
			sent := c.numbers // a noop that was lost counts as sent
			_ = out.Encode(map[string]any{"id": c.ID, "first": min(sent, 1), "last": sent, "sent": sent, "slow": false})
		}
	}
}

// connect opens a stream, unless Admit or the fault requires a different response. Without Admit, a client has at most
// one stream at a time.
func (s *Service) connect(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Query().Get("id"), "trial-") { // soak's trial stream before the run; it is not recorded
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return
	}
	s.Mu.Lock()
	c := s.client(r.URL.Query().Get("id"))
	conflict, first := c.Open != nil, len(c.Spans) == 0
	if s.firstConnect.IsZero() {
		s.firstConnect = time.Now()
	}
	since := time.Since(s.firstConnect)
	s.connects++
	connects := s.connects
	s.Mu.Unlock()
	status := 0
	if s.Admit != nil {
		status = s.Admit(c.ID, connects)
	} else if conflict {
		status = http.StatusConflict
	}
	if status != 0 {
		w.WriteHeader(status)
		return
	}
	if s.strike.answers(w, r, c.ID, first, since) {
		return
	}
	if !s.AddHandler() {
		return
	}
	defer s.Handlers.Done()
	st := &noopStream{Stream: s.NewStream(s.Format, w, r), Service: s, client: c}
	st.run(r.Header.Get("Last-Event-ID"))
}

package main

import (
	"bufio"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sse-soak/sse-soak/backend/answer"
	"github.com/sse-soak/sse-soak/backend/fault"
	"github.com/sse-soak/sse-soak/backend/services"
)

var (
	errStopped  = answer.Refuse(http.StatusServiceUnavailable, "the service has stopped; start it again")
	errNoStream = answer.Refuse(http.StatusNotFound, "no stream has this id; open one with GET /event/connect?id=ID")
)

func (s *service) forceDisconnect(w http.ResponseWriter, r *http.Request) error {
	if s.cfg.ServerName != "" {
		w.Header().Set("X-Server", s.cfg.ServerName)
	}
	id, err := parseDeviceID(r.URL.RawQuery)
	if err != nil {
		return err
	}
	return respond(w, s.hub, http.StatusOK, func() (ledgerRow, error) { return s.hub.forceDisconnect(id) })
}

// readMessage returns the event of a message without its head: the name from the query, the data from the body.
func readMessage(r *http.Request) ([]byte, error) {
	name, err := parseName(r.URL.RawQuery, "event")
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, answer.BadBody(err, "a message must have at most 65536 bytes; split it")
	}
	if !utf8.Valid(data) {
		return nil, errors.New("the data must be UTF-8; encode binary data, for example as base64")
	}
	return eventBody(name, data), nil
}

// send responds with 200 if the stream is open, and with 202 if the message is only stored for a resume.
func (s *service) send(w http.ResponseWriter, r *http.Request) error {
	id, err := parseDeviceID(r.URL.RawQuery)
	if err != nil {
		return err
	}
	body, err := readMessage(r)
	if err != nil {
		return err
	}
	out, err := query(s.hub, func() (delivery, error) { return s.hub.send(id, body) })
	switch {
	case err != nil:
		return err
	case out.Delivered == 0:
		return answer.JSON(w, http.StatusAccepted, out)
	}
	return answer.JSON(w, http.StatusOK, out)
}

func (s *service) broadcast(w http.ResponseWriter, r *http.Request) error {
	body, err := readMessage(r)
	if err != nil {
		return err
	}
	return respond(w, s.hub, http.StatusOK, func() (delivery, error) { return s.hub.broadcast(body), nil })
}

// ledger responds with one line for each id that starts with the prefix in the query.
func (s *service) ledger(w http.ResponseWriter, r *http.Request) error {
	prefix, err := parseName(r.URL.RawQuery, "prefix")
	if err != nil {
		return err
	}
	ids, err := s.hub.snapshotLedger()
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/x-ndjson")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Ledger-Evicted", strconv.FormatUint(ids.evictions, 10))
	out := bufio.NewWriterSize(&deadlineWriter{w, http.NewResponseController(w)}, 32<<10)
	if s.hub.writeLedger(out, ids, prefix) != nil || out.Flush() != nil {
		panic(http.ErrAbortHandler) // an incomplete ledger must not look complete
	}
	return nil
}

// A deadlineWriter limits each write to the client to responseTimeout.
type deadlineWriter struct {
	w  io.Writer
	rc *http.ResponseController
}

func (d *deadlineWriter) Write(p []byte) (int, error) {
	_ = d.rc.SetWriteDeadline(time.Now().Add(responseTimeout))
	return d.w.Write(p)
}

func (s *service) healthz(w http.ResponseWriter, _ *http.Request) error {
	return answer.JSON(w, http.StatusOK, struct {
		Status   string  `json:"status"`
		Version  string  `json:"version"`
		Interval float64 `json:"noop_interval_s"`
		Schedule string  `json:"noop_schedule"`
		Uptime   float64 `json:"uptime_s"`
		Streams  int     `json:"streams"`
	}{"ok", buildVersion(), s.cfg.NoopInterval.Seconds(), s.cfg.NoopSchedule,
		s.clk.elapsed().Truncate(time.Millisecond).Seconds(), s.hub.openStreams()})
}

// readyz responds with 200 until the drain starts, then with 503.
func (s *service) readyz(w http.ResponseWriter, _ *http.Request) error {
	select {
	case <-s.stopping:
		return answer.Refuse(http.StatusServiceUnavailable, "the service is stopping; use another instance")
	default:
		return answer.JSON(w, http.StatusOK, map[string]string{"status": "ready"})
	}
}

func (s *service) listFaults(w http.ResponseWriter, _ *http.Request) error {
	return s.changeFaults(w, http.StatusOK, func() {})
}

func (s *service) addFaults(w http.ResponseWriter, r *http.Request) error {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return answer.BadBody(err, "the list of faults is too long; send fewer")
	}
	faults, err := fault.Parse(string(text))
	if err != nil {
		return err
	}
	if len(faults) == 0 {
		return errors.New("the body is empty; send a fault such as drop:noop=3")
	}
	s.log.Warn("faults armed", "faults", string(text))
	return s.changeFaults(w, http.StatusCreated, func() { s.hub.faults.Add(faults...) })
}

// clearFaults removes all faults and the record of their effects. It does not undo effects, such as a stalled stream.
func (s *service) clearFaults(w http.ResponseWriter, _ *http.Request) error {
	if !s.hub.call(s.hub.faults.Clear) {
		return errStopped
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *service) changeFaults(w http.ResponseWriter, status int, change func()) error {
	return respond(w, s.hub, status, func() ([]fault.ArmedFault, error) {
		change()
		return s.hub.faults.Status(), nil
	})
}

// maxBody limits the size of a message, and of a list of faults, in bytes.
const maxBody = 64 << 10

// An endpoint handles one method of one path.
type endpoint struct {
	serve     func(http.ResponseWriter, *http.Request) error // if it returns an error, guard responds
	protected bool                                           // requires BACKEND_TOKEN, if one is set
	stream    bool                                           // guard sets no write deadline
}

// A routeTable maps an exact path and a method to an endpoint. It has no patterns and no redirects, so no other
// spelling of a path reaches an endpoint.
type routeTable map[string]map[string]endpoint

func (s *service) routes() http.Handler {
	metrics := promhttp.HandlerFor(s.hub.metrics.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
	return s.withServices(s.guard(routeTable{
		"/event/connect":         {http.MethodGet: {serve: s.connect, stream: true}},
		"/event/forcedisconnect": {http.MethodDelete: {serve: s.forceDisconnect, protected: true}},
		"/event/send":            {http.MethodPost: {serve: s.send, protected: true}},
		"/event/broadcast":       {http.MethodPost: {serve: s.broadcast, protected: true}},
		"/event/ledger":          {http.MethodGet: {serve: s.ledger, protected: true, stream: true}},
		"/healthz":               {http.MethodGet: {serve: s.healthz}},
		"/readyz":                {http.MethodGet: {serve: s.readyz}},
		"/metrics": {http.MethodGet: {serve: func(w http.ResponseWriter, r *http.Request) error {
			metrics.ServeHTTP(w, r)
			return nil
		}}},
	}))
}

func (s *service) withServices(events http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if services.Owns(r.URL.Path) {
			s.plain.ServeHTTP(w, r)
			return
		}
		events.ServeHTTP(w, r)
	})
}

func (s *service) adminRoutes() http.Handler {
	return s.guard(routeTable{
		"/fault": {
			http.MethodGet:    {serve: s.listFaults, protected: true},
			http.MethodPost:   {serve: s.addFaults, protected: true},
			http.MethodDelete: {serve: s.clearFaults, protected: true},
		},
	})
}

// responseTimeout limits the time for writing an ordinary response.
const responseTimeout = 10 * time.Second

// guard returns the handler of a table. It responds to errors with a problem document, and counts refused connects.
func (s *service) guard(table routeTable) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer s.recoverPanic(r)
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		endpoint, err := s.find(table, w, r)
		setDeadline := func() { _ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(responseTimeout)) }
		if err == nil {
			if !endpoint.stream {
				setDeadline()
			}
			err = endpoint.serve(w, r)
		}
		if err != nil {
			p := answer.AsProblem(err)
			if p.Reason != "" {
				s.hub.metrics.refusals.WithLabelValues(p.Reason).Inc()
			}
			setDeadline()
			p.Write(w)
		}
	})
}

func (s *service) find(table routeTable, w http.ResponseWriter, r *http.Request) (endpoint, error) {
	methods, ok := table[r.URL.EscapedPath()]
	if !ok {
		return endpoint{}, answer.Refuse(http.StatusNotFound, "unknown route; use one of "+strings.Join(slices.Sorted(maps.Keys(table)), ", "))
	}
	found, ok := methods[r.Method]
	if !ok {
		return found, answer.NotAllowed(w, slices.Sorted(maps.Keys(methods))...)
	}
	if found.protected && !s.authorized(r) {
		return found, answer.Refuse(http.StatusUnauthorized, "the token is missing or wrong; send the header Authorization: Bearer TOKEN with the service's BACKEND_TOKEN")
	}
	return found, nil
}

// recoverPanic logs a panic in the handling of a request, unless it is http.ErrAbortHandler, and aborts the response.
func (s *service) recoverPanic(r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if v != http.ErrAbortHandler {
		s.log.Error("request panicked", "path", r.URL.Path, "panic", fmt.Sprint(v))
	}
	panic(http.ErrAbortHandler)
}

// authorized reports whether a request has the token, or no token is set. It compares in constant time.
func (s *service) authorized(r *http.Request) bool {
	if s.cfg.Token == "" {
		return true
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	received, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(s.cfg.Token))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(received[:], want[:]) == 1
}

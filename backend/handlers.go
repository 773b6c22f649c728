package main

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/sse-soak/sse-soak/backend/fault"
)

func badRequest(err error) *problem { return newProblem(http.StatusBadRequest, err.Error()) }

var errStopped = newProblem(http.StatusServiceUnavailable, "the service has stopped; start it again")

// forceDisconnect ends a stream and answers with its line of the ledger.
func (s *service) forceDisconnect(w http.ResponseWriter, r *http.Request) {
	id, err := parseDeviceID(r.URL.RawQuery)
	if err != nil {
		badRequest(err).write(w)
		return
	}
	var row ledgerRow
	var found bool
	if !s.hub.call(func() { row, found = s.hub.forceDisconnect(id) }) {
		errStopped.write(w)
		return
	}
	if !found {
		newProblem(http.StatusNotFound, "no stream has this id; connect it first with GET /event/connect?id=ID").write(w)
		return
	}
	writeJSON(w, http.StatusOK, row)
}

// readMessage reads event name and data of a message and formats them.
func readMessage(w http.ResponseWriter, r *http.Request) (body []byte, ok bool) {
	name, err := parseEventName(r.URL.RawQuery)
	if err != nil {
		badRequest(err).write(w)
		return nil, false
	}
	data, err := io.ReadAll(r.Body)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		newProblem(http.StatusRequestEntityTooLarge, "a message has at most 65536 bytes; split it").write(w)
		return nil, false
	case err != nil:
		badRequest(errors.New("the body could not be read; send it whole and in time")).write(w)
		return nil, false
	case !utf8.Valid(data):
		badRequest(errors.New("an event stream is UTF-8; encode binary data, for example as base64")).write(w)
		return nil, false
	}
	return eventBody(name, data), true
}

// send puts a message on one stream: 200 when it is on its way, 202 when it is
// kept for an id that may come back within RESUME_WINDOW.
func (s *service) send(w http.ResponseWriter, r *http.Request) {
	id, err := parseDeviceID(r.URL.RawQuery)
	if err != nil {
		badRequest(err).write(w)
		return
	}
	body, ok := readMessage(w, r)
	if !ok {
		return
	}
	var out delivery
	var found bool
	if !s.hub.call(func() { out, found = s.hub.send(id, body) }) {
		errStopped.write(w)
		return
	}
	switch {
	case !found:
		newProblem(http.StatusNotFound, "no stream has this id; connect it first with GET /event/connect?id=ID").write(w)
	case out.Delivered == 0:
		writeJSON(w, http.StatusAccepted, out)
	default:
		writeJSON(w, http.StatusOK, out)
	}
}

// broadcast puts a message on every stream.
func (s *service) broadcast(w http.ResponseWriter, r *http.Request) {
	body, ok := readMessage(w, r)
	if !ok {
		return
	}
	var out delivery
	if !s.hub.call(func() { out = s.hub.broadcast(body) }) {
		errStopped.write(w)
		return
	}
	writeJSON(w, http.StatusOK, out)
}

// ledger streams the ledger, one line per id.
func (s *service) ledger(w http.ResponseWriter, r *http.Request) {
	prefix, _, err := onlyValue(r.URL.RawQuery, "prefix")
	if err == nil && prefix != "" && !validName(prefix) {
		err = errors.New("a prefix has up to 64 characters of A-Z a-z 0-9 . _ -")
	}
	if err != nil {
		badRequest(err).write(w)
		return
	}
	list, evicted, ok := s.hub.ledgerIDs()
	if !ok {
		errStopped.write(w)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/x-ndjson")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Ledger-Evicted", strconv.FormatUint(evicted, 10))
	out := bufio.NewWriterSize(&deadlineWriter{w, http.NewResponseController(w)}, 32<<10)
	if s.hub.writeLedger(out, list, evicted, prefix) != nil || out.Flush() != nil {
		panic(http.ErrAbortHandler) // a ledger cut short must not look complete
	}
}

// deadlineWriter gives the client responseTimeout for each piece.
type deadlineWriter struct {
	w  io.Writer
	rc *http.ResponseController
}

func (d *deadlineWriter) Write(p []byte) (int, error) {
	_ = d.rc.SetWriteDeadline(time.Now().Add(responseTimeout))
	return d.w.Write(p)
}

func (s *service) healthz(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, struct {
		Status   string  `json:"status"`
		Version  string  `json:"version"`
		Interval float64 `json:"noop_interval_s"`
		Schedule string  `json:"noop_schedule"`
		Uptime   float64 `json:"uptime_s"`
		Streams  int     `json:"streams"`
	}{"ok", buildVersion(), s.cfg.NoopInterval.Seconds(), s.cfg.NoopSchedule,
		s.clk.elapsed().Truncate(time.Millisecond).Seconds(), s.hub.streamsOpen()})
}

func (s *service) readyz(w http.ResponseWriter, _ *http.Request) {
	if s.draining.Load() {
		refusal(http.StatusServiceUnavailable, "draining", "the service is stopping; use another instance").write(w)
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{"status": "ready"})
}

// listFaults shows which faults are armed and which fired.
func (s *service) listFaults(w http.ResponseWriter, _ *http.Request) {
	s.writeFaults(w, http.StatusOK)
}

// addFaults arms the faults in the body, in the grammar of BACKEND_FAULT.
func (s *service) addFaults(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		newProblem(http.StatusRequestEntityTooLarge, "the body is too long or broken; send fewer faults").write(w)
		return
	}
	faults, err := fault.Parse(string(text))
	if err == nil && len(faults) == 0 {
		err = errors.New("the body is empty; send a fault such as drop:noop=3")
	}
	if err != nil {
		badRequest(err).write(w)
		return
	}
	s.hub.call(func() { s.hub.faults.Add(faults...) })
	s.log.Warn("faults armed", "faults", string(text))
	s.writeFaults(w, http.StatusCreated)
}

// clearFaults disarms and forgets all faults; what they broke stays broken.
func (s *service) clearFaults(w http.ResponseWriter, _ *http.Request) {
	s.hub.call(s.hub.faults.Clear)
	w.WriteHeader(http.StatusNoContent)
}

func (s *service) writeFaults(w http.ResponseWriter, status int) {
	var list []fault.Status
	if !s.hub.call(func() { list = s.hub.faults.Status() }) {
		errStopped.write(w)
		return
	}
	writeJSON(w, status, list)
}

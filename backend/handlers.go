package main

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/sse-soak/sse-soak/backend/answer"
	"github.com/sse-soak/sse-soak/backend/fault"
)

var (
	errStopped  = answer.Refuse(http.StatusServiceUnavailable, "the service has stopped; start it again")
	errNoStream = answer.Refuse(http.StatusNotFound, "no stream has this id; connect it first with GET /event/connect?id=ID")
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
	h.Set("X-Ledger-Evicted", strconv.FormatUint(ids.evicted, 10))
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

package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"syscall"
	"time"

	"github.com/sse-soak/sse-soak/backend/answer"
	"github.com/sse-soak/sse-soak/backend/fault"
)

// connect handles a connect, which is a request for an event stream. It reserves the id, takes the connection from
// net/http and passes it to the scheduler, which sends the headers.
func (s *service) connect(w http.ResponseWriter, r *http.Request) error {
	id, last, err := parseConnect(r)
	if err != nil {
		return refusal(http.StatusBadRequest, "bad_request", err.Error())
	}
	res, err := query(s.hub, func() (*reservation, error) { return s.hub.reserve(id, last) })
	if err != nil {
		return err
	}
	if answered, err := s.connectFault(w, r, id, res.fault); answered {
		return err
	}
	c, err := s.claim(w, r, res.d)
	if err != nil {
		s.hub.post(func() { s.hub.release(res) })
		s.log.Error("cannot claim a connection", "error", err.Error())
		s.hub.metrics.refusals.WithLabelValues("descriptor").Inc()
		return nil
	}
	if !s.hub.post(func() { s.hub.attach(res, c) }) {
		c.discard()
	}
	return nil
}

// refusal returns the problem that refuses a connect. A metric counts refusals by reason.
func refusal(status int, reason, detail string) error {
	p := answer.Refuse(status, detail)
	p.Reason = reason
	return p
}

func parseConnect(r *http.Request) (id string, last lastEventID, err error) {
	if id, err = parseDeviceID(r.URL.RawQuery); err != nil {
		return "", last, err
	}
	if r.ContentLength != 0 {
		return "", last, errors.New("a connect must have no body; remove it")
	}
	last, err = parseLastEventID(r.Header.Values("Last-Event-ID"))
	return id, last, err
}

// connectFault applies a fault (nil: none) to a connect. It reports whether the fault responds in place of an event
// stream. If it returns an error, guard writes the response.
func (s *service) connectFault(w http.ResponseWriter, r *http.Request, id string, f *fault.Fault) (answered bool, err error) {
	if f == nil {
		return false, nil
	}
	s.log.Warn("fault injected", "fault", string(f.Kind), "id", id)
	switch f.Kind {
	case fault.Refuse:
		return true, refusal(http.StatusServiceUnavailable, "fault", "refused by an injected fault; connect again")
	case fault.WrongType:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<!doctype html><title>injected fault</title><p>This is not an event stream.\n"))
		return true, nil
	case fault.SlowHeaders:
		// The wait may be longer than the read deadline of the request, so the deadline is removed.
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		wait := time.NewTimer(f.Wait)
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-r.Context().Done():
		case <-s.stopping:
		}
	}
	return false, nil
}

// claim takes the connection from net/http. It returns a bare descriptor and, for a TLS connection, a tlsWriter.
func (s *service) claim(w http.ResponseWriter, r *http.Request, d *device) (claim, error) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return claim{}, fmt.Errorf("hijack: %w", err)
	}
	c := claim{fd: -1, chunked: r.ProtoAtLeast(1, 1)}
	secure, isTLS := conn.(*tls.Conn)
	raw := conn
	if isTLS {
		raw = secure.NetConn()
	}
	socket, ok := unwrap(raw).(syscall.Conn)
	if !ok {
		_ = conn.Close()
		return claim{}, fmt.Errorf("a connection of type %T has no descriptor", conn)
	}
	if isTLS {
		c.fd, err = descriptorOf(socket)
	} else {
		c.fd, err = takeDescriptor(socket)
	}
	if err != nil {
		_ = conn.Close()
		return claim{}, err
	}
	setUserTimeout(c.fd, s.cfg.UserTimeout)
	if !isTLS {
		_ = conn.Close()
		return c, nil
	}
	if g, ok := raw.(*gatedConn); ok {
		g.release()
	}
	c.tls = newTLSWriter(secure, s.cfg.WriteTimeout, func(w *tlsWriter, err error) { s.hub.closeBrokenTLS(d, w, err) })
	return c, nil
}

// discard closes a connection that could not be passed to the scheduler because the scheduler has ended.
func (c claim) discard() {
	if c.tls != nil {
		c.tls.end(true, false)
		return
	}
	closeNow(c.fd)
}

// parseName returns the name in a query parameter ("": none). It rejects a repeated parameter, because a proxy and the
// backend could use different values.
func parseName(rawQuery, parameter string) (string, error) {
	query, err := url.ParseQuery(rawQuery)
	if err != nil {
		return "", errors.New("the query string is malformed; percent-encode it")
	}
	if len(query[parameter]) > 1 {
		return "", fmt.Errorf("the parameter %s occurs more than once; send it once", parameter)
	}
	name := query.Get(parameter)
	if name != "" && !answer.ValidName(name) {
		return "", fmt.Errorf("the parameter %s must have %s", parameter, answer.NameRule)
	}
	return name, nil
}

func parseDeviceID(rawQuery string) (string, error) {
	id, err := parseName(rawQuery, "id")
	if err == nil && id == "" {
		err = errors.New("the parameter id is missing; add ?id=ID, with " + answer.NameRule)
	}
	return id, err
}

// A lastEventID is the last event that a client reports as received.
type lastEventID struct {
	explicit bool // the client sent a Last-Event-ID that is not empty
	number   uint64
}

// maxEventNumber is the highest accepted Last-Event-ID. It keeps all later numbers within int64.
const maxEventNumber = 1<<62 - 1

// parseLastEventID parses the Last-Event-ID header. A missing or empty header (the client has no id yet) starts a new
// numbering, and 0 requests all events from number 1. Any other value must be a decimal number of at
// most maxEventNumber.
func parseLastEventID(values []string) (lastEventID, error) {
	if len(values) == 0 || len(values) == 1 && values[0] == "" {
		return lastEventID{}, nil
	}
	if len(values) > 1 {
		return lastEventID{}, errors.New("the header Last-Event-ID occurs more than once; send it once")
	}
	n, err := strconv.ParseUint(values[0], 10, 64)
	if err != nil || n > maxEventNumber {
		return lastEventID{}, errors.New("Last-Event-ID must be the id of an event of this service; send the last received id, or remove the header")
	}
	return lastEventID{explicit: true, number: n}, nil
}

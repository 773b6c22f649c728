package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/sse-soak/sse-soak/backend/fault"
)

// connect opens an event stream: it checks the request, reserves the id, takes
// the connection away from net/http and hands it to the scheduler, which sends
// the headers at once.
func (s *service) connect(w http.ResponseWriter, r *http.Request) {
	id, last, err := parseConnect(r)
	if err != nil {
		s.refuse(w, refusal(http.StatusBadRequest, "bad_request", err.Error()))
		return
	}
	var res *reservation
	var refused *problem
	if !s.hub.call(func() { res, refused = s.hub.reserve(id, last) }) {
		errStopped.write(w)
		return
	}
	if refused != nil {
		s.refuse(w, refused)
		return
	}
	if res.fault != nil && s.connectFault(w, r, id, res.fault) {
		return
	}
	c, err := s.claim(w, r, res.d)
	if err != nil {
		s.hub.post(func() { s.hub.release(res) })
		s.log.Error("cannot take a connection over", "error", err.Error())
		s.metrics.refused.WithLabelValues("descriptor").Inc()
		return
	}
	if !s.hub.post(func() { s.hub.attach(res, c) }) {
		c.discard()
	}
}

// parseConnect checks all that a connect says.
func parseConnect(r *http.Request) (id string, last lastEventID, err error) {
	if id, err = parseDeviceID(r.URL.RawQuery); err != nil {
		return "", last, err
	}
	if r.ContentLength != 0 {
		return "", last, errors.New("a connect has no body; leave it out")
	}
	last, err = parseLastEventID(r.Header.Values("Last-Event-ID"))
	return id, last, err
}

// refuse answers a connect with a problem and counts it.
func (s *service) refuse(w http.ResponseWriter, p *problem) {
	s.metrics.refused.WithLabelValues(p.reason).Inc()
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(responseTimeout))
	p.write(w)
}

// connectFault does what a fault at a connect says, and reports whether that
// was the answer.
func (s *service) connectFault(w http.ResponseWriter, r *http.Request, id string, f *fault.Fault) bool {
	s.log.Warn("fault injected", "fault", string(f.Kind), "id", id)
	switch f.Kind {
	case fault.Refuse:
		s.refuse(w, refusal(http.StatusServiceUnavailable, "fault", "refused by an injected fault; connect again"))
		return true
	case fault.WrongType:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte("<!doctype html><title>injected fault</title><p>This is not an event stream.\n"))
		return true
	case fault.SlowHeaders:
		// The deadline of reading the request would end the wait.
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		wait := time.NewTimer(f.Wait)
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-r.Context().Done():
		case <-s.stopping:
		}
	}
	return false
}

// claim takes the connection out of net/http: as a bare descriptor, or under
// TLS with a writer of its own.
func (s *service) claim(w http.ResponseWriter, r *http.Request, d *device) (claim, error) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return claim{}, fmt.Errorf("hijack: %w", err)
	}
	c := claim{fd: -1, chunked: r.ProtoAtLeast(1, 1)}
	secure, isTLS := conn.(*tls.Conn)
	below := conn
	if isTLS {
		below = secure.NetConn()
	}
	socket, ok := unwrap(below).(syscall.Conn)
	if !ok {
		conn.Close()
		return claim{}, fmt.Errorf("no descriptor below %T", conn)
	}
	if isTLS {
		c.fd, err = descriptorOf(socket)
	} else {
		c.fd, err = takeDescriptor(socket)
	}
	if err != nil {
		conn.Close()
		return claim{}, err
	}
	setUserTimeout(c.fd, s.cfg.UserTimeout)
	if !isTLS {
		conn.Close()
		return c, nil
	}
	leaveGate(below)
	c.tls = newTLSOutlet(secure, s.cfg.WriteTimeout, func(o *tlsOutlet, err error) { s.hub.tlsFailed(d, o, err) })
	return c, nil
}

// leaveGate gives a connection's place back while it stays open.
func leaveGate(conn net.Conn) {
	if g, ok := conn.(*gatedConn); ok {
		g.leave()
	}
}

// discard closes a connection that nobody will own.
func (c claim) discard() {
	if c.tls != nil {
		c.tls.end(true, false)
		return
	}
	closeNow(c.fd)
}

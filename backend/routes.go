package main

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sse-soak/sse-soak/backend/answer"
	"github.com/sse-soak/sse-soak/backend/services"
)

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
				s.hub.metrics.refused.WithLabelValues(p.Reason).Inc()
			}
			setDeadline()
			p.Write(w)
		}
	})
}

func (s *service) find(table routeTable, w http.ResponseWriter, r *http.Request) (endpoint, error) {
	methods, ok := table[r.URL.EscapedPath()]
	if !ok {
		return endpoint{}, answer.Refuse(http.StatusNotFound, "unknown route; the routes are "+strings.Join(slices.Sorted(maps.Keys(table)), ", "))
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

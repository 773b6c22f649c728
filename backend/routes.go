package main

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sse-soak/sse-soak/backend/services"
)

// Largest message, and largest list of faults, in bytes.
const maxBody = 64 << 10

// endpoint is what answers one method of one path.
type endpoint struct {
	serve     func(http.ResponseWriter, *http.Request)
	protected bool // needs BACKEND_TOKEN where one is set
	stream    bool // sets its own write deadline, if any
}

// routeTable maps exact paths to methods. There are no patterns, no cleaning
// and no redirects, so no spelling of a path reaches a route but its own.
type routeTable map[string]map[string]endpoint

func (s *service) routes() http.Handler {
	metrics := promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
	return s.beside(s.guard(routeTable{
		"/event/connect":         {http.MethodGet: {serve: s.connect, stream: true}},
		"/event/forcedisconnect": {http.MethodDelete: {serve: s.forceDisconnect, protected: true}},
		"/event/send":            {http.MethodPost: {serve: s.send, protected: true}},
		"/event/broadcast":       {http.MethodPost: {serve: s.broadcast, protected: true}},
		"/event/ledger":          {http.MethodGet: {serve: s.ledger, protected: true, stream: true}},
		"/healthz":               {http.MethodGet: {serve: s.healthz}},
		"/readyz":                {http.MethodGet: {serve: s.readyz}},
		"/metrics":               {http.MethodGet: {serve: metrics.ServeHTTP}},
	}))
}

// beside lets the plain services answer the paths that are theirs.
func (s *service) beside(events http.Handler) http.Handler {
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

// Time a client has to take an ordinary response.
const responseTimeout = 10 * time.Second

// guard finds the endpoint of a request, or says what is wrong with it.
func (s *service) guard(table routeTable) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		methods, ok := table[r.URL.EscapedPath()]
		if !ok {
			newProblem(http.StatusNotFound, "there is no such route; the routes are "+table.paths()).write(w)
			return
		}
		end, ok := methods[r.Method]
		if !ok {
			p := newProblem(http.StatusMethodNotAllowed, "")
			p.allow = allowed(methods)
			p.Detail = "this route answers " + p.allow + " only"
			p.write(w)
			return
		}
		if end.protected && !s.authorized(r) {
			newProblem(http.StatusUnauthorized, "send the header Authorization: Bearer TOKEN with the service's BACKEND_TOKEN").write(w)
			return
		}
		if !end.stream {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(responseTimeout))
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		defer s.survive(w, r)
		end.serve(w, r)
	})
}

// survive keeps a panic in one request from ending the process, and says so.
func (s *service) survive(_ http.ResponseWriter, r *http.Request) {
	if v := recover(); v != nil && v != http.ErrAbortHandler {
		s.log.Error("request panicked", "path", r.URL.Path, "panic", fmt.Sprint(v))
		panic(http.ErrAbortHandler)
	}
}

// authorized compares the token in constant time.
func (s *service) authorized(r *http.Request) bool {
	if s.cfg.Token == "" {
		return true
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	got, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(s.cfg.Token))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

func (t routeTable) paths() string {
	list := make([]string, 0, len(t))
	for path := range t {
		list = append(list, path)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

func allowed(methods map[string]endpoint) string {
	list := make([]string, 0, len(methods))
	for m := range methods {
		list = append(list, m)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

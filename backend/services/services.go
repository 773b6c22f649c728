// Package services responds to plain requests to the backend, so that load tests of plain HTTP can check
// responses. It provides small operations, a registration, an upload that is hashed, and the generic endpoints
// of go-httpbin.
//
//	GET  /default/services/{service}/{operation}?…    an operation of operations.go
//	POST /default/services/{service}/account.register a registration, with a body like
//	                                                  {"id": "a1", "email": "a@example.com", "name": "A"}
//	POST /default/upload                              an upload, with a response like {"bytes": 5242880, "sha256": "…"}
//	     /httpbin/…                                   go-httpbin; see its own index page
//
// The header X-Server of a response is the name of the server, if one is set. X-In-Flight is the number of requests
// that were in progress when the request arrived, including that request. This number does not include requests that
// wait for a handler; the number that nginx reports does.
package services

import (
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mccutchen/go-httpbin/v2/httpbin"

	"github.com/sse-soak/sse-soak/backend/answer"
)

const (
	servicePrefix = "/default/services/"
	uploadPath    = "/default/upload"
	httpbinPrefix = "/httpbin"
)

// Limits on a request, with sizes in bytes. An upload has larger limits, because it may take a long time and its bytes
// are not stored.
const (
	responseTimeout = 30 * time.Second
	uploadTimeout   = 10 * time.Minute
	maxUpload       = 4 << 30
	maxHTTPBinBody  = 1 << 20
	maxHTTPBinDelay = 10 * time.Second
)

// A Handler serves the paths of this package. It is safe for concurrent use.
type Handler struct {
	server   string // value of X-Server; "": no header
	inFlight atomic.Int64
	requests atomic.Uint64
	generic  http.Handler
}

// New returns a handler whose responses have the header X-Server with the name of the server. If server is "", they
// lack the header.
func New(server string) *Handler {
	return &Handler{server: server, generic: httpbin.New(
		httpbin.WithPrefix(httpbinPrefix), httpbin.WithMaxBodySize(maxHTTPBinBody), httpbin.WithMaxDuration(maxHTTPBinDelay),
	)}
}

// Owns reports whether this package serves a path.
func Owns(path string) bool {
	return strings.HasPrefix(path, "/default/") || strings.HasPrefix(path, httpbinPrefix+"/")
}

// InFlight returns the number of requests in progress.
func (h *Handler) InFlight() int64 { return h.inFlight.Load() }

// Received returns the number of requests since the start. A request is counted on arrival, before its response.
func (h *Handler) Received() uint64 { return h.requests.Load() }

// ServeHTTP serves one request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	inFlight := h.inFlight.Add(1)
	defer h.inFlight.Add(-1)
	h.requests.Add(1)
	header := w.Header()
	if h.server != "" {
		header.Set("X-Server", h.server)
	}
	header.Set("X-In-Flight", strconv.FormatInt(inFlight, 10))
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(responseTimeout)) // unsupported in tests
	if err := h.route(w, r, r.URL.EscapedPath()); err != nil {
		answer.AsProblem(err).Write(w)
	}
}

func (h *Handler) route(w http.ResponseWriter, r *http.Request, path string) error {
	if path == uploadPath {
		return upload(w, r)
	}
	if suffix, ok := strings.CutPrefix(path, servicePrefix); ok {
		return operate(w, r, suffix)
	}
	if strings.HasPrefix(path, httpbinPrefix) {
		h.generic.ServeHTTP(w, r)
		return nil
	}
	return answer.Refuse(http.StatusNotFound, "unknown route; use one of "+servicePrefix+"{service}/{operation}, "+uploadPath+" and "+httpbinPrefix+"/")
}

// Package answer writes the JSON responses and the problem documents (RFC 9457) of the backend. It also checks the
// names that the protocol allows.
package answer

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
)

// A Problem is an error with an HTTP status. Detail is one sentence that states the cause and usually a remedy.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Reason string `json:"-"` // value of the label reason of backend_refused_total; "": not counted
}

func (p *Problem) Error() string { return p.Detail }

// Refuse returns a problem with an HTTP status and a detail, but without a Reason.
func Refuse(status int, detail string) *Problem {
	return &Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail}
}

// AsProblem returns the Problem that an error is or wraps, or else one with status 400 and the text of the error.
func AsProblem(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	return Refuse(http.StatusBadRequest, err.Error())
}

// NotAllowed sets the Allow header and returns a problem with status 405. Both list the methods that the path allows.
func NotAllowed(w http.ResponseWriter, methods ...string) error {
	allowed := strings.Join(methods, ", ")
	w.Header().Set("Allow", allowed)
	return Refuse(http.StatusMethodNotAllowed, "the method is not allowed; use "+allowed)
}

// BadBody returns the error for a body that could not be read. If the body exceeds its limit, the error is a
// problem with status 413 and the detail tooLarge. Otherwise AsProblem converts the error to status 400.
func BadBody(err error, tooLarge string) error {
	var tooLong *http.MaxBytesError
	if errors.As(err, &tooLong) {
		return Refuse(http.StatusRequestEntityTooLarge, tooLarge)
	}
	return errors.New("the body could not be read; send the whole body in time")
}

// Write responds with the problem. It adds Retry-After to status 503, and WWW-Authenticate to status 401.
func (p *Problem) Write(w http.ResponseWriter) {
	switch p.Status {
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Bearer realm="sse-soak"`)
	}
	write(w, "application/problem+json", p.Status, p)
}

// JSON responds to a request with a value. It always returns nil, so that a handler can end with `return JSON(…)`.
func JSON(w http.ResponseWriter, status int, value any) error {
	write(w, "application/json", status, value)
	return nil
}

func write(w http.ResponseWriter, kind string, status int, value any) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // the client may have disconnected
}

// NameRule is the description of a valid name for use in error messages.
const NameRule = "1 to 64 characters of A-Z a-z 0-9 . _ -"

// ValidName reports whether name is valid as the id of a client, or as the name of an event or a service. The allowed
// characters need no escaping in a header, a path, a label or an event stream.
func ValidName(name string) bool {
	const allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
	return name != "" && len(name) <= 64 && strings.Trim(name, allowed) == ""
}

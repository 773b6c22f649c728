package main

import (
	"encoding/json"
	"net/http"
	"strconv"
)

// problem is an error as RFC 9457 puts it. Detail is one sentence that says
// what the caller can do.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`

	retryAfter int    // seconds; 0 leaves the header out
	allow      string // of 405
	reason     string // label of backend_refused_total; empty is not counted
}

// newProblem makes a problem of that status.
func newProblem(status int, detail string) *problem {
	return &problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail}
}

// refusal is a problem that answers a connect and is counted under reason.
func refusal(status int, reason, detail string) *problem {
	p := newProblem(status, detail)
	p.reason = reason
	if status == http.StatusServiceUnavailable {
		p.retryAfter = 1
	}
	return p
}

// write answers a request with the problem.
func (p *problem) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(p.retryAfter))
	}
	if p.allow != "" {
		h.Set("Allow", p.allow)
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="sse-soak"`)
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}

// writeJSON answers a request with a value.
func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}

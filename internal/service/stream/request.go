package stream

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/sse-soak/sse-soak/internal/secret"
	"github.com/sse-soak/sse-soak/internal/service"
	"github.com/sse-soak/sse-soak/internal/sseclient"
	"github.com/sse-soak/sse-soak/internal/sseclient/coding"
)

// A Request is one request of a description. Its headers override the client's headers, and are not sent to other
// origins.
type Request struct {
	sseclient.Request
	AcceptEncoding, LastEventID string // also sent to other origins

	// NoRedirect makes a redirect the final response, as for the publisher of a run.
	NoRedirect bool
	// NoKeepAlive turns off TCP keep-alive, which would show routers that a silent connection is in use. It has no
	// effect if Client.Dial is set.
	NoKeepAlive bool

	MaxEventSize int // maximum event size of the stream in bytes; 0 means 1 MiB

	secret string // token in the request; errors and excerpts of the response hide it
}

// Fill returns a request of a description with values in its placeholders.
func Fill(r *service.Request, v *service.Values) Request {
	out := Request{secret: v.Token, Request: sseclient.Request{
		Method: r.Method, URL: string(r.URL.Append(nil, v)), Body: string(r.Body.Append(nil, v)), Header: http.Header{},
	}}
	for name, value := range r.FilledHeaders(v) {
		out.Header.Set(name, value)
	}
	return out
}

// Accepts reports whether the request accepts a content coding.
func (r Request) Accepts(name string) bool {
	if described, ok := r.Header["Accept-Encoding"]; ok {
		return coding.Accepts(described[0], name)
	}
	return coding.Accepts(r.AcceptEncoding, name)
}

// String returns the method and the URL, without the token and the query.
func (r Request) String() string {
	target, _, hasQuery := strings.Cut(r.URL, "?")
	if hasQuery {
		target += "?…"
	}
	return cmp.Or(r.Method, http.MethodGet) + " " + secret.Hide(target, r.secret)
}

// Secret returns the token in the request.
func (r Request) Secret() string { return r.secret }
